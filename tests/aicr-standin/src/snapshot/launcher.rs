//! Launcher mode: runs the agent as a Job under a service account that exists, waits, cleans up.

use std::io::Read as _;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::job::{self, Plan};
use crate::args::Parsed;
use crate::cli::interruptible;
use crate::failure::{Code, Failure, api_status, api_words};
use crate::place::{self, Format, Output, Place};
use crate::{configmap, log, release};

/// How often the Job is looked at.
const LOOK: Duration = Duration::from_millis(300);

/// The rights that the documents of v1.x name for a launcher whose service account exists.
const RIGHTS: [(&str, &str, &str, &[&str]); 5] = [
    ("batch", "jobs", "", &["create", "get", "list", "watch", "delete"]),
    ("", "pods", "", &["get", "list", "watch"]),
    ("", "pods", "log", &["get"]),
    ("", "serviceaccounts", "", &["get"]),
    ("", "configmaps", "", &["get", "list"]),
];

struct Launch<'a> {
    client: Client,
    namespace: &'a str,
    name: String,
    timeout: Duration,
}

/// Deploys the agent, waits for it and removes it again.
pub(crate) async fn launch(parsed: &Parsed) -> Result<(), Failure> {
    let format = Format::parse(parsed.get("format"), Format::Yaml)?;
    if parsed.on("add-roles-to-service-account", false) || parsed.get("config").is_some() {
        return Err(Failure::invalid("--add-roles-to-service-account and --config are not supported by the stand-in"));
    }
    let kubeconfig = parsed.get("kubeconfig");
    let namespace = parsed.get("namespace").unwrap_or("default");
    let run = run_id()?;
    let target = Place::parse(parsed.get("output"))?;
    let staged = format!("cm://{namespace}/aicr-agent-snapshot-{run}");
    let output = match &target {
        Place::ConfigMap { namespace, name } => format!("cm://{namespace}/{name}"),
        Place::Stdout | Place::File(_) => staged,
    };
    let client = configmap::client(kubeconfig).await?;
    let launch = Launch {
        client,
        namespace,
        name: format!("{}-{run}", parsed.get("job-name").unwrap_or("aicr")),
        timeout: timeout(parsed.get("timeout"))?,
    };
    interruptible(launch.prepare(parsed)).await?;
    let plan = Plan {
        namespace,
        name: launch.name.clone(),
        run: &run,
        image: image(parsed),
        account: parsed.get("service-account-name").unwrap_or("aicr"),
        output: output.clone(),
    };
    let deployed = interruptible(launch.deploy(job::manifest(parsed, &plan)?)).await;
    let ended = match deployed {
        Ok(()) => interruptible(launch.wait()).await,
        Err(failure) => Err(failure),
    };
    let ended = launch.named(ended);
    if !parsed.on("no-cleanup", false) {
        launch.clean_up().await;
    }
    ended?;
    launch.hand_over(&target, &output, parsed, format).await
}

fn image(parsed: &Parsed) -> String {
    let default = || format!("ghcr.io/nvidia/aicr:{}", release::played());
    parsed.get("image").map_or_else(default, ToOwned::to_owned)
}

/// A run ID as AICR forms it: date, time, 16 hexadecimal digits.
pub(crate) fn run_id() -> Result<String, Failure> {
    let mut bytes = [0u8; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Failure::internal(format!("failed to generate run ID: {error}")))?;
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    Ok(format!("{time}-{:016x}", u64::from_be_bytes(bytes)))
}

/// A duration such as `5m`, `90s` or `1m30s`; five minutes when nothing is said.
fn timeout(word: Option<&str>) -> Result<Duration, Failure> {
    let Some(word) = word else { return Ok(Duration::from_mins(5)) };
    let bad = || Failure::invalid(format!("invalid value \"{word}\" for flag -timeout: parse error"));
    let (mut seconds, mut number) = (0u64, String::new());
    for c in word.chars() {
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            digit if digit.is_ascii_digit() => {
                number.push(digit);
                continue;
            }
            _ => return Err(bad()),
        };
        seconds += number.parse::<u64>().map_err(|_| bad())? * unit;
        number.clear();
    }
    if number.is_empty() { Ok(Duration::from_secs(seconds)) } else { Err(bad()) }
}

