//! Whether Argo CD can be driven, and where its project lets releases go, as the watches say it.

use aicr_decide::{resolve::Namespaces, seen::EngineState};

use jiff::Timestamp;

use super::rights::MayWrite;
use crate::{settings::DriveSettings, watch::Watches};

/// What the watches say of Argo CD at `now`, and what the API server lets us write there.
pub(super) fn state(watches: &Watches, rights: MayWrite, now: Timestamp) -> EngineState {
    if !watches.has_engine() {
        return EngineState::Missing;
    }
    if watches.applications.is_refused() || watches.projects.is_refused() || rights == MayWrite::No {
        return EngineState::Unauthorized;
    }
    if watches.projects.is_empty() {
        return EngineState::ProjectMissing;
    }
    if watches.repo_creds.is_some() && !watches.token().is_fresh(now) {
        return EngineState::CredentialsStale;
    }
    EngineState::Available
}

/// Where the project lets releases go, and the namespaces that it must list by their full name.
pub(super) fn namespaces(watches: &Watches, settings: &DriveSettings) -> Namespaces {
    let projects = watches.projects.all();
    let globs = projects.iter().flat_map(|project| project.namespaces()).map(str::to_owned).collect();
    Namespaces::new(globs, [settings.namespace.clone(), settings.decide.engine.namespace.clone()])
}

#[cfg(test)]
mod tests;
