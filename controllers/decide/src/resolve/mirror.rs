//! Mirror runs: what the last one came to, and when the next is due.

use aicr_crds::{Digest, reason::Reason};
use jiff::Timestamp;

use super::{
    jobs::backoff,
    verdict::{MirrorPlan, Verdict},
};

/// What the last mirror run came to; lost with a restart, since it can be run again at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MirrorSeen {
    /// None has run.
    #[default]
    None,
    /// It failed, for these inputs.
    Failed {
        /// Hash of the inputs.
        inputs: Digest,
        /// The reason when it stalls; `None` when it is retried.
        reason: Option<Reason>,
        /// More.
        message: String,
        /// When.
        at: Timestamp,
        /// How often in a row.
        times: u32,
    },
}

impl MirrorSeen {
    /// After one more run that failed, at `at`: counted on for as long as it is for the same inputs.
    #[must_use]
    pub fn failed(&self, inputs: Digest, reason: Option<Reason>, message: String, at: Timestamp) -> Self {
        let times = match self {
            Self::Failed { inputs: earlier, times, .. } if *earlier == inputs => times.saturating_add(1),
            Self::Failed { .. } | Self::None => 1,
        };
        Self::Failed { inputs, reason, message, at, times }
    }
}

/// The mirror run of this bundle: when it is due, or why none is.
pub(super) fn next(seen: &MirrorSeen, plan: MirrorPlan, now: Timestamp) -> Verdict {
    match seen {
        MirrorSeen::Failed { inputs, reason: Some(reason), message, .. } if *inputs == plan.inputs => {
            Verdict::Stall(*reason, message.clone())
        }
        MirrorSeen::Failed { inputs, reason: None, message, at, times }
            if *inputs == plan.inputs && now < *at + backoff(*times) =>
        {
            Verdict::Wait(message.clone(), Some(*at + backoff(*times)))
        }
        MirrorSeen::None | MirrorSeen::Failed { .. } => Verdict::Mirror(Box::new(plan)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_failures_are_counted_for_the_same_inputs() {
        let (one, other) = (Digest::of(b"1"), Digest::of(b"2"));
        let failed = |before: &MirrorSeen, inputs| before.failed(inputs, None, "down".into(), Timestamp::UNIX_EPOCH);
        let times = |seen: &MirrorSeen| match seen {
            MirrorSeen::Failed { times, .. } => *times,
            MirrorSeen::None => 0,
        };
        let first = failed(&MirrorSeen::None, one);
        let second = failed(&first, one);
        assert_eq!((times(&first), times(&second)), (1, 2));
        assert_eq!(times(&failed(&second, other)), 1);
    }
}
