//! What an installation says once to the hands.

use std::collections::BTreeSet;

use aicr_decide::{resolve::Installation, seen::Settings};
use aicr_mirror::SourcesConfig;

use crate::{clock::Clock, credentials::TokenSettings, jobs::JobSettings};

/// Seconds for which a watch is asked for: it is noticed within five minutes that one is dead.
pub const WATCH_SECONDS: u32 = 290;

/// Everything that flags decide, for as long as the process lives.
#[derive(Clone, Debug)]
pub struct DriveSettings {
    /// The operator's namespace: plans, snapshots, assessments, and the registry's docker config Secret.
    pub namespace: String,
    /// What decisions need.
    pub decide: Settings,
    /// What AICR's command lines need.
    pub install: Installation,
    /// Authorities of the registry's certificate beside the system's, in PEM; may be empty.
    pub registry_ca_bundle: String,
    /// How chart sources are spoken to.
    pub chart_sources: SourcesConfig,
    /// How AICR Jobs look, where they run, and which Secret holds the registry's credentials.
    pub jobs: JobSettings,
    /// Custom resources whose own word counts before a release is ready, by the names of their CRDs (`plural.group`).
    pub gates: BTreeSet<String>,
    /// Images of AICR's checks, as `REPOSITORY:TAG@DIGEST`: others fail a validation run.
    pub validator_images: Vec<String>,
    /// How the registry's tokens are fetched and kept; `None` where the administrator supplies the Secrets.
    pub tokens: Option<TokenSettings>,
    /// Seconds for which one watch is asked for, 1 to 294; usually [`WATCH_SECONDS`]. One that says nothing for five more
    /// counts as dead, and is begun again (B91).
    pub watch_seconds: u32,
    /// What time it is.
    pub clock: Clock,
    /// Who writes, as Events name it: the pod; cut at 128 characters.
    pub instance: String,
}

impl DriveSettings {
    /// Namespaces that hold AICR Jobs.
    pub(crate) fn job_namespaces(&self) -> [String; 3] {
        let JobSettings { jobs_namespace, discovery_namespace, validation_namespace, .. } = &self.jobs;
        [jobs_namespace.clone(), discovery_namespace.clone(), validation_namespace.clone()]
    }
}
