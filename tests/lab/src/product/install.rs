//! The operator by its chart, its credentials for the registry, and the sample runtime.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Product, Pushed};
use crate::{
    Lab, LabError,
    addresses::{REGISTRY, REGISTRY_PASSWORD, REGISTRY_USER},
    wait::{self, Seen},
    workspace,
};

/// The operator's namespace.
pub const NAMESPACE: &str = "aicr-system";
/// Helm 4's word for taking over fields that others have set.
pub const FORCE_CONFLICTS: &str = "--force-conflicts";
/// Name of the docker config Secret, as `ci/lab-values.yaml` has it.
const CREDENTIALS: &str = "aicr-registry";

/// What a chart installation is set to, beyond `ci/lab-values.yaml`.
#[derive(Debug, Clone)]
pub struct Release<'a> {
    /// The images.
    pub pushed: &'a Pushed,
    /// The stand-in's version.
    pub aicr: &'a str,
    /// More `--set` words.
    pub sets: &'a [&'a str],
}

impl Product {
    /// Makes the operator's namespace and the registry's credentials, then installs the chart and waits for the pod.
    pub fn install(&self, lab: &Lab, release: &Release<'_>) -> Result<(), LabError> {
        lab.kubectl(&["create", "namespace", NAMESPACE])?;
        lab.kubectl(&["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"])?;
        docker_config(lab, NAMESPACE)?;
        engine_credentials(lab)?;
        Helm::Four.put(lab, "install", &this_chart(), release)?;
        // The chart makes the Jobs' namespace; the Secret there is the person's, as in its notes.
        docker_config(lab, "aicr-jobs")?;
        self.wait(lab)
    }

    /// Upgrades the chart and waits for the pod.
    pub fn upgrade(&self, lab: &Lab, release: &Release<'_>) -> Result<(), LabError> {
        Helm::Four.put(lab, "upgrade", &this_chart(), release)?;
        self.wait(lab)
    }

    /// Waits until the operator's Deployment has rolled out.
    pub fn wait(&self, lab: &Lab) -> Result<(), LabError> {
        lab.kubectl(&["rollout", "status", "deployment/aicr-operator", "--namespace", NAMESPACE, "--timeout", "120s"])?;
        // The Service is wired on the node a moment after the pods are ready.
        let review = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "asked", "namespace": NAMESPACE, "labels": {"operator.aicr.run/role": "plan"}},
        });
        wait::until("the door to be answered", Duration::from_mins(1), || match lab.apply_dry(&review.to_string()) {
            Err(error) if format!("{error:?}").contains("denied the request") => Seen::Ready(()),
            Err(error) => Seen::NotYet(format!("{error:?}")),
            Ok(said) => Seen::NotYet(said),
        })?;
        Ok(())
    }

    /// The sample runtime, merged with `patch`.
    pub fn sample(&self, lab: &Lab, patch: &Value) -> Result<(), LabError> {
        let sample = workspace().join("docs/sample/clusterruntime.yaml");
        lab.kubectl(&["apply", "--filename", &sample.to_string_lossy()])?;
        lab.kubectl(&["patch", "clusterruntime", "cluster", "--type", "merge", "--patch", &patch.to_string()])?;
        Ok(())
    }
}

/// Which Helm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helm {
    /// Argo CD's: client-side, three-way merge.
    Three,
    /// The present one: server-side apply.
    Four,
}

impl Helm {
    /// Runs it as administrator in the lab's network namespace and returns what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(self, lab: &Lab, args: &[&str]) -> Result<String, LabError> {
        match self {
            Self::Three => lab.helm3(args),
            Self::Four => lab.helm(args),
        }
    }

    /// Installs or upgrades this chart as the release `aicr-operator`; away from AICR v1.0.x as the pages tell to.
    ///
    /// # Errors
    /// When it fails.
    pub fn put(self, lab: &Lab, verb: &str, chart: &Path, release: &Release<'_>) -> Result<String, LabError> {
        // That AICR relabels the namespaces that it runs in (Troubleshooting page).
        let words: &[&str] = if verb == "upgrade" && has_aicr_1_0(lab)? { &[FORCE_CONFLICTS] } else { &[] };
        self.put_with(lab, verb, chart, release, words)
    }

    /// The same with these words at the end, and no others.
    ///
    /// # Errors
    /// When it fails.
    pub fn put_with(
        self,
        lab: &Lab,
        verb: &str,
        chart: &Path,
        release: &Release<'_>,
        words: &[&str],
    ) -> Result<String, LabError> {
        let values = this_chart().join("ci/lab-values.yaml").to_string_lossy().into_owned();
        let chart = chart.to_string_lossy().into_owned();
        let image = release.pushed.aicr.get(release.aicr);
        let image = image.ok_or_else(|| LabError::Missing { path: release.aicr.into() })?;
        let own = [
            format!("operator.image={}", release.pushed.operator),
            format!("aicr.version={}", release.aicr),
            format!("aicr.image={image}"),
        ];
        let mut args = vec![verb, "aicr-operator", &chart, "--namespace", NAMESPACE, "--values", &values];
        args.extend(own.iter().map(String::as_str).chain(release.sets.iter().copied()).flat_map(|set| ["--set", set]));
        args.extend(words);
        self.run(lab, &args)
    }
}

/// The chart of this checkout.
pub fn this_chart() -> PathBuf {
    workspace().join("charts/aicr-operator")
}

fn has_aicr_1_0(lab: &Lab) -> Result<bool, LabError> {
    let values = lab.helm(&["get", "values", "aicr-operator", "--namespace", NAMESPACE, "--output", "json"])?;
    let values: Value = serde_json::from_str(&values).unwrap_or_default();
    Ok(values["aicr"]["version"].as_str().is_some_and(|version| version.starts_with("v1.0.")))
}

/// The registry's credentials for the operator and for AICR's Jobs.
fn docker_config(lab: &Lab, namespace: &str) -> Result<(), LabError> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": CREDENTIALS, "namespace": namespace},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": lab.docker_config_json()},
    });
    lab.apply(&secret.to_string())?;
    Ok(())
}

/// The registry's credentials for Argo CD.
fn engine_credentials(lab: &Lab) -> Result<(), LabError> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": CREDENTIALS,
            "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": "repo-creds"},
        },
        "stringData": {
            "type": "oci",
            "url": format!("oci://{REGISTRY}/aicr"),
            "insecureOCIForceHttp": "true",
            "username": REGISTRY_USER,
            "password": REGISTRY_PASSWORD,
        },
    });
    lab.apply(&secret.to_string())?;
    Ok(())
}
