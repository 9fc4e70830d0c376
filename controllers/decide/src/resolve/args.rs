//! The command line of each AICR stage.

use std::collections::BTreeMap;

use aicr_crds::{
    ClusterRuntimeSpec,
    runtime::{Toleration, TolerationOperator},
    vocabulary::{Accelerator, Os, Platform, Service},
};

use super::inputs::Installation;

/// Directory below which a Job's input documents are mounted.
const IN: &str = "/in";

/// Grows a command line.
#[derive(Default)]
struct Args(Vec<String>);

impl Args {
    /// Machine-readable logs, so that a failure is one line.
    fn command(name: &str) -> Self {
        Self(vec!["--log-json".to_owned(), name.to_owned()])
    }

    fn flag(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.extend([name.to_owned(), value.into()]);
        self
    }

    fn optional(self, name: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.flag(name, value),
            None => self,
        }
    }

    fn selector(self, name: &str, labels: &BTreeMap<String, String>) -> Self {
        labels.iter().fold(self, |args, (key, value)| args.flag(name, format!("{key}={value}")))
    }

    fn tolerations(self, name: &str, tolerations: &[Toleration]) -> Self {
        tolerations.iter().fold(self, |args, toleration| args.flag(name, shown(toleration)))
    }

    fn switch(mut self, name: &str, on: bool) -> Self {
        self.0.extend(on.then(|| name.to_owned()));
        self
    }
}

/// AICR's form of a toleration: `key[=value][:effect]`; `*` tolerates every taint.
fn shown(toleration: &Toleration) -> String {
    let Toleration { key, operator, value, effect } = toleration;
    let value = match operator {
        Some(TolerationOperator::Exists) => String::new(),
        Some(TolerationOperator::Equal) | None => {
            if value.is_empty() {
                String::new()
            } else {
                format!("={value}")
            }
        }
    };
    let effect = effect.map(|effect| format!(":{effect:?}")).unwrap_or_default();
    if key.is_empty() { format!("*{effect}") } else { format!("{key}{value}{effect}") }
}

/// `aicr snapshot` as launcher: its agent runs on an accelerated node and writes the output ConfigMap.
pub(super) fn snapshot(spec: &ClusterRuntimeSpec, install: &Installation, job: &str) -> Vec<String> {
    let accelerated = &spec.placement.accelerated;
    let args = Args::command("snapshot")
        .flag("--namespace", &install.discovery_namespace)
        .flag("--image", &install.aicr.image)
        .flag("--service-account-name", &install.agent_service_account)
        .flag("--job-name", super::agents::prefix(job).unwrap_or_else(|| job.to_owned()))
        .selector("--node-selector", &accelerated.node_selector)
        .flag("--timeout", "5m")
        .optional("--os", spec.criteria.os.map(Os::as_str))
        .optional("--requests", install.agent_requests.as_deref())
        .optional("--limits", install.agent_limits.as_deref())
        .switch("--privileged=false", !install.agent_privileged);
    args.flag("--output", format!("cm://{}/{job}", install.discovery_namespace)).0
}

/// `aicr recipe` from a snapshot, with everything that is stated.
pub(super) fn recipe(spec: &ClusterRuntimeSpec, install: &Installation, job: &str) -> Vec<String> {
    Args::command("recipe")
        .flag("--snapshot", format!("{IN}/snapshot.yaml"))
        .flag("--intent", spec.intent.as_str())
        .optional("--platform", spec.platform.map(Platform::as_str))
        .optional("--profile", spec.profile.as_deref())
        .optional("--service", spec.criteria.service.map(Service::as_str))
        .optional("--accelerator", spec.criteria.accelerator.map(Accelerator::as_str))
        .optional("--os", spec.criteria.os.map(Os::as_str))
        .optional("--nodes", spec.configuration.nodes.map(|nodes| nodes.to_string()))
        .flag("--output", format!("cm://{}/{job}", install.jobs_namespace))
        .0
}

/// `aicr bundle` of a recipe, to the registry; its digest becomes the termination message.
pub(super) fn bundle(spec: &ClusterRuntimeSpec, install: &Installation, tag: &str) -> Vec<String> {
    let accelerated = &spec.placement.accelerated;
    let system = spec.placement.system.clone().unwrap_or_default();
    let configuration = &spec.configuration;
    let workload = if configuration.workload_selector.is_empty() {
        &accelerated.node_selector
    } else {
        &configuration.workload_selector
    };
    let mut args = Args::command("bundle")
        .flag("--recipe", format!("{IN}/recipe.yaml"))
        .flag("--deployer", "helm")
        .selector("--accelerated-node-selector", &accelerated.node_selector)
        .tolerations("--accelerated-node-toleration", &accelerated.tolerations)
        .selector("--system-node-selector", &system.node_selector)
        .tolerations("--system-node-toleration", &system.tolerations)
        .selector("--workload-selector", workload)
        .optional("--storage-class", configuration.storage_class.as_deref())
        .optional("--shared-storage-class", configuration.shared_storage_class.as_deref())
        .optional("--dra-eviction-node-label", configuration.dra_eviction_node_label.as_deref())
        .optional("--nodes", configuration.nodes.map(|nodes| nodes.to_string()))
        .switch("--readiness-hooks", configuration.readiness_gates);
    for set in &spec.overrides {
        args = args.flag("--set", format!("{}:{}={}", set.component, set.path, set.value));
    }
    args.flag("--output", format!("oci://{}/bundles:{tag}", install.repository))
        .flag("--image-refs", "/dev/termination-log")
        .switch("--plain-http", install.is_plain_http())
        .0
}

/// `aicr upgrade-check` of two recipes, for Argo CD, as a report that never fails the command.
pub fn upgrade_check(install: &Installation, job: &str) -> Vec<String> {
    Args::command("upgrade-check")
        .flag("--from", format!("{IN}/from.yaml"))
        .flag("--to", format!("{IN}/to.yaml"))
        .flag("--deployer", "argocd")
        .flag("--format", "json")
        .switch("--fail-on-error=false", true)
        .flag("--output", format!("cm://{}/{job}", install.jobs_namespace))
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_written_as_aicr_reads_them() {
        let of = |json: &str| shown(&serde_json::from_str(json).unwrap());
        assert_eq!(of(r#"{"key":"gpu","value":"true","effect":"NoSchedule"}"#), "gpu=true:NoSchedule");
        assert_eq!(of(r#"{"key":"gpu","operator":"Exists"}"#), "gpu");
        assert_eq!(of(r#"{"operator":"Exists"}"#), "*");
    }
}
