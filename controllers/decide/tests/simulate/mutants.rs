//! Mutants: each breaks one rule on purpose, so that it is seen whether anybody notices.

use aicr_crds::{RuntimeRollout, keys::label, rollout::Need};
use aicr_decide::{
    rollout::{self, GATES, Position, Verdict},
    seen::{EngineState, ResolutionState, RolloutSeen, RuntimeSeen, outcome},
};
use jiff::Timestamp;

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Nothing.
    None,
    /// A rule of the judgment never answers.
    Rule(&'static str),
    /// A step is begun whatever has happened to the rollout.
    BeginWithoutVersion,
    /// An end is written whatever has happened to the rollout.
    EndWithoutVersion,
    /// Applications are written whatever has happened to them.
    ApplicationWithoutVersion,
    /// Every step is created as one that needs no approval.
    NothingNeedsApproval,
    /// Nothing ever owes an acknowledgement.
    NothingIsOwed,
    /// The inventory is empty.
    NoInventory,
    /// The phase in status says what has ended, not the label.
    EndedByStatus,
    /// A step counts as begun before it is.
    BeganAlready,
    /// A pause is not seen.
    PauseUnseen,
    /// A suspended engine is not seen.
    SuspensionUnseen,
    /// A missing engine is not seen.
    EngineUnseen,
    /// A stalled resolution is not seen.
    ResolutionUnseen,
    /// Unreadable plans are not seen.
    UnreadableUnseen,
    /// A second unfinished rollout is not seen.
    OthersUnseen,
    /// A retry token is not seen.
    TokenUnseen,
    /// A changed target is not seen.
    TargetUnseen,
    /// A deletion is not seen.
    DeletionUnseen,
    /// The answer to a refresh is believed without having seen the question.
    RefreshNotReadBack,
    /// The rollouts are looked at again before its own end of one is seen.
    EndNotReadBack,
}

/// Rules of the judgment beside the gates, as its seam names them.
const RULES: [&str; 28] = [
    "ready: identity",
    "ready: refused",
    "ready: comparison error",
    "ready: operation",
    "ready: sync of its own",
    "ready: compared",
    "ready: synced",
    "ready: fresh",
    "ready: health",
    "ready: ignored",
    "ready: own gate",
    "validation: begun",
    "runtime: unreadable",
    "runtime: marks left",
    "runtime: unfinished",
    "runtime: ended badly",
    "runtime: held",
    "repair: moved release",
    "repair: rollout gone",
    "retention: kept",
    "drift: appeared",
    "drift: disappeared",
    "drift: recreated",
    "drift: at plan",
    "drift: edited",
    "end: marks taken off",
    "remove: handed over",
    "remove: deleted by somebody",
];

const OTHERS: [Mutant; 19] = [
    Mutant::EndNotReadBack,
    Mutant::RefreshNotReadBack,
    Mutant::BeginWithoutVersion,
    Mutant::EndWithoutVersion,
    Mutant::ApplicationWithoutVersion,
    Mutant::NothingNeedsApproval,
    Mutant::NothingIsOwed,
    Mutant::NoInventory,
    Mutant::EndedByStatus,
    Mutant::BeganAlready,
    Mutant::PauseUnseen,
    Mutant::SuspensionUnseen,
    Mutant::EngineUnseen,
    Mutant::ResolutionUnseen,
    Mutant::UnreadableUnseen,
    Mutant::OthersUnseen,
    Mutant::TokenUnseen,
    Mutant::TargetUnseen,
    Mutant::DeletionUnseen,
];

impl Mutant {
    /// All of them: the gates, the other rules, the hands and eyes.
    pub(crate) fn all() -> Vec<Self> {
        let gates = GATES.iter().map(|(name, _)| Self::Rule(name));
        gates.chain(RULES.map(Self::Rule)).chain(OTHERS).collect()
    }

    /// Its name, for the table.
    pub(crate) fn name(self) -> String {
        let Self::Rule(name) = self else { return format!("{self:?}") };
        if GATES.iter().any(|(gate, _)| *gate == name) { format!("gate: {name}") } else { name.to_owned() }
    }

