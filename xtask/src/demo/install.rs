//! The operator by its chart, its credentials for the registry, and the sample runtime.

use aicr_lab::addresses::{REGISTRY, REGISTRY_PASSWORD, REGISTRY_USER};
use aicr_lab::{Lab, workspace};
use serde_json::json;

use crate::error::XtaskError;
use crate::images::Pushed;

/// The operator's namespace.
const NAMESPACE: &str = "aicr-system";
/// Name of the docker config Secret, as `ci/lab-values.yaml` has it.
const CREDENTIALS: &str = "aicr-registry";

/// Installs the chart from the checkout with the images that were just pushed; the demo's AICR is the oldest of them,
/// so that there is something to upgrade to.
pub(crate) fn operator(lab: &Lab, pushed: &Pushed) -> Result<(), XtaskError> {
    let chart = workspace().join("charts/aicr-operator");
    let values = chart.join("ci/lab-values.yaml").to_string_lossy().into_owned();
    let chart = chart.to_string_lossy().into_owned();
    lab.kubectl(&["create", "namespace", NAMESPACE])?;
    docker_config(lab, NAMESPACE)?;
    engine_credentials(lab)?;
    let mut sets = vec![format!("operator.image={}", pushed.operator)];
    if let Some((version, reference)) = pushed.aicr.first() {
        sets.extend([format!("aicr.version={version}"), format!("aicr.image={reference}")]);
    }
    let mut args =
        vec!["install", "aicr-operator", chart.as_str(), "--namespace", NAMESPACE, "--values", values.as_str()];
    args.extend(sets.iter().flat_map(|set| ["--set-string", set.as_str()]));
    lab.helm(&args)?;
    // The chart makes the Jobs' namespace; the Secret there is the person's, as in its notes.
    docker_config(lab, "aicr-jobs")?;
    let wait = ["rollout", "status", "deployment/aicr-operator", "--namespace", NAMESPACE, "--timeout", "120s"];
    lab.kubectl(&wait)?;
    eprintln!("demo: operator installed");
    Ok(())
}

/// The registry's credentials for the operator and for AICR's Jobs.
fn docker_config(lab: &Lab, namespace: &str) -> Result<(), XtaskError> {
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
fn engine_credentials(lab: &Lab) -> Result<(), XtaskError> {
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

/// Applies the sample `ClusterRuntime`.
pub(crate) fn sample(lab: &Lab) -> Result<(), XtaskError> {
    let path = workspace().join("docs/sample/clusterruntime.yaml");
    if !path.is_file() {
        return Err(XtaskError::Missing { path });
    }
    lab.kubectl(&["apply", "--filename", &path.to_string_lossy()])?;
    eprintln!("demo: sample ClusterRuntime applied");
    Ok(())
}
