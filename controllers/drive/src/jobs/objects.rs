//! The objects of one AICR run: the Job, its inputs and its output.

use std::collections::BTreeMap;

use aicr_crds::{Digest, keys::label};
use aicr_decide::resolve::{JobPlan, Output, Stage};
use jiff::{Timestamp, tz::TimeZone};
use k8s_openapi::{
    ByteString,
    api::{
        batch::v1::{Job, JobSpec},
        core::v1::{
            Capabilities, ConfigMap, ConfigMapVolumeSource, Container, EmptyDirVolumeSource, EnvVar, KeyToPath,
            PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements, SeccompProfile, Secret,
            SecretVolumeSource, SecurityContext, Volume, VolumeMount,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, OwnerReference},
    },
};

use super::{JobSettings, RegistrySecret};

/// The one container.
pub const CONTAINER: &str = "aicr";
/// How long an ended Job stays when nobody deletes it, in seconds.
const TTL_SECONDS: i32 = 86_400;
/// The user of AICR's image.
const USER: i64 = 65_532;
/// Where the input documents are mounted.
const IN: &str = "/in";
/// Where the docker configuration is mounted.
const DOCKER: &str = "/docker";
/// Key of a docker config Secret.
pub(crate) const DOCKER_KEY: &str = ".dockerconfigjson";
/// Where the registry's authorities are mounted.
const AUTHORITIES: &str = "/authorities";
/// Key of the registry's authorities in the inputs' ConfigMap.
const AUTHORITIES_KEY: &str = "registry-authorities.pem";
/// Working directory and the one writable folder: a bundle's digest depends on the path, so it is always the same.
const WORK: &str = "/tmp";

/// The suspended Job of a plan, in its stage's namespace, with a run ID of this time.
///
/// It is resumed once [`inputs`] and [`output`] exist, whose owner it is.
pub fn job(plan: &JobPlan, settings: &JobSettings, now: Timestamp) -> Job {
    let labels = labels(plan, &run_id(&plan.name, now));
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
        spec: Some(pod(plan, settings)),
    };
    let spec = JobSpec {
        suspend: Some(true),
        backoff_limit: Some(0),
        completions: Some(1),
        parallelism: Some(1),
        active_deadline_seconds: Some(plan.stage.deadline_seconds()),
        ttl_seconds_after_finished: Some(TTL_SECONDS),
        template,
        ..JobSpec::default()
    };
    let metadata = ObjectMeta {
        name: Some(plan.name.clone()),
        namespace: Some(settings.namespace(plan.stage).to_owned()),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    Job { metadata, spec: Some(spec), status: None }
}

/// The ConfigMap with the documents of a run, where it has any; owned by the Job.
pub fn inputs(plan: &JobPlan, settings: &JobSettings, job_uid: &str) -> Option<ConfigMap> {
    let authorities = registry_authorities(plan, settings);
    if plan.inputs.is_empty() && authorities.is_none() {
        return None;
    }
    let mut data = plan.inputs.clone();
    data.extend(authorities.map(|pem| (AUTHORITIES_KEY.to_owned(), pem.to_owned())));
    let data = Some(data);
    Some(ConfigMap { metadata: owned(plan, settings, inputs_name(plan), job_uid), data, ..ConfigMap::default() })
}

/// The empty ConfigMap that a run writes its document into, where it writes one; of the Job's name, owned by it.
pub fn output(plan: &JobPlan, settings: &JobSettings, job_uid: &str) -> Option<ConfigMap> {
    match plan.output {
        Output::Registry => None,
        Output::ConfigMap => {
            Some(ConfigMap { metadata: owned(plan, settings, plan.name.clone(), job_uid), ..ConfigMap::default() })
        }
    }
}

/// The Secret with the registry's credentials of the moment, where the run has one of its own; owned by the Job.
pub fn secret(plan: &JobPlan, settings: &JobSettings, job_uid: &str, docker_config: &[u8]) -> Option<Secret> {
    match (pushes(plan), &settings.registry_secret) {
        (false, _) | (true, RegistrySecret::Anonymous | RegistrySecret::Kept(_)) => None,
        (true, RegistrySecret::OfTheRun) => Some(Secret {
            metadata: owned(plan, settings, secret_name(plan), job_uid),
            type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
            data: Some([(DOCKER_KEY.to_owned(), ByteString(docker_config.to_vec()))].into()),
            immutable: Some(true),
            ..Secret::default()
        }),
    }
}

fn secret_name(plan: &JobPlan) -> String {
    format!("{}-registry", plan.name)
}

