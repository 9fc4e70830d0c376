//! `spec.suspendEngine`: automated sync off on every owned Application, and on again, each read back.

use aicr_crds::{
    application::{Application, AutomatedSync},
    reason::{ConditionType, Reason},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    place::owned,
    verdict::{Verdict, Why, Write},
};
use crate::{
    message::listed,
    rollout::ObjectRef,
    seen::{World, is_busy},
};

/// How soon a refused change is tried again.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// How many Applications a message names.
const NAMED: usize = 10;

/// How far suspension, or its end, has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspension {
    /// Applications that are still to be changed, refused ones left out.
    pub pending: Vec<String>,
    /// Applications whose change is refused, with why.
    pub refused: Vec<(String, String)>,
    /// Applications whose operation is still in flight.
    pub in_flight: Vec<String>,
}

impl Suspension {
    /// Whether every owned Application reads as it should.
    pub fn is_done(&self) -> bool {
        self.pending.is_empty() && self.refused.is_empty()
    }

    /// Names the refused Applications, with the API server's words.
    pub fn refusal(&self) -> String {
        let all: Vec<String> = self.refused.iter().map(|(name, why)| format!("Application {name}: {why}")).collect();
        format!("{}; undo the edit to the Application, it is tried again by itself", listed(&all, NAMED))
    }
}

/// Where it stands.
pub fn suspension(world: &World) -> Suspension {
    let mut found = Suspension::default();
    for application in owned(world).filter(|application| !application.is_deleting()) {
        let name = application.name().to_owned();
        if is_busy(application) {
            found.in_flight.push(name.clone());
        }
        if !differs(world, application) {
            continue;
        }
        match world.facts.refusals.automation.get(&name) {
            Some(refusal) => found.refused.push((name, refusal.why.clone())),
            None => found.pending.push(name),
        }
    }
    found
}

/// Whether the API server refuses any of it.
pub(super) fn is_refused(world: &World) -> bool {
    !world.facts.refusals.automation.is_empty()
        && owned(world).any(|application| !application.is_deleting() && refuses(world, application))
}

/// Whether the API server refuses what suspension, or its end, wants of this Application.
pub(super) fn refuses(world: &World, application: &Application) -> bool {
    world.facts.refusals.automation.contains_key(application.name()) && differs(world, application)
}

/// No stanza is no automated sync; on resume only what suspension switched off is switched on, the rest is repair's.
fn differs(world: &World, application: &Application) -> bool {
    match (application.automated, world.runtime.spec.suspend_engine) {
        (AutomatedSync::Enabled, true) => true,
        // What a Remove has marked stays off; what takes the marks off switches it on.
        (AutomatedSync::Disabled, false) => application.annotations.delete_rollout.is_none() && was_suspended(world),
        (AutomatedSync::Enabled, false) | (AutomatedSync::Disabled, true) | (AutomatedSync::Absent, _) => false,
    }
}

/// Whether suspension was in force when last told; where nothing was told, it may have been.
fn was_suspended(world: &World) -> bool {
    let Some(status) = &world.runtime.status else { return true };
    let told = [Reason::EngineSuspended, Reason::EngineSuspensionRefused];
    let suspended = status.conditions.iter().filter(|condition| condition.type_ == ConditionType::Ready.as_str());
    // These stand before it, and say nothing about it.
    let hidden = [
        Reason::Deleting,
        Reason::PlanUnreadable,
        Reason::EngineMissing,
        Reason::ProjectMissing,
        Reason::Unauthorized,
        Reason::RegistryCredentialsStale,
    ];
    suspended.into_iter().any(|ready| told.iter().chain(&hidden).any(|reason| ready.reason == reason.as_str()))
}

/// When a refused change is tried again.
pub(super) fn again(world: &World) -> Option<Timestamp> {
    let refusals = &world.facts.refusals.automation;
    let due = owned(world).filter(|application| differs(world, application));
    due.filter_map(|application| Some(refusals.get(application.name())?.at + AGAIN_AFTER)).min()
}

/// The next change, by a merge patch of that field alone: an apply would also undo the hand edits of the incident. Whatever
/// else stalls, and with a stale token too; refused ones last, the others are done first.
pub(super) fn next(world: &World, now: Timestamp) -> Option<Verdict> {
    if world.engine.is_absent() {
        return None;
    }
    let wanted = world.runtime.spec.suspend_engine;
    let refusals = &world.facts.refusals.automation;
    let due = owned(world).filter(|application| !application.is_deleting() && differs(world, application));
    let first = due
        .filter(|application| refusals.get(application.name()).is_none_or(|refusal| now >= refusal.at + AGAIN_AFTER))
        .min_by_key(|application| refusals.contains_key(application.name()))?;
    let write = Write::SetAutomated { on: ObjectRef::of(first), enabled: !wanted };
    Some(Verdict::Do(write, Why::Upkeep))
}
