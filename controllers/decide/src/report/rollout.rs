//! A rollout's status, from its verdict.

use aicr_crds::{
    RuntimeRollout, RuntimeRolloutStatus,
    keys::annotation,
    reason::StepReason,
    rollout::{ApprovalState, CurrentStep, Operation, Phase, ReleaseState, ReleaseStatus, Step, ValidationStatus},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    message::{CONDITION_LIMIT, bounded},
    resolve::Stage,
    rollout::{
        Outlook, Position, STAYS, Verdict, Why, Write, begun, current, halt, validation_begun, validation_input,
    },
    seen::RolloutSeen,
};

/// Bytes of a release's message.
const RELEASE_LIMIT: usize = 4096;

/// The status that this verdict is, given how far the rollout has come and what is stored.
///
/// `None` where nothing may be written: the rollout is a newer operator's, or the verdict says nothing new.
pub fn status(
    position: &Position<'_>,
    seen: &RolloutSeen,
    verdict: &Verdict,
    now: Timestamp,
) -> Option<RuntimeRolloutStatus> {
    let rollout = position.rollout;
    let phase = match phase(verdict, position, seen) {
        Shown::Nothing => return None,
        Shown::Phase(phase) => phase,
    };
    let none = RuntimeRolloutStatus::default();
    let stored = position.status.unwrap_or(&none);
    let step = in_question(position, verdict);
    let current = step.map(|index| observed(position, seen, index, verdict, now));
    let ended = ended_at(rollout, verdict, now);
    Some(RuntimeRolloutStatus {
        phase,
        approval: Some(approval_state(rollout, now)),
        step: Some(progress(position)),
        message: message(verdict, stored),
        started_at: stored.started_at.clone().or_else(|| current.as_ref().map(|current| current.started_at.clone())),
        releases: releases(position, stored, verdict, current.as_ref(), now),
        current: current.filter(|_| ended.is_none()),
        finished_at: ended,
        validation: validated(position, seen, verdict).or_else(|| stored.validation.clone()),
    })
}

/// Its last validation run, as far as there is one.
fn validated(position: &Position<'_>, seen: &RolloutSeen, verdict: &Verdict) -> Option<ValidationStatus> {
    if seen.facts.validation.jobs.is_empty() {
        return None;
    }
    let input = validation_input(position.rollout);
    let mine = seen.facts.validation.jobs.iter().filter(|job| job.input == input && job.stage == Stage::Validation);
    let last = mine.max_by_key(|job| job.attempt)?;
    let report = seen.facts.validation.reports.get(&last.name);
    let result = if let Why::ValidationFailed(message) = verdict.why() {
        Some(bounded(message, RELEASE_LIMIT))
    } else {
        matches!(verdict.why(), Why::Validated { .. }).then(|| "passed".to_owned())
    };
    Some(ValidationStatus {
        job: last.name.clone(),
        run: last.run.clone(),
        result,
        evidence: report.and_then(|report| report.evidence.clone()),
    })
}

/// The phase to show, if any is.
enum Shown {
    Nothing,
    Phase(Option<Phase>),
}

fn phase(verdict: &Verdict, position: &Position<'_>, seen: &RolloutSeen) -> Shown {
    if let Verdict::End(outcome, _) = verdict {
        return Shown::Phase(Some((*outcome).into()));
    }
    // A mark that it left is taken off first. Once status says that it has ended, nobody asks whether that was told.
    if let Verdict::Do(_, Why::Ended(_)) = verdict {
        return Shown::Nothing;
    }
    let phase = match verdict.why() {
        Why::NewerOperator(_) | Why::TokenSpent => return Shown::Nothing,
        Why::Ended(outcome) => Phase::from(*outcome),
        Why::AwaitingApproval(_) | Why::ApprovalMismatch => Phase::AwaitingApproval,
        Why::AcknowledgementOwed { .. } => Phase::AwaitingAcknowledgement,
        Why::Drift(_) | Why::Unfit(..) | Why::StepUnknown(_) => Phase::Stalled,
        Why::ValidationUnavailable(_) | Why::Validating { .. } => Phase::Validating,
        Why::Held(_) if validation_begun(position, seen) => Phase::Validating,
        Why::Held(_) if !position.is_begun_at_all() => return Shown::Phase(None),
        Why::Held(_)
        | Why::Step { .. }
        | Why::StepFailed { .. }
        | Why::StepReady { .. }
        | Why::Starting { .. }
        | Why::RuntimeGone
        | Why::DeadlinePassed { .. }
        | Why::Revoked { .. }
        | Why::Superseded(_)
        | Why::ApprovalExpired(_)
        | Why::Foreign(_)
        | Why::ValidationFailed(_)
        | Why::Validated { .. }
        | Why::Complete => Phase::Progressing,
    };
    Shown::Phase(Some(phase))
}