/// `YYYYMMDD-HHMMSS-<16 hex>`, as AICR writes its own: the time in UTC, and a hash of Job and time.
pub fn run_id(job: &str, now: Timestamp) -> String {
    let hash = Digest::of(format!("{job} {now}").as_bytes()).short();
    format!("{}-{hash}", now.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S"))
}

fn labels(plan: &JobPlan, run: &str) -> BTreeMap<String, String> {
    let attempt = plan.attempt.to_string();
    let labels = [
        (label::MANAGED_BY, label::MANAGED_BY_VALUE),
        (label::STAGE, plan.stage.as_str()),
        (label::INPUT, &plan.input),
        (label::RUN, run),
        (label::ATTEMPT, &attempt),
    ];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn inputs_name(plan: &JobPlan) -> String {
    format!("{}-in", plan.name)
}

fn owned(plan: &JobPlan, settings: &JobSettings, name: String, job_uid: &str) -> ObjectMeta {
    let owner = OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: plan.name.clone(),
        uid: job_uid.to_owned(),
        ..OwnerReference::default()
    };
    let labels = [(label::MANAGED_BY, label::MANAGED_BY_VALUE), (label::STAGE, plan.stage.as_str())];
    ObjectMeta {
        name: Some(name),
        namespace: Some(settings.namespace(plan.stage).to_owned()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    }
}

fn pod(plan: &JobPlan, settings: &JobSettings) -> PodSpec {
    let mounted = mounted(plan, settings);
    PodSpec {
        automount_service_account_token: Some(calls_api(plan.stage)),
        service_account_name: Some(settings.service_account(plan.stage).to_owned()),
        restart_policy: Some("Never".to_owned()),
        enable_service_links: Some(false),
        // No fsGroup: it would be another bundle digest.
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(plan, settings, mounted.iter().map(|(_, mount)| mount.clone()).collect())],
        volumes: Some(mounted.into_iter().map(|(volume, _)| volume).collect()),
        node_selector: Some(settings.node_selector.clone()).filter(|selector| !selector.is_empty()),
        tolerations: Some(settings.tolerations.clone()).filter(|tolerations| !tolerations.is_empty()),
        ..PodSpec::default()
    }
}

/// Whether the command asks the API server; a bundle is made of a mounted recipe and goes to the registry.
fn calls_api(stage: Stage) -> bool {
    match stage {
        Stage::Snapshot | Stage::Recipe | Stage::Assessment | Stage::Validation => true,
        Stage::Base | Stage::Render => false,
    }
}

fn container(plan: &JobPlan, settings: &JobSettings, mounts: Vec<VolumeMount>) -> Container {
    let variable = |name: &str, value: String| EnvVar { name: name.to_owned(), value: Some(value), value_from: None };
    let docker = registry_secret(plan, settings).map(|_| variable("DOCKER_CONFIG", DOCKER.to_owned()));
    // Go reads the system's file of authorities in any case, and these folders beside it.
    let authorities =
        registry_authorities(plan, settings).map(|_| variable("SSL_CERT_DIR", format!("/etc/ssl/certs:{AUTHORITIES}")));
    let env: Vec<EnvVar> = docker.into_iter().chain(authorities).collect();
    let quantity = |rows: &[(&str, &str)]| -> BTreeMap<String, Quantity> {
        rows.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
    };
    Container {
        name: CONTAINER.to_owned(),
        image: Some(settings.image.clone()),
        command: Some(vec!["aicr".to_owned()]),
        args: Some(plan.args.clone()),
        working_dir: Some(WORK.to_owned()),
        env: Some(env).filter(|env| !env.is_empty()),
        volume_mounts: Some(mounts),
        resources: Some(ResourceRequirements {
            requests: Some(quantity(&[("cpu", "10m"), ("memory", "64Mi")])),
            limits: Some(quantity(&[("memory", MEMORY_LIMIT)])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
            ..SecurityContext::default()
        }),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

/// Memory that one run may take.
pub(super) const MEMORY_LIMIT: &str = "256Mi";

/// Whether the command speaks to the registry: a bundle is its output, evidence goes there beside the report.
fn pushes(plan: &JobPlan) -> bool {
    match (plan.output, plan.stage) {
        (Output::Registry, _) | (Output::ConfigMap, Stage::Validation) => true,
        (Output::ConfigMap, Stage::Snapshot | Stage::Recipe | Stage::Base | Stage::Render | Stage::Assessment) => false,
    }
}

fn registry_secret(plan: &JobPlan, settings: &JobSettings) -> Option<String> {
    match (pushes(plan), &settings.registry_secret) {
        (false, _) | (true, RegistrySecret::Anonymous) => None,
        (true, RegistrySecret::Kept(name)) => Some(name.clone()),
        (true, RegistrySecret::OfTheRun) => Some(secret_name(plan)),
    }
}

/// The registry's own authorities, where the run speaks to it and there are any.
fn registry_authorities<'a>(plan: &JobPlan, settings: &'a JobSettings) -> Option<&'a str> {
    Some(settings.registry_ca_bundle.as_str()).filter(|pem| pushes(plan) && !pem.is_empty())
}

/// Every volume with its mount.
fn mounted(plan: &JobPlan, settings: &JobSettings) -> Vec<(Volume, VolumeMount)> {
    let mount = |name: &str, path: &str, read_only: Option<bool>| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only,
        ..VolumeMount::default()
    };
    let volume = |name: &str| Volume { name: name.to_owned(), ..Volume::default() };
    let work = Volume { empty_dir: Some(EmptyDirVolumeSource::default()), ..volume("work") };
    let mut all = vec![(work, mount("work", WORK, None))];
    if !plan.inputs.is_empty() {
        let source = ConfigMapVolumeSource { name: inputs_name(plan), ..ConfigMapVolumeSource::default() };
        all.push((Volume { config_map: Some(source), ..volume("in") }, mount("in", IN, Some(true))));
    }
    if registry_authorities(plan, settings).is_some() {
        let item =
            KeyToPath { key: AUTHORITIES_KEY.to_owned(), path: AUTHORITIES_KEY.to_owned(), ..KeyToPath::default() };
        let source = ConfigMapVolumeSource {
            name: inputs_name(plan),
            items: Some(vec![item]),
            ..ConfigMapVolumeSource::default()
        };
        let volume = Volume { config_map: Some(source), ..volume("authorities") };
        all.push((volume, mount("authorities", AUTHORITIES, Some(true))));
    }
    if let Some(secret) = registry_secret(plan, settings) {
        let item = KeyToPath { key: DOCKER_KEY.to_owned(), path: "config.json".to_owned(), mode: None };
        let source =
            SecretVolumeSource { secret_name: Some(secret), items: Some(vec![item]), ..SecretVolumeSource::default() };
        all.push((Volume { secret: Some(source), ..volume("docker") }, mount("docker", DOCKER, Some(true))));
    }
    all
}

#[cfg(test)]
mod tests;
