//! Local charts: content of AICR's own in a chart that carries AICR's stamps.

use serde_json::{Value, json};

use crate::catalog::Component;
use crate::failure::Failure;
use crate::release;
use crate::yaml;

/// Image of the readiness gate's Job.
const GATE_IMAGE: &str = "10.245.0.1:5000/test/busybox:1";

/// Chart.yaml of a local chart.
pub(super) fn chart(name: &str, component: &str, payload: &str) -> Result<String, Failure> {
    let version = release::stamped();
    yaml::text(&json!({
        "annotations": {"aicr.run/component-version": payload, "aicr.run/generated-by": version},
        "apiVersion": "v2",
        "appVersion": payload,
        "description": format!("Generated wrapper chart for {component} local content."),
        "name": name,
        "type": "application",
        "version": version,
    }))
}

/// The manifest of a component, with its values already filled in.
pub(super) fn manifest(component: &Component, manifest: &str, values: &Value) -> Result<String, Failure> {
    let shown = yaml::sorted(values.clone()).to_string();
    yaml::text(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "labels": {"app.kubernetes.io/created-by": "aicr", "app.kubernetes.io/managed-by": "Helm"},
            "name": manifest,
            "namespace": component.namespace,
        },
        "data": {"values.json": escaped(&shown)},
    }))
}

/// The text with Go's template braces made harmless.
fn escaped(text: &str) -> String {
    text.replace("{{", "{ {").replace("}}", "} }")
}

/// The readiness gate: a hook that ends well at once.
pub(super) fn gate(component: &Component) -> Result<String, Failure> {
    let image = std::env::var("AICR_STANDIN_GATE_IMAGE").unwrap_or_else(|_| GATE_IMAGE.to_owned());
    yaml::text(&json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "annotations": {
                "helm.sh/hook": "post-install,post-upgrade",
                "helm.sh/hook-delete-policy": "before-hook-creation",
            },
            "name": format!("{}-readiness", component.name),
            "namespace": component.namespace,
        },
        "spec": {
            "backoffLimit": 3,
            "template": {
                "spec": {
                    "automountServiceAccountToken": false,
                    "containers": [{
                        "command": ["true"],
                        "image": image,
                        "name": "gate",
                        "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                            "runAsNonRoot": true,
                            "runAsUser": 65534,
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                    }],
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                },
            },
        },
    }))
}