/// An ended rollout keeps the message it ended with; one whose status was lost has only its outcome.
fn message(verdict: &Verdict, stored: &RuntimeRolloutStatus) -> Option<String> {
    if let Why::Ended(outcome) = verdict.why() {
        return stored.message.clone().or_else(|| Some(outcome.to_string()));
    }
    Some(bounded(verdict.why().to_string(), CONDITION_LIMIT))
}

/// The step that is in flight, that this verdict begins, or that has begun and waits to be written.
fn in_question(position: &Position<'_>, verdict: &Verdict) -> Option<usize> {
    let begun = match verdict {
        Verdict::Do(Write::Begin { index }, _) => Some(*index),
        Verdict::Do(
            Write::Create(_)
            | Write::Apply { .. }
            | Write::PrepareRemove { .. }
            | Write::ClaimRemove { .. }
            | Write::Annotate { .. }
            | Write::Delete { .. }
            | Write::Record { .. },
            _,
        )
        // Its marks come off before it fails; its time stays known, or the step would begin anew.
        | Verdict::Do(Write::WithdrawRemove { .. }, Why::StepFailed { .. })
        // What helps another release to take over what a Remove would delete, or its own to be deleted.
        | Verdict::Do(
            Write::Refresh { .. } | Write::Sync { .. } | Write::Terminate { .. },
            Why::Starting { .. } | Why::Step { .. },
        )
        | Verdict::Wait(Why::Step { .. }, _) => position.next,
        Verdict::Do(
            Write::Refresh { .. }
            | Write::Sync { .. }
            | Write::Terminate { .. }
            | Write::WithdrawRemove { .. }
            | Write::RunValidation(_)
            | Write::SpendToken { .. },
            _,
        )
        | Verdict::Wait(..)
        | Verdict::End(..) => None,
    };
    position.in_flight.or(begun)
}

fn observed(
    position: &Position<'_>,
    seen: &RolloutSeen,
    index: usize,
    verdict: &Verdict,
    now: Timestamp,
) -> CurrentStep {
    let step = &position.steps()[index];
    let mut step = match verdict {
        Verdict::Do(Write::Begin { .. }, _) => begun(index, step, halt(seen), now),
        Verdict::Do(..) | Verdict::Wait(..) | Verdict::End(..) => current(position, index, step, halt(seen), now),
    };
    if let Why::Step { reason, detail, .. } | Why::StepFailed { reason, detail, .. } = verdict.why() {
        step.observed = Some(bounded(worded(*reason, detail), RELEASE_LIMIT));
    }
    if let Why::Step { outlook, halt, .. } = verdict.why() {
        let hopeless = *outlook == Outlook::Hopeless && halt.is_none();
        step.failing_since = hopeless.then(|| step.failing_since.unwrap_or(Time(now)));
        let passes = *outlook == Outlook::Passing;
        step.gate_passed_since = passes.then(|| step.gate_passed_since.unwrap_or(Time(now)));
    }
    match verdict {
        Verdict::Do(Write::Refresh { hard, .. }, _) => {
            step.refreshed_at = Some(Time(now));
            step.hard_refreshed_at = hard.then_some(Time(now)).or(step.hard_refreshed_at);
        }
        Verdict::Do(Write::Sync { .. }, _) => step.sync_started_at = Some(Time(now)),
        Verdict::Do(Write::Terminate { .. }, _) => step.terminated_at = Some(Time(now)),
        Verdict::Do(..) | Verdict::Wait(..) | Verdict::End(..) => {}
    }
    step
}