impl Launch<'_> {
    async fn prepare(&self, parsed: &Parsed) -> Result<(), Failure> {
        self.preflight().await?;
        if release::oldest() {
            self.relabel().await?;
        }
        self.adopt(parsed.get("service-account-name").unwrap_or("aicr")).await
    }

    /// Asks for every right before anything is made.
    async fn preflight(&self) -> Result<(), Failure> {
        let mut missing = Vec::new();
        for (group, resource, subresource, verbs) in RIGHTS {
            for verb in verbs {
                if !self.allowed(group, resource, subresource, verb).await? {
                    let slash = if subresource.is_empty() { "" } else { "/" };
                    let dot = if group.is_empty() { "" } else { "." };
                    missing.push(format!("  {verb} {resource}{slash}{subresource}{dot}{group}"));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::new(
            Code::Unauthorized,
            format!(
                "insufficient permissions to deploy agent in namespace {}: missing required permissions:\n{}",
                self.namespace,
                missing.join("\n")
            ),
        ))
    }

    async fn allowed(&self, group: &str, resource: &str, subresource: &str, verb: &str) -> Result<bool, Failure> {
        let attributes = ResourceAttributes {
            namespace: Some(self.namespace.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: Some(subresource.to_owned()).filter(|name| !name.is_empty()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| Failure::internal(format!("failed to check permissions: {}", api_words(&error))))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// What the oldest launcher does to its namespace, whoever manages it.
    async fn relabel(&self) -> Result<(), Failure> {
        let failed =
            |error: kube::Error| Failure::internal(format!("failed to ensure namespace: {}", api_words(&error)));
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = api.get(self.namespace).await.map_err(failed)?;
        let label = "app.kubernetes.io/managed-by";
        if found.metadata.labels.is_some_and(|labels| labels.get(label).is_some_and(|value| value == "aicr")) {
            return Ok(());
        }
        let patch = json!({"metadata": {"labels": {label: "aicr"}}});
        // The real one's client names itself after its program, which becomes the field's manager.
        let params = PatchParams { field_manager: Some("aicr".to_owned()), ..PatchParams::default() };
        api.patch(self.namespace, &params, &Patch::Merge(patch)).await.map(drop).map_err(failed)
    }

    async fn adopt(&self, account: &str) -> Result<(), Failure> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), self.namespace);
        match api.get_opt(account).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Failure::invalid(format!(
                "ServiceAccount {}/{account} does not exist, and the stand-in makes none",
                self.namespace
            ))),
            Err(error) => {
                Err(Failure::internal(format!("failed to get ServiceAccount {account}: {}", api_words(&error))))
            }
        }
    }

    async fn deploy(&self, manifest: Value) -> Result<(), Failure> {
        let job: Job = serde_json::from_value(manifest)
            .map_err(|error| Failure::internal(format!("failed to build Job: {error}")))?;
        self.jobs().create(&PostParams::default(), &job).await.map_err(|error| {
            Failure::internal(format!("failed to create Job: {}", api_words(&error)))
                .within(Code::Internal, "failed to deploy agent")
        })?;
        log::info("agent deployed successfully", &[("job", json!(self.name)), ("namespace", json!(self.namespace))]);
        Ok(())
    }

    /// Waits for the end of the Job; the cause of an agent that never starts is not told, as AICR does not tell it.
    async fn wait(&self) -> Result<(), Failure> {
        let until = Instant::now() + self.timeout;
        while Instant::now() < until {
            let status = self.jobs().get_opt(&self.name).await.ok().flatten().and_then(|job| job.status);
            let is = |kind: &str| {
                let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.filter(|c| c.type_ == kind && c.status == "True").map(|c| c.message.clone()).next()
            };
            if is("Complete").is_some() {
                return Ok(());
            }
            if let Some(message) = is("Failed") {
                self.print_log().await;
                return Err(Failure::internal(format!("job failed: {}", message.unwrap_or_default())));
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(Failure::new(Code::Timeout, "job completion timeout: context deadline exceeded"))
    }

    /// The failure as seen from the launcher.
    fn named(&self, ended: Result<(), Failure>) -> Result<(), Failure> {
        ended.map_err(|failure| match failure.code {
            Code::Timeout | Code::Cancelled => {
                let code = failure.code;
                failure.within(code, format!("job failed ({}/{})", self.namespace, self.name))
            }
            Code::Internal
            | Code::Usage
            | Code::InvalidRequest
            | Code::Conflict
            | Code::NotFound
            | Code::Unauthorized
            | Code::ServiceUnavailable
            | Code::RateLimitExceeded => failure,
        })
    }

    async fn print_log(&self) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace);
        let selector = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={}", self.name));
        for pod in pods.list(&selector).await.map(|list| list.items).unwrap_or_default() {
            let name = pod.metadata.name.unwrap_or_default();
            match pods.logs(&name, &LogParams::default()).await {
                Ok(text) => text.lines().for_each(log::plain),
                Err(error) => log::warn("failed to get agent log", &[("error", json!(api_words(&error)))]),
            }
        }
    }

    /// Removes the Job; one that was never made is no trouble.
    async fn clean_up(&self) {
        let Err(error) = self.jobs().delete(&self.name, &DeleteParams::background()).await else { return };
        if api_status(&error) != Some(404) {
            log::warn("failed to delete agent Job", &[("error", json!(api_words(&error)))]);
        }
    }

    /// Checks the agent's output, and passes it on where it was only staged.
    async fn hand_over(&self, target: &Place, uri: &str, parsed: &Parsed, format: Format) -> Result<(), Failure> {
        let kubeconfig = parsed.get("kubeconfig");
        let text = place::text(uri, kubeconfig)
            .await
            .map_err(|failure| failure.within(Code::Internal, "failed to read the agent's snapshot"))?;
        if let Place::ConfigMap { .. } = target {
            log::info("snapshot saved", &[("uri", json!(uri))]);
            return Ok(());
        }
        if let Place::ConfigMap { namespace, name } = Place::parse(Some(uri))? {
            let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
            if let Err(error) = api.delete(&name, &DeleteParams::default()).await {
                log::warn("failed to delete staging ConfigMap", &[("error", json!(api_words(&error)))]);
            }
        }
        let document: Value = place::decoded(uri, &text)?;
        Output { to: parsed.get("output"), kind: "Snapshot", format, kubeconfig }.value(&document).await
    }

    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(timeout(None).unwrap().as_secs(), 300);
        assert_eq!(timeout(Some("1m30s")).unwrap().as_secs(), 90);
        assert_eq!(timeout(Some("2h")).unwrap().as_secs(), 7200);
        for bad in ["5", "m", "5x", "1m3"] {
            assert_eq!(timeout(Some(bad)).unwrap_err().exit(), 2, "{bad}");
        }
    }

    #[test]
    fn run_ids_have_date_time_and_sixteen_digits() {
        let id = run_id().unwrap();
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 6, 16], "{id}");
    }
}