    /// Tells the judgment which rule is broken.
    pub(crate) fn set(self) {
        let rule = if let Self::Rule(name) = self { name } else { "" };
        aicr_decide::seam::breaks(rule);
    }

    /// The judgment, with eyes that may be bad.
    pub(crate) fn decide(self, position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Verdict {
        if matches!(self, Self::None | Self::Rule(_)) {
            return rollout::next_at(position, seen, now);
        }
        let (mut rollout, mut seen) = (position.rollout.clone(), seen.clone());
        rollout.status = position.status.cloned();
        self.blinds(&mut rollout, &mut seen);
        rollout::next(&rollout, &seen, now)
    }

    fn blinds(self, rollout: &mut RuntimeRollout, seen: &mut RolloutSeen) {
        let facts = match &mut seen.runtime {
            RuntimeSeen::Gone => None,
            RuntimeSeen::There(facts) => Some(facts),
        };
        match (self, facts) {
            (Self::EndedByStatus, _) => {
                let phase = rollout.status.as_ref().and_then(|status| status.phase);
                let told = outcome(rollout).is_some_and(|outcome| phase == Some(outcome.into()));
                if !told && let Some(labels) = &mut rollout.metadata.labels {
                    labels.remove(label::OUTCOME);
                }
            }
            (Self::BeganAlready, _) => began(rollout, seen),
            (Self::EngineUnseen, _) => seen.engine = EngineState::Available,
            (Self::ResolutionUnseen, _) => seen.resolution = ResolutionState::Resolved,
            (Self::UnreadableUnseen, _) => seen.unreadable = None,
            (Self::OthersUnseen, _) => seen.unfinished.clear(),
            (Self::PauseUnseen, Some(facts)) => facts.paused = false,
            (Self::SuspensionUnseen, Some(facts)) => facts.suspend_engine = false,
            (Self::TokenUnseen, Some(facts)) => facts.new_token = None,
            (Self::TargetUnseen, Some(facts)) => facts.target = None,
            (Self::DeletionUnseen, Some(facts)) => facts.deleting = None,
            (
                Self::None
                | Self::Rule(_)
                | Self::BeginWithoutVersion
                | Self::EndWithoutVersion
                | Self::ApplicationWithoutVersion
                | Self::NothingNeedsApproval
                | Self::NothingIsOwed
                | Self::NoInventory
                | Self::RefreshNotReadBack
                | Self::EndNotReadBack
                | Self::PauseUnseen
                | Self::SuspensionUnseen
                | Self::TokenUnseen
                | Self::TargetUnseen
                | Self::DeletionUnseen,
                _,
            ) => {}
        }
    }

    /// The version that a status write asks for.
    pub(crate) fn status_version(self, version: Option<String>) -> Option<String> {
        version.filter(|_| self != Self::BeginWithoutVersion)
    }

    /// The version that an end asks for.
    pub(crate) fn end_version(self, version: Option<&str>) -> Option<&str> {
        version.filter(|_| self != Self::EndWithoutVersion)
    }

    /// Whether Applications are written at any version.
    pub(crate) fn ignores_application_version(self) -> bool {
        self == Self::ApplicationWithoutVersion
    }

    /// Spoils a rollout that is created.
    pub(crate) fn created(self, rollout: &mut RuntimeRollout) {
        let spec = &mut rollout.spec;
        if self == Self::NothingNeedsApproval {
            spec.steps.iter_mut().for_each(|step| step.approval.need = Need::NotRequired);
        }
        if self == Self::NothingIsOwed {
            spec.steps.iter_mut().for_each(|step| step.acknowledge = false);
        }
        if self == Self::NoInventory {
            spec.inventory.clear();
        }
    }
}

/// As if `status.current` named the next step already.
fn began(rollout: &mut RuntimeRollout, seen: &RolloutSeen) {
    let position = Position::find(rollout, &seen.applications);
    let Some(index) = position.next else { return };
    let step = position.steps()[index].clone();
    let since = rollout.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let current = rollout::current(&position, index, &step, None, since);
    rollout.status.get_or_insert_default().current = Some(current);
}
