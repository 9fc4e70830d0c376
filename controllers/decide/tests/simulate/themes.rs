//! Themes: each history has a few kinds of trouble, so that it goes deep instead of wide.

use crate::{
    chance::Chance,
    cluster::Cluster,
    event::{Act, Approval, Condition, Engine, Event, Gate, Hand, Health, Policy, Run, Turn},
    family::REBORN,
};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Edits,
    Deletions,
    Foreign,
    Pause,
    Suspension,
    Engine,
    Resolution,
    Revocation,
    Expiry,
    Mismatch,
    Clock,
    Tokens,
    Targets,
    LostStatus,
    LostRollouts,
    Crashes,
    Late,
    Leaders,
    Plans,
    Schema,
    Deletion,
    Older,
    Failures,
    Conditions,
    Wedged,
    Stale,
    Local,
    Gates,
    Refusals,
    Ignored,
    Trouble,
    Validation,
    Adoption,
}

impl Theme {
    pub(crate) const ALL: [Self; 33] = [
        Self::Edits,
        Self::Deletions,
        Self::Foreign,
        Self::Pause,
        Self::Suspension,
        Self::Engine,
        Self::Resolution,
        Self::Revocation,
        Self::Expiry,
        Self::Mismatch,
        Self::Clock,
        Self::Tokens,
        Self::Targets,
        Self::LostStatus,
        Self::LostRollouts,
        Self::Crashes,
        Self::Late,
        Self::Leaders,
        Self::Plans,
        Self::Schema,
        Self::Deletion,
        Self::Older,
        Self::Failures,
        Self::Conditions,
        Self::Wedged,
        Self::Stale,
        Self::Local,
        Self::Gates,
        Self::Refusals,
        Self::Ignored,
        Self::Trouble,
        Self::Validation,
        Self::Adoption,
    ];

    /// Something of this kind.
    pub(crate) fn event(self, chance: &mut Chance, cluster: &Cluster) -> Event {
        let release = u8::try_from(chance.below(cluster.family.releases.len())).unwrap_or(0);
        let plan = u8::try_from(chance.below(cluster.family.plans.len())).unwrap_or(0);
        let spec = &cluster.truth.world.runtime.spec;
        let hand = |hand: Hand| Event::Hand(hand);
        match self {
            Self::Edits => hand(chance.pick(&[
                Hand::Edit(release),
                Hand::Undo(release),
                Hand::Undo(release),
                Hand::EditPlan(release),
                Hand::Unlabel(release),
                Hand::Restore(release),
            ])),
            Self::Deletions => {
                let held = Hand::DeleteHeld(release);
                hand(chance.pick(&[Hand::Delete(release), held, Hand::Recreate(release), Hand::Appear(release)]))
            }
            Self::Foreign => hand(chance.pick(&[Hand::Foreign(release), Hand::ForeignGone(release)])),
            Self::Pause => hand(Hand::Pause(!spec.paused)),
            Self::Suspension => hand(Hand::Suspend(!spec.suspend_engine)),
            Self::Engine => hand(Hand::Engine(engine(chance, cluster))),
            Self::Resolution => {
                hand(chance.pick(&[Hand::ResolutionStalls, Hand::Resolves, Hand::Resolved, Hand::Resolved]))
            }
            Self::Revocation => hand(Hand::Revoke),
            Self::Expiry => {
                if chance.one_in(2) {
                    hand(Hand::Approve(Approval::Short))
                } else {
                    Event::Later(400)
                }
            }
            Self::Mismatch => hand(Hand::Approve(Approval::OfAnother)),
            Self::Clock => Event::Later(chance.pick(&[-30, 60, 600, 1800, 3600, 22_000])),
            Self::Tokens => hand(Hand::Retry),
            Self::Targets => {
                hand(chance.pick(&[Hand::Candidate(plan), Hand::Candidate(plan), Hand::Pin(plan), Hand::Unpin]))
            }
            Self::LostStatus => hand(Hand::LoseStatus),
            Self::LostRollouts => hand(Hand::LoseOldRollouts),
            Self::Crashes => crash(chance),
            Self::Late => Event::Rollouts(Turn::Hold),
            Self::Leaders => chance.pick(&[Event::Handover, Event::Ghostly(Turn::Whole), Event::Ghostly(Turn::Whole)]),
            Self::Plans => hand(chance.pick(&[
                Hand::PlanUnreadable(plan),
                Hand::PlanReadable(plan),
                Hand::PlanReadable(plan),
                Hand::PlanGone(plan),
            ])),
            Self::Schema => hand(chance.pick(&[Hand::NewerSchema, Hand::OlderSchema])),
            Self::Deletion => hand(deletion(chance, cluster)),
            Self::Older => Event::Argo(release, chance.pick(&[Act::StartOlder, Act::Finish, Act::Retry, Act::Compare])),
            Self::Failures => {
                Event::Argo(release, chance.pick(&[Act::Fail, Act::Retry, Act::Unhealthy(Health::Degraded)]))
            }
            Self::Conditions => Event::Argo(release, Act::Condition(condition(chance))),
            Self::Wedged => Event::Argo(release, chance.pick(&[Act::Wedge, Act::Settle])),
            Self::Stale => Event::Argo(release, chance.pick(&[Act::OldStatus, Act::Start, Act::Finish, Act::Compare])),
            Self::Local => hand(Hand::LocalSync(release)),
            Self::Gates => hand(Hand::Gate(release, gate(chance))),
            Self::Refusals => hand(refusal(chance, cluster, release)),
            Self::Ignored => hand(Hand::Ignore(release, chance.one_in(3))),
            Self::Trouble => hand(Hand::Trouble(cluster.truth.world.facts.trouble.is_none())),
            Self::Validation => validation(chance, cluster),
            Self::Adoption => hand(adoption(chance, cluster, release)),
        }
    }
}

