//! Whether Argo CD can be driven, and where its project lets releases go, as the watches say it.

use aicr_decide::{resolve::Namespaces, seen::EngineState};

use crate::{settings::DriveSettings, watch::Watches};

/// What the watches say of Argo CD.
pub(super) fn state(watches: &Watches) -> EngineState {
    if !watches.has_engine() {
        return EngineState::Missing;
    }
    if watches.applications.is_refused() || watches.projects.is_refused() {
        return EngineState::Unauthorized;
    }
    if watches.projects.is_empty() {
        return EngineState::ProjectMissing;
    }
    EngineState::Available
}

/// Where the project lets releases go, and the namespaces that it must list by their full name.
pub(super) fn namespaces(watches: &Watches, settings: &DriveSettings) -> Namespaces {
    let projects = watches.projects.all();
    let globs = projects.iter().flat_map(|project| project.namespaces()).map(str::to_owned).collect();
    Namespaces::new(globs, [settings.namespace.clone(), settings.decide.engine.namespace.clone()])
}
