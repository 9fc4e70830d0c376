//! The Remove step: the marks in one patch, an entry in `written`, all gates again, nothing shared any more, then the delete.

use aicr_crds::{
    application::{Application, AutomatedSync},
    reason::StepReason,
    rollout::{Operation, Step, WrittenEntry},
};

use super::{
    position::Position,
    readiness::{DETAIL_LIMIT, is_cached, may_terminate, operation_words},
    share::handed_over,
    start::Due,
    verdict::{ObjectRef, Verdict, Write},
    why::{Outlook, Why},
};
use crate::{
    message::{bounded, listed},
    seam,
    seen::{RolloutSeen, is_busy},
};

/// How many objects a message names.
const NAMED: usize = 5;
/// What a removal leaves on purpose (A107, A139).
pub(crate) const STAYS: &str =
    "removed; CRDs, resources annotated helm.sh/resource-policy: keep and the namespace stay on purpose";

/// How a Remove goes on.
pub(super) fn remove(due: &Due<'_>) -> Verdict {
    let Due { position, step, application, .. } = due;
    let Some(application) = *application else {
        // Deleted earlier by an approved Remove: the inventory lets it go, and there is nothing left to do.
        let entry = WrittenEntry { uid: String::new(), ready: true };
        return Verdict::Do(Write::Record { release: step.release.clone(), entry }, due.why());
    };
    let marked = application.annotations.delete_rollout.as_deref() == Some(position.name());
    if application.is_deleting() {
        return in_deletion(due, application, marked);
    }
    if let Some(verdict) = unremovable(due, application) {
        return verdict;
    }
    // Argo CD writes the whole finalizer list from its cache and may have erased ours (A134).
    if !marked || !application.cascades() || application.automated == AutomatedSync::Enabled {
        if due.now >= due.timeout() {
            // Whatever it waited for: marked anew, it would wait for ever.
            return due.fails();
        }
        return Verdict::Do(Write::PrepareRemove { on: ObjectRef::of(application) }, due.why());
    }
    if position.entry(&step.release).is_none() {
        return recorded(due, application);
    }
    handed_over(due, application)
        .filter(|_| !seam::is_broken("remove: handed over"))
        .unwrap_or_else(|| Verdict::Do(Write::Delete { on: ObjectRef::of(application) }, due.why()))
}

/// In deletion already: nothing is deleted again, and no finalizer can be added (A141). What somebody deleted without its
/// resources is not removed by that: once it is gone it has disappeared (B58).
fn in_deletion(due: &Due<'_>, application: &Application, marked: bool) -> Verdict {
    if marked {
        return recorded(due, application);
    }
    let cascades = application.annotations.delete_rollout.is_some() || application.cascades();
    if cascades || seam::is_broken("remove: deleted by somebody") {
        return Verdict::Do(Write::ClaimRemove { on: ObjectRef::of(application) }, due.why());
    }
    let words = ["deleted by somebody, and without its resources".to_owned(), remaining(application, due.seen)];
    due.waits(StepReason::Deleting, words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; "))
}

fn recorded(due: &Due<'_>, application: &Application) -> Verdict {
    let entry = WrittenEntry { uid: application.uid().to_owned(), ready: false };
    Verdict::Do(Write::Record { release: due.step.release.clone(), entry }, due.why())
}

/// A failed comparison makes Argo CD forget delete hooks (A135), and a running operation is served before deletion (A136): both
/// are helped as in any other step.
fn unremovable(due: &Due<'_>, application: &Application) -> Option<Verdict> {
    let error = application.status.conditions.iter().find(|condition| condition.kind == "ComparisonError");
    let (reason, detail, help) = if let Some(error) = error {
        let cached = is_cached(&error.message) && due.clocks.hard_refreshed_at.is_none();
        let help = cached.then(|| Write::Refresh { on: ObjectRef::of(application), hard: true });
        (StepReason::ComparisonError, format!("a Remove waits for it: {}", error.message), help)
    } else if is_busy(application) {
        let ends = may_terminate(application, &due.clocks, due.position.rollout, due.now);
        let help = ends.then(|| Write::Terminate { on: ObjectRef::of(application) });
        (StepReason::SyncRunning, format!("a Remove waits for it: {}", operation_words(application)), help)
    } else {
        return None;
    };
    let detail = bounded(&detail, DETAIL_LIMIT);
    Some(match help {
        Some(write) if due.now < due.timeout() => Verdict::Do(write, waits(due.step, reason, detail)),
        Some(_) | None => due.waits(reason, detail),
    })
}

/// A step that has not started and waits for something on its Application.
pub(super) fn waits(step: &Step, reason: StepReason, detail: String) -> Why {
    Why::Step {
        release: step.release.clone(),
        operation: step.operation,
        reason,
        detail,
        halt: None,
        outlook: Outlook::Open,
    }
}

/// What keeps an Application in deletion: its finalizers, Argo CD's error, custom resources whose operator goes along with them
/// (B81), and live objects that do not go (B24, B53).
pub(super) fn remaining(application: &Application, seen: &RolloutSeen) -> String {
    let finalizers = application.metadata.finalizers.clone().unwrap_or_default();
    let held = (!finalizers.is_empty()).then(|| format!("held by {}", finalizers.join(", ")));
    let error = application.status.conditions.iter().find(|condition| condition.kind == "DeletionError");
    let live = &seen.facts.live;
    let named = |all: &[String], what: &str| (!all.is_empty()).then(|| format!("{what}: {}", listed(all, NAMED)));
    let own = named(&live.own_customs, "custom resources are deleted along with what finalizes them");
    let stuck = named(&live.stuck, "still there");
    let parts: Vec<String> =
        held.into_iter().chain(error.map(|condition| condition.message.clone())).chain(own).chain(stuck).collect();
    parts.join("; ")
}

/// Releases that a rollout removes, by name.
pub(super) fn removed_by<'a>(position: &Position<'a>) -> Vec<&'a str> {
    let removes = position.steps().iter().filter(|step| step.operation == Operation::Remove);
    removes.map(|step| step.release.as_str()).collect()
}
