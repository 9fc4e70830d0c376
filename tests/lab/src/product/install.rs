//! The operator by its chart, its credentials for the registry, and the sample runtime.

use serde_json::{Value, json};

use super::{Product, Pushed};
use crate::{
    Lab, LabError,
    addresses::{REGISTRY, REGISTRY_PASSWORD, REGISTRY_USER},
    workspace,
};

/// The operator's namespace.
pub const NAMESPACE: &str = "aicr-system";
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
        helm(lab, "install", release)?;
        // The chart makes the Jobs' namespace; the Secret there is the person's, as in its notes.
        docker_config(lab, "aicr-jobs")?;
        self.wait(lab)
    }

    /// Upgrades the chart and waits for the pod.
    pub fn upgrade(&self, lab: &Lab, release: &Release<'_>) -> Result<(), LabError> {
        helm(lab, "upgrade", release)?;
        self.wait(lab)
    }

    /// Waits until the operator's Deployment has rolled out.
    pub fn wait(&self, lab: &Lab) -> Result<(), LabError> {
        lab.kubectl(&["rollout", "status", "deployment/aicr-operator", "--namespace", NAMESPACE, "--timeout", "120s"])?;
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

fn helm(lab: &Lab, verb: &str, release: &Release<'_>) -> Result<(), LabError> {
    let chart = workspace().join("charts/aicr-operator");
    let values = chart.join("ci/lab-values.yaml").to_string_lossy().into_owned();
    let chart = chart.to_string_lossy().into_owned();
    let image = release.pushed.aicr.get(release.aicr).ok_or_else(|| LabError::Missing { path: release.aicr.into() })?;
    let own = [
        format!("operator.image={}", release.pushed.operator),
        format!("aicr.version={}", release.aicr),
        format!("aicr.image={image}"),
    ];
    let mut args = vec![verb, "aicr-operator", &chart, "--namespace", NAMESPACE, "--values", &values];
    args.extend(
        own.iter().map(String::as_str).chain(release.sets.iter().copied()).flat_map(|set| ["--set-string", set]),
    );
    if verb == "upgrade" {
        // AICR v1.0.x relabels the namespaces it runs in (Troubleshooting page).
        args.push("--force-conflicts");
    }
    lab.helm(&args)?;
    Ok(())
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
