//! The operator's drive loop in this process, in a tokio runtime of its own: dropping it is the crash.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aicr_crds::application::Engine as Place;
use aicr_decide::resolve::{AicrInstall, Installation};
use aicr_decide::seen::Settings;
use aicr_drive::jobs::{JobSettings, RegistrySecret};
use aicr_drive::{Clock, Drive, DriveError, DriveSettings, SourcesConfig, WATCH_SECONDS};
use kube::Config;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::wire::Wire;

/// The operator's namespace.
pub const NAMESPACE: &str = "aicr-system";
/// Argo CD's namespace.
pub const ENGINE_NAMESPACE: &str = "argocd";
/// The `AppProject`.
pub const PROJECT: &str = "aicr";
/// AICR's version, as the snapshot has it too.
pub const AICR_VERSION: &str = "v1.1.2";
/// AICR's image; nothing runs it.
pub const AICR_IMAGE: &str = "registry.example:5000/aicr/aicr:v1.1.2";
/// The registry with its prefix; nothing asks it.
pub const REPOSITORY: &str = "registry.example:5000/aicr/lab";
/// Namespaces of AICR's Jobs, of which none runs.
pub const JOB_NAMESPACES: [&str; 3] = ["aicr-jobs", "aicr-discovery", "aicr-validation"];

/// The settings of every operator here.
pub fn settings() -> DriveSettings {
    let [jobs, discovery, validation] = JOB_NAMESPACES.map(str::to_owned);
    DriveSettings {
        namespace: NAMESPACE.to_owned(),
        decide: Settings {
            engine: Place {
                namespace: ENGINE_NAMESPACE.to_owned(),
                project: PROJECT.to_owned(),
                repository: REPOSITORY.to_owned(),
            },
            validation_installed: false,
        },
        install: installation(&jobs, &discovery),
        registry_ca_bundle: String::new(),
        chart_sources: SourcesConfig::default(),
        jobs: JobSettings {
            image: AICR_IMAGE.to_owned(),
            jobs_namespace: jobs,
            discovery_namespace: discovery,
            validation_namespace: validation,
            jobs_service_account: "aicr-jobs".to_owned(),
            snapshot_service_account: "aicr-snapshot".to_owned(),
            registry_secret: RegistrySecret::Anonymous,
            ..JobSettings::default()
        },
        gates: BTreeSet::new(),
        validator_images: Vec::new(),
        tokens: None,
        watch_seconds: WATCH_SECONDS,
        clock: Clock::default(),
        instance: "aicr-operator-played".to_owned(),
    }
}

fn installation(jobs: &str, discovery: &str) -> Installation {
    Installation {
        aicr: AicrInstall { version: AICR_VERSION.to_owned(), image: AICR_IMAGE.to_owned() },
        repository: REPOSITORY.to_owned(),
        plain_http: Vec::new(),
        jobs_namespace: jobs.to_owned(),
        discovery_namespace: discovery.to_owned(),
        agent_service_account: "aicr".to_owned(),
        agent_privileged: false,
        agent_requests: None,
        agent_limits: None,
    }
}

/// An operator that leads, and has no rival.
pub struct Operator {
    /// Its way to the API server.
    pub wire: Arc<Wire>,
    running: JoinHandle<Result<(), DriveError>>,
    runtime: Option<Runtime>,
}

impl Operator {
    /// Starts one on this way, with fresh connections.
    pub fn start(config: &Config, settings: DriveSettings, wire: Arc<Wire>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("start tokio: {error}"));
        let (config, way) = (config.clone(), Arc::clone(&wire));
        let running = runtime.spawn(async move {
            let real = aicr_drive::client(config).unwrap_or_else(|error| panic!("a client: {error}"));
            let (watching, driving) = Drive::new(&way.client(real), settings).split();
            tokio::select! {
                ended = watching.run() => ended,
                ended = driving.run(std::future::ready(()), std::future::pending()) => ended,
            }
        });
        Self { wire, running, runtime: Some(runtime) }
    }

    /// Whether its loop is still there.
    pub fn is_alive(&self) -> bool {
        !self.running.is_finished()
    }
}

impl Drop for Operator {
    /// Everything of it is gone where it stood: tasks, memory, connections.
    fn drop(&mut self) {
        self.running.abort();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}
