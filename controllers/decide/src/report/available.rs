//! Available: each release judged at the plan it is at.

use aicr_crds::{
    Digest,
    application::{Application, ApplicationStatus, HealthStatus, SyncStatus},
    reason::{Reason, StepReason},
    rollout::Operation,
};

use super::conditions::Answer;
use crate::{
    message::bounded,
    rollout::{Position, is_owned},
    runtime::{Place, Places, contradictions, desired, moved_missing, owned},
    seen::World,
};

/// Bytes of Argo CD's words in a message.
const WORDS: usize = 512;

/// Every release that should be ready by now.
pub(super) fn available(world: &World) -> Answer {
    if world.runtime.spec.suspend_engine {
        return Answer::no(Reason::NotReady, "the engine is suspended");
    }
    if world.active().is_none() {
        return Answer::no(Reason::NoActivePlan, "no rollout has succeeded yet");
    }
    match first_unready(world) {
        Some((release, why)) => Answer::no(Reason::NotReady, format!("release {release}: {why}")),
        None => Answer::yes(Reason::Healthy, "every release is ready"),
    }
}

/// The first release, by place, that is not ready and should be by now, and why.
fn first_unready(world: &World) -> Option<(String, String)> {
    first(world, |position, release| !is_in_flight(position, release))
}

/// The first release, by place, that is not ready, the one of a step in flight included; none where nothing is active.
pub(super) fn first_unhealthy(world: &World) -> Option<(String, String)> {
    let is_there = world.active().is_some() || owned(world).next().is_some();
    if is_there { first(world, |_, _| true) } else { None }
}

fn first(world: &World, counts: impl Fn(&Position<'_>, &str) -> bool) -> Option<(String, String)> {
    let position = world.unfinished().map(|rollout| Position::find(rollout, &world.applications));
    let active = world.active().and_then(|digest| world.plans.get(&digest));
    let mut releases: Vec<String> = match active {
        Some((_, stored)) => stored.plan.releases().map(|release| release.content.id.clone()).collect(),
        // Without the plan, what is there is judged.
        None => owned(world).map(|application| application.name().to_owned()).collect(),
    };
    if releases.is_empty() {
        return Some(("of the active plan".to_owned(), "the plan is missing, and so is every Application".to_owned()));
    }
    let moved = position.iter().flat_map(|position| {
        let flying = position.in_flight.map(|index| position.steps()[index].release.clone());
        position.written.iter().filter(|(_, entry)| entry.ready).map(|(release, _)| release.clone()).chain(flying)
    });
    for release in moved.chain(moved_missing(world)) {
        if !releases.contains(&release) {
            releases.push(release);
        }
    }
    let places = Places::of(world);
    releases.into_iter().find_map(|release| {
        let counts = |position: &Position<'_>| counts(position, &release) && !is_removed(position, &release);
        let counts = position.as_ref().is_none_or(counts);
        let why = unready(world, &places, position.as_ref(), &release).filter(|_| counts)?;
        Some((release, why))
    })
}

/// The step in flight counts only once it fails, which ends the rollout.
fn is_in_flight(position: &Position<'_>, release: &str) -> bool {
    position.in_flight.is_some_and(|index| position.steps()[index].release == release)
}

/// A release that is being removed no longer counts.
fn is_removed(position: &Position<'_>, release: &str) -> bool {
    position
        .steps()
        .iter()
        .any(|step| step.release == release && step.operation == Operation::Remove && position.entry(release).is_some())
}

fn unready(world: &World, places: &Places<'_>, position: Option<&Position<'_>>, release: &str) -> Option<String> {
    let Some(application) = world
        .applications
        .iter()
        .find(|application| application.name() == release && is_owned(application, world.uid()))
    else {
        return Some("its Application is missing".to_owned());
    };
    let plan = plan_at(places, position, application);
    let (reason, words) = state(world, application, plan)?;
    let words = if words.is_empty() { String::new() } else { format!(": {}", bounded(&words, WORDS)) };
    Some(format!("{reason}{words}"))
}

/// The plan that a release is judged at: moved by the unfinished rollout, at that one's target.
fn plan_at(places: &Places<'_>, position: Option<&Position<'_>>, application: &Application) -> Option<Digest> {
    if let Some(position) = position {
        let moved = position.entry(application.name()).is_some_and(|entry| entry.ready);
        if moved || is_in_flight(position, application.name()) {
            return position.rollout.spec.target_plan_digest;
        }
    }
    match places.place(application) {
        Place::At { plan, .. } => Some(plan),
        Place::Contradiction(_) | Place::Nowhere => None,
    }
}

fn state(world: &World, application: &Application, plan: Option<Digest>) -> Option<(StepReason, String)> {
    let status = &application.status;
    if application.is_deleting() {
        return Some((StepReason::Deleting, String::new()));
    }
    let Some(plan) = plan else {
        let named = contradictions(world).into_iter().find(|message| message.contains(application.name()));
        return Some((StepReason::SpecDrifted, named.unwrap_or_default()));
    };
    // Where the plan cannot be read, what was written last is what counts.
    let noted = application.annotations.fingerprint;
    let wanted = desired(world, plan, application.name(), "").map(|desired| desired.fingerprint()).or(noted);
    if wanted.is_some_and(|wanted: Digest| wanted != application.fingerprint) {
        return Some((StepReason::SpecDrifted, String::new()));
    }
    let error = |kinds: [&str; 2]| {
        status
            .conditions
            .iter()
            .find(|condition| kinds.contains(&condition.kind.as_str()))
            .map(|one| one.message.clone())
    };
    if let Some(message) = error(["InvalidSpecError", "UnknownError"]) {
        return Some((StepReason::SpecRefused, message));
    }
    if let Some(message) = error(["ComparisonError", "ComparisonError"]) {
        return Some((StepReason::ComparisonError, message));
    }
    if status.compared_to != Some(application.fingerprint) {
        return Some((StepReason::WaitingForComparison, String::new()));
    }
    observed(status)
}

/// What Argo CD's last comparison says against it.
fn observed(status: &ApplicationStatus) -> Option<(StepReason, String)> {
    match status.sync {
        Some(SyncStatus::Synced) => {}
        Some(SyncStatus::OutOfSync) => {
            let names: Vec<&str> = status.unsynced.iter().map(|resource| resource.name.as_str()).collect();
            return Some((StepReason::OutOfSync, names.join(", ")));
        }
        Some(SyncStatus::Unknown) | None => return Some((StepReason::WaitingForComparison, String::new())),
    }
    let health = match status.health {
        Some(HealthStatus::Healthy) => return None,
        Some(HealthStatus::Progressing) => StepReason::HealthProgressing,
        Some(HealthStatus::Degraded) => StepReason::HealthDegraded,
        Some(HealthStatus::Suspended) => StepReason::HealthSuspended,
        Some(HealthStatus::Missing) => StepReason::HealthMissing,
        Some(HealthStatus::Unknown) | None => StepReason::HealthUnknown,
    };
    Some((health, String::new()))
}
