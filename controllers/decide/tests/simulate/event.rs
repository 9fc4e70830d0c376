//! Events: everything that can happen in a history, small enough to be kept, replayed and left out one by one.

use std::fmt;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An operator looks at its rollouts and carries out what it decides.
    Rollouts(Turn),
    /// An operator looks at the runtime.
    Runtime(Turn),
    /// A write that was decided on earlier is carried out now.
    Land,
    /// Watch events of one kind arrive at the operator.
    Deliver(Stream, u8),
    /// The operator's watches start anew.
    Relist,
    /// Another replica takes over, with fresh lists.
    Handover,
    /// The replica that lost the lease acts once more, on what it had seen.
    Ghostly(Turn),
    /// Argo CD does something to one Application.
    Argo(u8, Act),
    /// Time passes, in seconds; negative: the clock is set back.
    Later(i32),
    /// AICR's Job ends.
    Aicr(Run),
    /// A person or another controller does something.
    Hand(Hand),
}

/// One turn of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To its end.
    Whole,
    /// The process dies after so many writes.
    Crash(u8),
    /// It decides now, and its first write lands later.
    Hold,
}

/// One kind of watch; each keeps its order, none keeps another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The runtime.
    Runtime,
    /// Rollouts.
    Rollouts,
    /// Applications.
    Applications,
    /// Plans, assessments, Jobs, the engine, resolution.
    Documents,
}

impl Stream {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Runtime, Self::Rollouts, Self::Applications, Self::Documents];
}

/// What Argo CD does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Compares, syncs where it may, compares again: healthy.
    Settle,
    /// The same, and health is not there yet.
    Unhealthy(Health),
    /// Compares only.
    Compare,
    /// Starts to sync the present source.
    Start,
    /// Is busy with a sync of older content.
    StartOlder,
    /// Ends the sync that runs, and says so before it has compared again.
    Finish,
    /// The sync that runs failed once and is tried again.
    Retry,
    /// The sync of the present source fails for good.
    Fail,
    /// Refuses, or cannot compare.
    Condition(Condition),
    /// Ends an operation without a result.
    Wedge,
    /// Writes an older status once more.
    OldStatus,
    /// Finishes a deletion.
    Gone,
}

/// Health that is not Healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Progressing,
    Degraded,
    Missing,
    Suspended,
}

/// What Argo CD holds against an Application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Credentials,
    Schema,
    Comparison,
    InvalidSpec,
    Excluded,
}

/// How an AICR Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Succeeds,
    FailsOnce,
    FailsForGood,
    /// It ran, and its report says that a check failed.
    FailsCheck,
}

/// What people, other controllers and accidents do. Numbers name a release or a plan of the history's family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    Approve(Approval),
    Revoke,
    Acknowledge,
    Retry,
    Pause(bool),
    Suspend(bool),
    Engine(Engine),
    /// A new candidate is resolved.
    Candidate(u8),
    Pin(u8),
    Unpin,
    ResolutionStalls,
    Resolves,
    Resolved,
    Edit(u8),
    Undo(u8),
    EditPlan(u8),
    Unlabel(u8),
    /// An Application as it was in a backup, with the marks of a Remove that has ended.
    Restore(u8),
    Delete(u8),
    /// An Application is deleted without its resources, and delete hooks of its chart hold it.
    DeleteHeld(u8),
    Recreate(u8),
    /// An Application of ours that nobody planned.
    Appear(u8),
    Foreign(u8),
    ForeignGone(u8),
    LocalSync(u8),
    LoseStatus,
    LoseOldRollouts,
    PlanUnreadable(u8),
    PlanReadable(u8),
    PlanGone(u8),
    NewerSchema,
    OlderSchema,
    DeleteRuntime(Policy),
    ChangePolicy(Policy),
    RuntimeGone,
    RuntimeReborn,
    /// The runtime names its predecessor, whose Applications it may adopt.
    Adopt,
    /// What a release's own gate finds on live objects.
    Gate(u8, Gate),
    /// The API server refuses, or takes again, changes of an Application's automated sync and its orphaning.
    Refuse(u8, bool),
    /// Argo CD is told to leave an Application alone, or no longer.
    Ignore(u8, bool),
    /// Nothing can be read for steps, or again.
    Trouble(bool),
    /// What validation needs is gone, or there again.
    Lacks(bool),
}

/// What a release's own gate finds on live objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// There is none.
    None,
    Passes,
    Fails,
    /// Objects are not as rendered.
    Outdated,
}

/// What kind of approval is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    Whole,
    Short,
    OfAnother,
}

/// What becomes of Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    There,
    Missing,
    NoProject,
    Unauthorized,
    Stale,
}

/// A deletion policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Orphan,
    Delete,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rollouts(turn) => write!(f, "the operator looks at its rollouts{turn}"),
            Self::Runtime(turn) => write!(f, "the operator looks at the runtime{turn}"),
            Self::Land => f.write_str("what was decided lands"),
            Self::Deliver(stream, count) => write!(f, "{count} events of {stream:?} arrive"),
            Self::Relist => f.write_str("the watches start anew"),
            Self::Handover => f.write_str("the other replica takes over"),
            Self::Ghostly(turn) => write!(f, "the replica without lease looks at its rollouts{turn}"),
            Self::Argo(release, act) => write!(f, "Argo CD, release {release}: {act:?}"),
            Self::Later(seconds) => write!(f, "{seconds} s pass"),
            Self::Aicr(run) => write!(f, "AICR's Job: {run:?}"),
            Self::Hand(hand) => write!(f, "by hand: {hand:?}"),
        }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Crash(writes) => write!(f, " and dies after {writes} writes"),
            Self::Hold => f.write_str(", and its write is on its way"),
        }
    }
}
