//! AICR Jobs as objects: what a planned run is made of, and what is seen of one.

pub mod objects;
pub(crate) mod report;
pub mod seen;

use std::collections::BTreeMap;

use aicr_decide::resolve::Stage;
use k8s_openapi::api::core::v1::Toleration;

/// Where a run that pushes has the registry's credentials from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegistrySecret {
    /// It has none: the registry is spoken to anonymously.
    #[default]
    Anonymous,
    /// A docker config Secret of this name, which the administrator keeps in the namespace of the Jobs.
    Kept(String),
    /// A Secret of the run's own, with the token of the moment; its Job owns it.
    OfTheRun,
}

/// What the objects of AICR Jobs need to know of the installation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSettings {
    /// AICR's image.
    pub image: String,
    /// Namespace of recipe, render and assessment Jobs.
    pub jobs_namespace: String,
    /// Namespace of snapshot Jobs.
    pub discovery_namespace: String,
    /// Namespace of validation Jobs.
    pub validation_namespace: String,
    /// Service account of recipe, render and assessment Jobs.
    pub jobs_service_account: String,
    /// Service account of snapshot Jobs, which run AICR's launcher.
    pub snapshot_service_account: String,
    /// Service account of validation Jobs, which run AICR's launcher.
    pub validation_service_account: String,
    /// Where a run that pushes has the registry's credentials from.
    pub registry_secret: RegistrySecret,
    /// Authorities of the registry's certificate that a run which pushes trusts beside the system's, in PEM; may be
    /// empty.
    pub registry_ca_bundle: String,
    /// Node selector of every Job.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of every Job.
    pub tolerations: Vec<Toleration>,
}

impl JobSettings {
    /// The namespace of a stage's Jobs.
    pub fn namespace(&self, stage: Stage) -> &str {
        match stage {
            Stage::Snapshot => &self.discovery_namespace,
            Stage::Validation => &self.validation_namespace,
            Stage::Recipe | Stage::Base | Stage::Render | Stage::Assessment => &self.jobs_namespace,
        }
    }

    fn service_account(&self, stage: Stage) -> &str {
        match stage {
            Stage::Snapshot => &self.snapshot_service_account,
            Stage::Validation => &self.validation_service_account,
            Stage::Recipe | Stage::Base | Stage::Render | Stage::Assessment => &self.jobs_service_account,
        }
    }
}
