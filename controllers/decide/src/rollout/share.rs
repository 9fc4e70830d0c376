//! Objects that a release shares with the one that is to be removed, as after a rename: who stays takes them over first.
//!
//! Argo CD's cascade deletes what an Application's tracking annotation names as its own at that moment. Two Applications
//! that render one object take it from each other with each sync (A68, A152). So the one to be removed syncs no more from
//! the moment it is marked, and is deleted only once nobody who stays says that something is shared with it.

use aicr_crds::{application::Application, reason::StepReason, rollout::Operation};
use jiff::Timestamp;

use super::{
    drift::is_owned,
    position::Position,
    readiness::names_any,
    remove::removed_by,
    start::{Due, desired},
    verdict::{ObjectRef, Verdict, Write},
};
use crate::{message::listed, seen::is_busy};

/// How many releases a message names.
const NAMED: usize = 5;

/// What is to be done before the marked Application of this step is deleted; `None` once nothing is shared.
pub(super) fn handed_over(due: &Due<'_>, leaving: &Application) -> Option<Verdict> {
    let Due { position, seen, .. } = due;
    let wait = |reason, detail| Some(due.waits(reason, detail));
    // The mark asked for a comparison: what it says was seen without a sync of its own behind it.
    let compared = leaving.status.reconciled_at.filter(|_| !is_asked(leaving));
    let Some(since) = compared else {
        return wait(StepReason::WaitingForComparison, "a Remove waits for Argo CD to compare it once more".to_owned());
    };
    let staying = staying(position, leaving);
    let stale = |other: &Application| !is_fresh(other, since);
    if let Some(other) = staying.iter().find(|other| stale(other) && !is_asked(other) && !is_busy(other)) {
        return Some(Verdict::Do(Write::Refresh { on: ObjectRef::of(other), hard: false }, due.why()));
    }
    let holds = |other: &&&Application| shares(other, leaving.name());
    let sharing: Vec<&Application> = staying.iter().filter(holds).copied().collect();
    let takes = sharing.iter().find(|other| !stale(other) && !is_busy(other) && !has_synced(other, since));
    // Of what the target lacks, nothing is synced.
    if let Some((other, source)) =
        takes.and_then(|other| Some((other, desired(position, seen, other.name())?.source())))
    {
        return Some(Verdict::Do(Write::Sync { on: ObjectRef::of(other), source }, due.why()));
    }
    let names = |all: &[&Application]| {
        let names: Vec<&str> = all.iter().map(|other| other.name()).collect();
        listed(&names, NAMED)
    };
    if !sharing.is_empty() {
        let detail = format!("{} shares objects with it, and has not taken them over yet", names(&sharing));
        return wait(StepReason::SharedResource, detail);
    }
    let awaited: Vec<&Application> = staying.into_iter().filter(|other| stale(other)).collect();
    let detail = || format!("a Remove waits for Argo CD to compare {} once more", names(&awaited));
    if awaited.is_empty() { None } else { wait(StepReason::WaitingForComparison, detail()) }
}

/// Who may share objects with it, and stays: what this rollout installed, and whoever is said to.
fn staying<'a>(position: &Position<'a>, leaving: &Application) -> Vec<&'a Application> {
    let removed = removed_by(position);
    let installed = |name: &str| {
        position.steps().iter().any(|step| step.operation == Operation::Install && step.release == name)
            && position.entry(name).is_some()
    };
    let is_due =
        |other: &Application| installed(other.name()) || shares(other, leaving.name()) || shares(leaving, other.name());
    let stays = |other: &&Application| {
        is_owned(other, &position.rollout.spec.runtime.uid) && !other.is_deleting() && !removed.contains(&other.name())
    };
    position.applications().filter(stays).filter(|other| is_due(other)).collect()
}

/// Whether Argo CD says that an object of this Application is one of the other's, too.
fn shares(application: &Application, other: &str) -> bool {
    let warnings = application.status.conditions.iter().filter(|condition| condition.kind == "SharedResourceWarning");
    // Before these words stands the object, which may be called as the release is.
    let mut owners = warnings.map(|condition| condition.message.split_once("part of applications"));
    owners.any(|parts| parts.is_some_and(|(_, owners)| names_any(owners, &[other])))
}

/// Compared later than the other, and after its own last operation.
fn is_fresh(application: &Application, since: Timestamp) -> bool {
    let finished = application.status.operation.as_ref().and_then(|state| state.finished_at);
    let after = |at: Timestamp| finished.is_none_or(|finished| at >= finished);
    application.status.reconciled_at.is_some_and(|at| at > since && after(at))
}

fn is_asked(application: &Application) -> bool {
    application.annotations.refresh.is_some()
}

/// Whether it has applied everything since: a second time would change nothing.
fn has_synced(application: &Application, since: Timestamp) -> bool {
    let started = application.status.operation.as_ref().and_then(|state| state.started_at);
    started.is_some_and(|started| started > since)
}