fn worded(reason: StepReason, detail: &str) -> String {
    if detail.is_empty() { reason.to_string() } else { format!("{reason}: {detail}") }
}

/// What has become of the approval, from the spec alone.
pub fn approval_state(rollout: &RuntimeRollout, now: Timestamp) -> ApprovalState {
    let spec = &rollout.spec;
    if spec.revocation.is_some() {
        return ApprovalState::Revoked;
    }
    match &spec.approval {
        _ if !spec.needs_approval() => ApprovalState::NotRequired,
        None => ApprovalState::Required,
        Some(approval) if approval.expires_at.0 <= now => ApprovalState::Expired,
        Some(_) => ApprovalState::Approved,
    }
}

/// `9/18`: the step in flight or next, of all.
fn progress(position: &Position<'_>) -> String {
    let total = position.steps().len();
    format!("{}/{total}", (position.done() + 1).min(total))
}

fn ended_at(rollout: &RuntimeRollout, verdict: &Verdict, now: Timestamp) -> Option<Time> {
    let recorded =
        rollout.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::FINISHED_AT));
    let recorded = recorded.and_then(|text| text.parse().ok()).map(Time);
    match verdict {
        Verdict::End(..) => recorded.or(Some(Time(now))),
        Verdict::Wait(Why::Ended(_), _) => recorded,
        Verdict::Do(..) | Verdict::Wait(..) => None,
    }
}

fn releases(
    position: &Position<'_>,
    stored: &RuntimeRolloutStatus,
    verdict: &Verdict,
    current: Option<&CurrentStep>,
    now: Timestamp,
) -> Vec<ReleaseStatus> {
    // An ended rollout's releases stay as they were when it ended.
    if let Why::Ended(_) = verdict.why() {
        return stored.releases.clone();
    }
    let known = |release: &str| stored.releases.iter().find(|known| known.release == release);
    let each = position.steps().iter().enumerate().filter_map(|(index, step)| {
        let state = state(position, index, step, verdict)?;
        let known = known(&step.release);
        let here = current.filter(|current| current.release == step.release);
        let finished = match state {
            ReleaseState::Ready | ReleaseState::Removed | ReleaseState::Failed => {
                known.and_then(|known| known.finished_at.clone()).or(Some(Time(now)))
            }
            ReleaseState::Progressing | ReleaseState::Suspended | ReleaseState::Deleting => None,
        };
        Some(ReleaseStatus {
            release: step.release.clone(),
            state,
            message: match state {
                ReleaseState::Ready => None,
                ReleaseState::Removed => Some(STAYS.to_owned()),
                ReleaseState::Progressing | ReleaseState::Failed | ReleaseState::Suspended | ReleaseState::Deleting => {
                    here.and_then(|current| current.observed.clone())
                }
            },
            started_at: known
                .and_then(|known| known.started_at.clone())
                .or_else(|| here.map(|current| current.started_at.clone())),
            finished_at: finished,
        })
    });
    each.collect()
}

fn state(position: &Position<'_>, index: usize, step: &Step, verdict: &Verdict) -> Option<ReleaseState> {
    let recorded_now = match verdict {
        Verdict::Do(Write::Record { release, entry }, _) => *release == step.release && entry.ready,
        Verdict::Do(..) | Verdict::Wait(..) | Verdict::End(..) => false,
    };
    let removes = step.operation == Operation::Remove;
    if position.is_done(index) || recorded_now {
        return Some(if removes { ReleaseState::Removed } else { ReleaseState::Ready });
    }
    if position.in_flight != Some(index) {
        return None;
    }
    let why = verdict.why();
    let state = if matches!(why, Why::StepFailed { .. }) {
        ReleaseState::Failed
    } else if matches!(why, Why::Step { halt: Some(_), .. }) {
        ReleaseState::Suspended
    } else if removes {
        ReleaseState::Deleting
    } else {
        ReleaseState::Progressing
    };
    Some(state)
}
