//! The step in flight with its clocks: what `status.current` holds, found anew where it was lost.

use aicr_crds::{
    RuntimeRollout,
    rollout::{CurrentStep, Step},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{position::Position, why::Halt};

/// Time for a step whose `actionTimeout` cannot be read (the CRD's CEL forbids that).
const DEFAULT_TIMEOUT: SignedDuration = SignedDuration::from_mins(30);

/// `status.current` of this step at `now`.
///
/// Where status was lost, or speaks of another step, its clocks start now. Halted time does not count: on release
/// `timeoutFrom` is now.
pub fn current(position: &Position<'_>, index: usize, step: &Step, halt: Option<Halt>, now: Timestamp) -> CurrentStep {
    let Some(mut current) = known(position, index, step).cloned() else { return begun(index, step, halt, now) };
    if current.halted && halt.is_none() {
        current.timeout_from = Time(now);
        current.failing_since = None;
    }
    current.halted = halt.is_some();
    current
}

/// What status knows of this step; nothing where it speaks of another.
pub(super) fn known<'a>(position: &Position<'a>, index: usize, step: &Step) -> Option<&'a CurrentStep> {
    let stored = position.status.and_then(|status| status.current.as_ref());
    stored.filter(|current| current.index == place(index) && current.release == step.release)
}

fn place(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// `status.current` of this step where it begins at `now`, whatever was known of it.
pub fn begun(index: usize, step: &Step, halt: Option<Halt>, now: Timestamp) -> CurrentStep {
    CurrentStep {
        release: step.release.clone(),
        index: place(index),
        operation: step.operation,
        started_at: Time(now),
        timeout_from: Time(now),
        observed: None,
        halted: halt.is_some(),
        refreshed_at: None,
        hard_refreshed_at: None,
        gate_passed_since: None,
        sync_started_at: None,
        terminated_at: None,
        failing_since: None,
    }
}

/// When a step of these clocks fails.
pub(super) fn times_out(clocks: &CurrentStep, rollout: &RuntimeRollout) -> Timestamp {
    clocks.timeout_from.0 + action_timeout(rollout)
}

/// From when an operation that keeps it back may be terminated: half of its time has passed.
pub(super) fn terminates_after(clocks: &CurrentStep, rollout: &RuntimeRollout) -> Timestamp {
    clocks.timeout_from.0 + action_timeout(rollout) / 2
}

/// The rollout's action timeout.
fn action_timeout(rollout: &RuntimeRollout) -> SignedDuration {
    aicr_crds::duration::parse(&rollout.spec.action_timeout).unwrap_or(DEFAULT_TIMEOUT)
}
