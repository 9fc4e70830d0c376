//! Events of what is done between rollouts: suspension, repair, rebuilding, orphaning.

use aicr_crds::{application::Application, reason::EventReason};

use super::EventNote;
use crate::{
    message::listed,
    runtime::{Write, orphaning_refused, owned, suspension},
    seen::World,
};

/// How many Applications a note names.
const NAMED: usize = 20;

/// What an Event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The runtime.
    Runtime,
    /// The Application of this name, in Argo CD's namespace.
    Application(String),
}

/// The Events of a write that was carried out; `made` is the UID of the object that it made, where it made one.
///
/// Their names rest on what the write was decided on, so that a second create finds the first.
pub fn carried_out(world: &World, write: &Write, made: &str) -> Vec<(Subject, EventNote)> {
    match write {
        Write::Repair { on, managers, .. } => {
            let others =
                if managers.is_empty() { "an unnamed field manager".to_owned() } else { listed(managers, NAMED) };
            let note = format!("hand edits of {others} were forced back");
            let occurrence = format!("{}/{}", on.name, on.resource_version);
            vec![application(
                &on.name,
                EventNote::new(&on.uid, EventReason::FieldOwnershipOverridden, &occurrence, &note),
            )]
        }
        Write::Recreate(desired) => {
            let note = "the Application was deleted by hand and is written again; its resources stayed in place, but \
                        delete hooks of its chart may have run";
            vec![application(&desired.name, EventNote::new(made, EventReason::ApplicationRecreated, made, note))]
        }
        Write::RebuildPlan(stored) => {
            let note = format!("the lost plan {} was rebuilt from the Applications", stored.plan.digest());
            vec![runtime(world, EventReason::PlanRebuilt, made, &note)]
        }
        Write::SetAutomated { on, enabled } => {
            let refused = refused(world, &on.name);
            switched(world, &on.name, &refused, *enabled).map(|note| (Subject::Runtime, note)).into_iter().collect()
        }
        Write::Release { note } => released(world, note),
        Write::CreateRollout(_)
        | Write::RunAssessment(_)
        | Write::StoreAssessment { .. }
        | Write::Follow { .. }
        | Write::AddFinalizer
        | Write::Orphan { .. }
        | Write::StorePlan(_)
        | Write::WithdrawRemove { .. }
        | Write::DeletePlan(_)
        | Write::DeleteRollout(_) => Vec::new(),
    }
}

fn application(name: &str, note: EventNote) -> (Subject, EventNote) {
    (Subject::Application(name.to_owned()), note)
}

fn runtime(world: &World, reason: EventReason, occurrence: &str, note: &str) -> (Subject, EventNote) {
    (Subject::Runtime, EventNote::new(world.uid(), reason, occurrence, note))
}

/// Told with the last change, once every Application reads as it should but those whose change is refused; once for each edit
/// of the spec, and again with each of those that is not refused any more.
fn switched(world: &World, last: &str, refused: &[String], enabled: bool) -> Option<EventNote> {
    let is_refused = |name: &str| refused.iter().any(|refused| refused == name);
    let names: Vec<&str> = owned(world).map(Application::name).filter(|name| !is_refused(name)).collect();
    if names.is_empty() || suspension(world).pending.iter().any(|name| *name != last) {
        return None;
    }
    let (reason, state) =
        if enabled { (EventReason::EngineResumed, "on again") } else { (EventReason::EngineSuspended, "off") };
    let generation = world.runtime.metadata.generation.unwrap_or_default();
    let occurrence =
        if refused.is_empty() { generation.to_string() } else { format!("{generation}/{}", refused.join("/")) };
    let note = format!("automated sync is {state} on {}", listed(&names, NAMED));
    Some(EventNote::new(world.uid(), reason, &occurrence, &note))
}

/// Whose change is refused, this one aside.
fn refused(world: &World, last: &str) -> Vec<String> {
    suspension(world).refused.into_iter().map(|(name, _)| name).filter(|name| name != last).collect()
}

fn released(world: &World, note: &str) -> Vec<(Subject, EventNote)> {
    let refused = orphaning_refused(world)
        .map(|refused| runtime(world, EventReason::OrphanAnnotationRefused, "released", &refused));
    let orphaned = match world.runtime.spec.deletion_policy {
        aicr_crds::runtime::DeletionPolicy::Orphan => {
            Some(runtime(world, EventReason::RuntimeOrphaned, "released", note))
        }
        aicr_crds::runtime::DeletionPolicy::Delete => None,
    };
    refused.into_iter().chain(orphaned).collect()
}

/// The Event of an Application whose automated sync could not be changed, once for each and for each edit of the spec; with it
/// that of those that could, where this was the last.
pub fn suspension_refused(world: &World, application: &str, why: &str) -> Vec<EventNote> {
    let generation = world.runtime.metadata.generation.unwrap_or_default();
    let occurrence = format!("{application}/{generation}");
    let note = format!("automated sync of Application {application} could not be changed: {why}");
    let mut all = refused(world, application);
    all.push(application.to_owned());
    all.sort();
    let others = switched(world, application, &all, !world.runtime.spec.suspend_engine);
    std::iter::once(EventNote::new(world.uid(), EventReason::EngineSuspensionRefused, &occurrence, &note))
        .chain(others)
        .collect()
}
