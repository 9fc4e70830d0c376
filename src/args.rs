//! Every flag, with its variable and default; the chart's values become these.

mod values;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use aicr_certs::{LeafLife, NotALabel, ServiceNames};
use aicr_crds::application::Engine;
use aicr_decide::{
    resolve::{AicrInstall, Installation},
    seen::Settings,
};
use aicr_drive::{
    CertificateSettings, DriveSettings, SourcesConfig, TokenSettings,
    jobs::{JobSettings, RegistrySecret},
};
use aicr_registry_auth::Ecr;
use aicr_webhooks::{Approvers, Policy, Separation, service_account};
use clap::{ArgAction, Parser, ValueEnum};
use k8s_openapi::api::core::v1::Toleration;

use self::values::{crd, label, repository, toleration};

/// The operator's namespace where neither flag nor pod says one.
const NAMESPACE: &str = "aicr-system";
/// The operator's own service account, and both webhook configurations: the chart names them so.
const NAME: &str = "aicr-operator";

/// Resolves, assesses and rolls out AICR plans through Argo CD. Lists can be given in a variable, one a line.
#[derive(Debug, Parser)]
#[command(name = "aicr-operator", version)]
pub(crate) struct Args {
    /// The operator's namespace; without, that of the pod (`POD_NAMESPACE`), else aicr-system.
    #[arg(long, env = "AICR_OPERATOR_NAMESPACE", value_name = "NS")]
    namespace: Option<String>,
    /// AICR's version; what AICR writes must record it.
    #[arg(long, env = "AICR_OPERATOR_AICR_VERSION", value_name = "VERSION")]
    pub(crate) aicr_version: String,
    /// AICR's image, pinned by digest.
    #[arg(long, env = "AICR_OPERATOR_AICR_IMAGE", value_name = "REF")]
    aicr_image: String,
    /// Namespace of recipe, render and assessment Jobs.
    #[arg(long, env = "AICR_OPERATOR_JOBS_NAMESPACE", value_name = "NS", default_value = "aicr-jobs")]
    jobs_namespace: String,
    /// Namespace of snapshot Jobs.
    #[arg(long, env = "AICR_OPERATOR_DISCOVERY_NAMESPACE", value_name = "NS", default_value = "aicr-discovery")]
    discovery_namespace: String,
    /// Namespace of validation Jobs.
    #[arg(long, env = "AICR_OPERATOR_VALIDATION_NAMESPACE", value_name = "NS", default_value = "aicr-validation")]
    validation_namespace: String,
    /// Service account of recipe, render and assessment Jobs.
    #[arg(long, env = "AICR_OPERATOR_JOBS_SERVICE_ACCOUNT", value_name = "NAME", default_value = "aicr-jobs")]
    jobs_service_account: String,
    /// Service account of snapshot Jobs, which launch the agent.
    #[arg(
        long,
        env = "AICR_OPERATOR_SNAPSHOT_SERVICE_ACCOUNT",
        value_name = "NAME",
        default_value = "aicr-snapshot-launcher"
    )]
    snapshot_service_account: String,
    /// Service account of validation Jobs, which launch the checks.
    #[arg(
        long,
        env = "AICR_OPERATOR_VALIDATION_SERVICE_ACCOUNT",
        value_name = "NAME",
        default_value = "aicr-validation-launcher"
    )]
    validation_service_account: String,
    /// Service account of the snapshot's agent.
    #[arg(
        long,
        env = "AICR_OPERATOR_SNAPSHOT_AGENT_SERVICE_ACCOUNT",
        value_name = "NAME",
        default_value = "aicr-snapshot-agent"
    )]
    snapshot_agent_service_account: String,
    /// Label that nodes of AICR Jobs carry; may be repeated.
    #[arg(
        long,
        env = "AICR_OPERATOR_JOBS_NODE_SELECTOR",
        value_name = "KEY=VALUE",
        value_parser = label,
        value_delimiter = '\n'
    )]
    jobs_node_selector: Vec<(String, String)>,
    /// Toleration of AICR Jobs, as in a pod; may be repeated.
    #[arg(
        long,
        env = "AICR_OPERATOR_JOBS_TOLERATION",
        value_name = "JSON",
        value_parser = toleration,
        value_delimiter = '\n'
    )]
    jobs_toleration: Vec<Toleration>,
    /// Deployment validation is installed.
    #[arg(long, env = "AICR_OPERATOR_VALIDATION_ENABLED")]
    validation_enabled: bool,
    /// Image of AICR's checks, pinned by digest; may be repeated. A run of another one fails.
    #[arg(long, env = "AICR_OPERATOR_VALIDATOR_IMAGE", value_name = "REF", value_delimiter = '\n')]
    validator_image: Vec<String>,
    /// Argo CD's namespace.
    #[arg(long, env = "AICR_OPERATOR_ENGINE_NAMESPACE", value_name = "NS", default_value = "argocd")]
    engine_namespace: String,
    /// AppProject of our Applications.
    #[arg(long, env = "AICR_OPERATOR_ENGINE_PROJECT", value_name = "NAME", default_value = "aicr")]
    engine_project: String,
    /// Custom resource whose own word counts before a release is ready, by the name of its CRD; may be repeated.
    #[arg(
        long,
        env = "AICR_OPERATOR_GATE_CUSTOM_RESOURCE",
        value_name = "PLURAL.GROUP",
        value_parser = crd,
        value_delimiter = '\n'
    )]
    gate_custom_resource: Vec<String>,
    /// Where registry credentials come from.
    #[arg(long, env = "AICR_OPERATOR_REGISTRY_PROVIDER", value_enum, default_value_t = Provider::Static)]
    registry_provider: Provider,
    /// Where charts, wrappers and bundles are pushed; without scheme.
    #[arg(
        long,
        env = "AICR_OPERATOR_REGISTRY_REPOSITORY",
        value_name = "HOST[:PORT]/PREFIX",
        value_parser = repository
    )]
    registry_repository: String,
    /// Docker config Secret, in the operator's namespace and in those of the Jobs; without, the registry is spoken to
    /// anonymously.
    #[arg(long, env = "AICR_OPERATOR_REGISTRY_STATIC_SECRET", value_name = "NAME")]
    registry_static_secret: Option<String>,
    /// Argo CD's repo-creds Secret in its namespace, which the operator fills with ECR tokens; with the provider aws.
    #[arg(
        long,
        env = "AICR_OPERATOR_REGISTRY_REPO_CREDS_SECRET",
        value_name = "NAME",
        default_value = "aicr-registry"
    )]
    registry_repo_creds_secret: String,
    /// Registry that is spoken to over plain HTTP; may be repeated.
    #[arg(long, env = "AICR_OPERATOR_REGISTRY_PLAIN_HTTP", value_name = "HOST:PORT", value_delimiter = '\n')]
    registry_plain_http: Vec<String>,
    /// Authorities of the registry's certificate beside the system's, in PEM.
    #[arg(long, env = "AICR_OPERATOR_REGISTRY_CA_BUNDLE", value_name = "PEM", default_value = "")]
    registry_ca_bundle: String,
    /// Authorities of the certificates of chart sources beside the system's, in PEM.
    #[arg(long, env = "AICR_OPERATOR_CHART_SOURCES_CA_BUNDLE", value_name = "PEM", default_value = "")]
    chart_sources_ca_bundle: String,
    /// A loopback, link-local or metadata address or network that a chart source may have all the same; may be repeated.
    #[arg(long, env = "AICR_OPERATOR_CHART_SOURCES_ALLOWED_ADDRESS", value_name = "IP[/BITS]", value_delimiter = '\n')]
    chart_sources_allowed_address: Vec<String>,
    /// Where /metrics, /healthz and /readyz are served.
    #[arg(long, env = "AICR_OPERATOR_METRICS_ADDRESS", value_name = "IP:PORT", default_value = "0.0.0.0:8080")]
    pub(crate) metrics_address: SocketAddr,
    /// Where the webhooks are served.
    #[arg(long, env = "AICR_OPERATOR_WEBHOOK_ADDRESS", value_name = "IP:PORT", default_value = "0.0.0.0:9443")]
    pub(crate) webhook_address: SocketAddr,
    /// The Service by which the API server calls the webhooks, in the operator's namespace.
    #[arg(long, env = "AICR_OPERATOR_WEBHOOK_SERVICE", value_name = "NAME", default_value = "aicr-operator-webhook")]
    webhook_service: String,
    /// User who may approve, revoke and acknowledge, as the API server reports them; may be repeated.
    #[arg(long, env = "AICR_OPERATOR_APPROVER_USER", value_name = "USER", value_delimiter = '\n')]
    approver_user: Vec<String>,
    /// Group whose members may; may be repeated.
    #[arg(long, env = "AICR_OPERATOR_APPROVER_GROUP", value_name = "GROUP", value_delimiter = '\n')]
    approver_group: Vec<String>,
    /// Whoever changed the runtime may also approve the change.
    #[arg(long, env = "AICR_OPERATOR_ALLOW_SELF_APPROVAL")]
    pub(crate) allow_self_approval: bool,
    /// Who makes the webhooks' certificate.
    #[arg(
        long,
        env = "AICR_OPERATOR_CERTIFICATES_PROVIDER",
        value_enum,
        default_value_t = CertificatesProvider::Own
    )]
    pub(crate) certificates_provider: CertificatesProvider,
    /// Secret of our own authority, in the operator's namespace.
    #[arg(
        long,
        env = "AICR_OPERATOR_CERTIFICATES_SECRET",
        value_name = "NAME",
        default_value = "aicr-operator-webhook-ca"
    )]
    certificates_secret: String,
    /// Where cert-manager's Secret is mounted.
    #[arg(
        long,
        env = "AICR_OPERATOR_CERTIFICATES_FOLDER",
        value_name = "PATH",
        default_value = "/etc/aicr-operator/webhook"
    )]
    pub(crate) certificates_folder: PathBuf,
    /// How much is logged.
    #[arg(long, env = "AICR_OPERATOR_LOG_LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub(crate) log_level: LogLevel,
    /// One JSON object a line, or text for reading by eye.
    #[arg(long, env = "AICR_OPERATOR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub(crate) log_format: LogFormat,
    /// Whether the snapshot's agent may read the host.
    #[arg(
        long,
        env = "AICR_OPERATOR_SNAPSHOT_PRIVILEGED",
        value_name = "BOOL",
        action = ArgAction::Set,
        default_value_t = true
    )]
    snapshot_privileged: bool,
    /// Requests of the snapshot's agent, as cpu=100m,memory=256Mi.
    #[arg(long, env = "AICR_OPERATOR_SNAPSHOT_REQUESTS", value_name = "AMOUNTS")]
    snapshot_requests: Option<String>,
    /// Limits of the snapshot's agent.
    #[arg(long, env = "AICR_OPERATOR_SNAPSHOT_LIMITS", value_name = "AMOUNTS")]
    snapshot_limits: Option<String>,
}

