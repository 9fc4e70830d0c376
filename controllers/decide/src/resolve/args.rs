//! The command line of each AICR stage.

use std::collections::BTreeMap;

use aicr_crds::{
    ClusterRuntimeSpec,
    runtime::{Override, Toleration, TolerationOperator},
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
    let mut args = launcher(spec, install);
    args.extend(launched(job, &install.discovery_namespace));
    args
}

/// The snapshot's command line, but for what depends on its Job.
pub fn launcher(spec: &ClusterRuntimeSpec, install: &Installation) -> Vec<String> {
    let accelerated = &spec.placement.accelerated;
    Args::command("snapshot")
        .flag("--namespace", &install.discovery_namespace)
        .flag("--image", &install.aicr.image)
        .flag("--service-account-name", &install.agent_service_account)
        .selector("--node-selector", &accelerated.node_selector)
        .flag("--timeout", "5m")
        .optional("--os", spec.criteria.os.map(Os::as_str))
        .optional("--requests", install.agent_requests.as_deref())
        .optional("--limits", install.agent_limits.as_deref())
        .switch("--privileged=false", !install.agent_privileged)
        .0
}

/// What depends on it: whose agents they are, and where they write.
pub(crate) fn launched(job: &str, namespace: &str) -> Vec<String> {
    Args::default()
        .flag("--job-name", super::agents::prefix(job).unwrap_or_else(|| job.to_owned()))
        .flag("--output", format!("cm://{namespace}/{job}"))
        .0
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
pub(super) fn bundle(
    spec: &ClusterRuntimeSpec,
    overrides: &[Override],
    install: &Installation,
    tag: &str,
) -> Vec<String> {
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
    for set in overrides {
        let (flag, value) = setting(&set.value);
        args = args.flag(flag, format!("{}:{}={value}", set.component, set.path));
    }
    args.flag("--output", format!("oci://{}/bundles:{tag}", install.repository))
        .flag("--image-refs", "/dev/termination-log")
        .switch("--plain-http", install.is_plain_http())
        .0
}

/// The flag that brings a value to the chart as what it was written as. AICR's `--set` takes whatever may be a number or
/// a truth value for one (`580.99` is a float then), which loses what a version or an image tag was. So true, false and
/// whole numbers are what they look like, and so is a number with a signed exponent (`75e-2`); what else could be taken
/// for one goes as text, as does what stands within double quotes of its own.
fn setting(value: &str) -> (&'static str, String) {
    let whole = value.strip_prefix('-').unwrap_or(value);
    let digits = !whole.is_empty() && whole.len() < 16 && whole.bytes().all(|byte| byte.is_ascii_digit());
    if matches!(value, "true" | "false" | "null") || digits && (whole == "0" || !whole.starts_with('0')) {
        return ("--set", value.to_owned());
    }
    let signed_exponent = ["e-", "e+", "E-", "E+"].iter().any(|mark| value.contains(mark));
    let json = serde_json::from_str::<serde_json::Value>(value);
    if json.is_ok_and(|json| json.is_string() || json.is_number() && signed_exponent) {
        ("--set-json", value.to_owned())
    } else if is_plain_text(value) {
        ("--set", value.to_owned())
    } else {
        ("--set-json", serde_json::Value::from(value).to_string())
    }
}

/// Whether nobody takes it for anything but text: it begins with a letter, is no word for a truth value, a number or
/// nothing, and holds nothing that a list of settings is parted by.
fn is_plain_text(value: &str) -> bool {
    const WORDS: [&str; 13] = ["true", "false", "t", "f", "yes", "no", "y", "n", "on", "off", "null", "nan", "inf"];
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@');
    value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(inner)
        && !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
        && !value.eq_ignore_ascii_case("infinity")
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

    /// AICR renders `580.99` as a float where `--set` brings it.
    #[test]
    fn what_was_written_as_text_arrives_as_text() {
        let table = [
            ("true", "--set", "true"),
            ("3", "--set", "3"),
            ("-1", "--set", "-1"),
            ("auto", "--set", "auto"),
            ("v26.7.1", "--set", "v26.7.1"),
            ("registry.example.com:5000/a/b@sha256:00", "--set", "registry.example.com:5000/a/b@sha256:00"),
            ("580.99", "--set-json", "\"580.99\""),
            ("570.133.20", "--set-json", "\"570.133.20\""),
            ("1.10", "--set-json", "\"1.10\""),
            ("007", "--set-json", "\"007\""),
            ("12345678901234567890", "--set-json", "\"12345678901234567890\""),
            ("0x1F", "--set-json", "\"0x1F\""),
            ("1e10", "--set-json", "\"1e10\""),
            ("yes", "--set-json", "\"yes\""),
            ("True", "--set-json", "\"True\""),
            (".inf", "--set-json", "\".inf\""),
            ("", "--set-json", "\"\""),
            ("a,b=c", "--set-json", "\"a,b=c\""),
            ("[a]", "--set-json", "\"[a]\""),
            ("say \"no\"\n", "--set-json", "\"say \\\"no\\\"\\n\""),
            ("\"580\"", "--set-json", "\"580\""),
            ("75e-2", "--set-json", "75e-2"),
        ];
        for (value, flag, arrives) in table {
            assert_eq!(setting(value), (flag, arrives.to_owned()), "{value}");
        }
    }

    #[test]
    fn tolerations_are_written_as_aicr_reads_them() {
        let of = |json: &str| shown(&serde_json::from_str(json).unwrap());
        assert_eq!(of(r#"{"key":"gpu","value":"true","effect":"NoSchedule"}"#), "gpu=true:NoSchedule");
        assert_eq!(of(r#"{"key":"gpu","operator":"Exists"}"#), "gpu");
        assert_eq!(of(r#"{"operator":"Exists"}"#), "*");
    }
}
