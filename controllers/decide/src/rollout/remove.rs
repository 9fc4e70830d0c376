//! The Remove step: the marks in one patch, an entry in `written`, all gates again, nothing shared any more, then the delete.

use aicr_crds::{
    application::{Application, AutomatedSync},
    reason::StepReason,
    rollout::{Operation, Step, WrittenEntry},
};

use super::{
    position::Position,
    share::handed_over,
    start::Due,
    verdict::{ObjectRef, Verdict, Write},
    why::{Outlook, Why},
};
use crate::{
    message::listed,
    seam,
    seen::{RolloutSeen, is_busy},
};

/// How many objects a message names.
const NAMED: usize = 5;
/// What a removal leaves on purpose (A107, A139).
pub(crate) const STAYS: &str =
    "removed; CRDs, resources annotated helm.sh/resource-policy: keep and the namespace stay on purpose";

/// How a Remove goes on.
pub(super) fn remove(due: Due<'_>) -> Verdict {
    let Due { position, step, application, .. } = due;
    let Some(application) = application else {
        // Deleted earlier by an approved Remove: the inventory lets it go, and there is nothing left to do.
        let entry = WrittenEntry { uid: String::new(), ready: true };
        return Verdict::Do(Write::Record { release: step.release.clone(), entry }, due.why());
    };
    let marked = application.annotations.delete_rollout.as_deref() == Some(position.name());
    if application.is_deleting() {
        // In deletion already: nothing is deleted again, and no finalizer can be added (A141).
        return if marked { recorded(due, application) } else { claimed(due, application) };
    }
    if let Some(reason) = unremovable(application) {
        return due.waits(reason, "a Remove waits for it".to_owned());
    }
    // Argo CD writes the whole finalizer list from its cache and may have erased ours (A134).
    if !marked || !application.cascades() || application.automated == AutomatedSync::Enabled {
        return Verdict::Do(Write::PrepareRemove { on: ObjectRef::of(application) }, due.why());
    }
    if position.entry(&step.release).is_none() {
        return recorded(due, application);
    }
    handed_over(due, application)
        .filter(|_| !seam::is_broken("remove: handed over"))
        .unwrap_or_else(|| Verdict::Do(Write::Delete { on: ObjectRef::of(application) }, due.why()))
}

fn claimed(due: Due<'_>, application: &Application) -> Verdict {
    Verdict::Do(Write::ClaimRemove { on: ObjectRef::of(application) }, due.why())
}

fn recorded(due: Due<'_>, application: &Application) -> Verdict {
    let entry = WrittenEntry { uid: application.uid().to_owned(), ready: false };
    Verdict::Do(Write::Record { release: due.step.release.clone(), entry }, due.why())
}

/// A failed comparison makes Argo CD forget delete hooks (A135), and a running operation is served before deletion (A136).
fn unremovable(application: &Application) -> Option<StepReason> {
    let status = &application.status;
    if status.conditions.iter().any(|condition| condition.kind == "ComparisonError") {
        return Some(StepReason::ComparisonError);
    }
    is_busy(application).then_some(StepReason::SyncRunning)
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