/// Where registry credentials come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Provider {
    /// The administrator supplies the Secrets.
    Static,
    /// ECR tokens.
    Aws,
}

/// Who makes the webhooks' certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CertificatesProvider {
    /// The operator, with an authority of its own.
    #[value(name = "self")]
    Own,
    /// cert-manager, which also fills in the caBundle.
    CertManager,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What stops something.
    Error,
    /// What somebody should look at.
    Warn,
    /// What happens.
    Info,
    /// Why it happens.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The word of a filter.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// How logs look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One object a line.
    Json,
    /// For reading by eye.
    Text,
}

fn some(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl Args {
    /// What the controllers need of the flags.
    pub(crate) fn settings(&self) -> DriveSettings {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let pod = || variable("POD_NAMESPACE").unwrap_or_else(|| NAMESPACE.to_owned());
        DriveSettings {
            namespace: some(self.namespace.as_ref()).unwrap_or_else(pod),
            decide: Settings {
                engine: Engine {
                    namespace: self.engine_namespace.clone(),
                    project: self.engine_project.clone(),
                    repository: self.registry_repository.clone(),
                },
                validation_installed: self.validation_enabled,
            },
            install: self.installation(),
            registry_ca_bundle: self.registry_ca_bundle.clone(),
            chart_sources: SourcesConfig {
                ca_bundle: self.chart_sources_ca_bundle.clone().into_bytes(),
                allowed_addresses: self.chart_sources_allowed_address.clone(),
            },
            jobs: self.jobs(),
            gates: self.gate_custom_resource.iter().cloned().collect(),
            validator_images: self.validator_image.clone(),
            tokens: self.tokens(),
            watch_seconds: aicr_drive::WATCH_SECONDS,
            clock: aicr_drive::Clock::default(),
            instance: variable("HOSTNAME").unwrap_or_else(|| "aicr-operator".to_owned()),
        }
    }

    /// What the door needs of the flags.
    pub(crate) fn policy(&self, settings: &DriveSettings) -> Policy {
        Policy {
            operator: service_account(&settings.namespace, NAME),
            namespace: settings.namespace.clone(),
            approvers: Approvers {
                users: self.approver_user.iter().cloned().collect(),
                groups: self.approver_group.iter().cloned().collect(),
            },
            separation: if self.allow_self_approval { Separation::SelfApproval } else { Separation::FourEyes },
            engine: settings.decide.engine.clone(),
        }
    }

    /// What the certificates need of the flags.
    pub(crate) fn certificates(&self, settings: &DriveSettings) -> Result<CertificateSettings, NotALabel> {
        Ok(CertificateSettings {
            namespace: settings.namespace.clone(),
            secret: self.certificates_secret.clone(),
            configuration: NAME.to_owned(),
            names: ServiceNames::new(&self.webhook_service, &settings.namespace)?,
            life: LeafLife::default(),
        })
    }

    fn installation(&self) -> Installation {
        Installation {
            aicr: AicrInstall { version: self.aicr_version.clone(), image: self.aicr_image.clone() },
            repository: self.registry_repository.clone(),
            plain_http: self.registry_plain_http.clone(),
            jobs_namespace: self.jobs_namespace.clone(),
            discovery_namespace: self.discovery_namespace.clone(),
            agent_service_account: self.snapshot_agent_service_account.clone(),
            agent_privileged: self.snapshot_privileged,
            agent_requests: some(self.snapshot_requests.as_ref()),
            agent_limits: some(self.snapshot_limits.as_ref()),
        }
    }

    fn tokens(&self) -> Option<TokenSettings> {
        match self.registry_provider {
            Provider::Static => None,
            Provider::Aws => Some(TokenSettings {
                secret: self.registry_repo_creds_secret.clone(),
                mint: Arc::new(Ecr::of(&self.registry_repository)),
            }),
        }
    }

    fn registry_secret(&self) -> RegistrySecret {
        match self.registry_provider {
            Provider::Aws => RegistrySecret::OfTheRun,
            Provider::Static => {
                some(self.registry_static_secret.as_ref()).map_or(RegistrySecret::Anonymous, RegistrySecret::Kept)
            }
        }
    }

    fn jobs(&self) -> JobSettings {
        JobSettings {
            image: self.aicr_image.clone(),
            jobs_namespace: self.jobs_namespace.clone(),
            discovery_namespace: self.discovery_namespace.clone(),
            validation_namespace: self.validation_namespace.clone(),
            jobs_service_account: self.jobs_service_account.clone(),
            snapshot_service_account: self.snapshot_service_account.clone(),
            validation_service_account: self.validation_service_account.clone(),
            registry_secret: self.registry_secret(),
            registry_ca_bundle: self.registry_ca_bundle.clone(),
            node_selector: self.jobs_node_selector.iter().cloned().collect(),
            tolerations: self.jobs_toleration.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