fn gate(chance: &mut Chance) -> Gate {
    chance.pick(&[Gate::Passes, Gate::Passes, Gate::Fails, Gate::Outdated, Gate::None])
}

/// The API server refuses, while something asks for what it refuses.
fn refusal(chance: &mut Chance, cluster: &Cluster, release: u8) -> Hand {
    let suspended = cluster.truth.world.runtime.spec.suspend_engine;
    chance.pick(&[Hand::Refuse(release, true), Hand::Refuse(release, false), Hand::Suspend(!suspended)])
}

fn validation(chance: &mut Chance, cluster: &Cluster) -> Event {
    let lacks = cluster.truth.world.facts.validation.lacks.is_some();
    chance.pick(&[
        Event::Hand(Hand::Lacks(!lacks)),
        Event::Aicr(Run::FailsCheck),
        Event::Aicr(Run::FailsOnce),
        Event::Aicr(Run::FailsForGood),
        Event::Later(15),
    ])
}

/// The runtime is orphaned, and another one comes and takes over.
fn adoption(chance: &mut Chance, cluster: &Cluster, release: u8) -> Hand {
    let runtime = &cluster.truth.world.runtime;
    if !cluster.truth.has_runtime {
        return Hand::RuntimeReborn;
    }
    if runtime.metadata.deletion_timestamp.is_some() {
        return chance.pick(&[Hand::ChangePolicy(Policy::Orphan), Hand::RuntimeGone]);
    }
    if runtime.metadata.uid.as_deref() != Some(REBORN) {
        return Hand::DeleteRuntime(Policy::Orphan);
    }
    chance.pick(&[Hand::Adopt, Hand::Edit(release), Hand::Undo(release), Hand::Candidate(0)])
}

fn condition(chance: &mut Chance) -> Condition {
    chance.pick(&[
        Condition::Credentials,
        Condition::Schema,
        Condition::Comparison,
        Condition::InvalidSpec,
        Condition::Excluded,
    ])
}

fn engine(chance: &mut Chance, cluster: &Cluster) -> Engine {
    if cluster.truth.world.engine.reason().is_some() {
        return Engine::There;
    }
    chance.pick(&[Engine::Missing, Engine::NoProject, Engine::Unauthorized, Engine::Stale])
}

fn crash(chance: &mut Chance) -> Event {
    let turn = Turn::Crash(u8::try_from(chance.below(3)).unwrap_or(0));
    if chance.one_in(4) { Event::Runtime(turn) } else { Event::Rollouts(turn) }
}

fn deletion(chance: &mut Chance, cluster: &Cluster) -> Hand {
    let policy = chance.pick(&[Policy::Orphan, Policy::Delete]);
    if !cluster.truth.has_runtime {
        return Hand::RuntimeReborn;
    }
    match cluster.truth.world.runtime.metadata.deletion_timestamp {
        None => Hand::DeleteRuntime(policy),
        Some(_) => chance.pick(&[Hand::ChangePolicy(policy), Hand::RuntimeGone]),
    }
}
