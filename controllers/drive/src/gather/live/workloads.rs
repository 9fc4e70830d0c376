//! Deployments and `StatefulSets` of a release: what they say against health, and whether they are still of the chart before.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::core::ObjectMeta;

use super::{managed::shown, sets::place};

/// Label that Helm's charts give their objects: `name-version`.
const CHART: &str = "helm.sh/chart";
/// Characters of a label's value.
const LABEL_LIMIT: usize = 63;

/// What a Deployment says against its health.
pub(super) fn deployment(one: &Deployment) -> Option<String> {
    let status = one.status.clone().unwrap_or_default();
    let wanted = one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let words = status.conditions.iter().flatten().find_map(|condition| {
        let bad = matches!(
            (condition.type_.as_str(), condition.status.as_str()),
            ("ReplicaFailure", "True") | ("Progressing", "False")
        );
        condition.message.clone().filter(|_| bad)
    });
    let observed = is_observed(&one.metadata, status.observed_generation);
    let (updated, available) = (status.updated_replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
    let counted = || format!("{updated} of {wanted} replicas updated, {available} available");
    let behind = !observed || updated < wanted || available < wanted;
    behind.then(|| line("Deployment", &one.metadata, &words.unwrap_or_else(counted)))
}

/// What a `StatefulSet` says against its health.
pub(super) fn stateful_set(one: &StatefulSet) -> Option<String> {
    let status = one.status.clone().unwrap_or_default();
    let wanted = one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let observed = is_observed(&one.metadata, status.observed_generation);
    let (updated, ready) = (status.updated_replicas.unwrap_or(0), status.ready_replicas.unwrap_or(0));
    let behind = !observed || updated < wanted || ready < wanted;
    behind
        .then(|| line("StatefulSet", &one.metadata, &format!("{updated} of {wanted} replicas updated, {ready} ready")))
}

fn is_observed(metadata: &ObjectMeta, observed: Option<i64>) -> bool {
    observed.unwrap_or_default() >= metadata.generation.unwrap_or_default()
}

fn line(kind: &str, metadata: &ObjectMeta, words: &str) -> String {
    let (namespace, name) = place(metadata);
    format!("{}: {words}", shown(kind, namespace, name))
}

/// The chart label that a chart's own objects had before this step, where the step changes the version.
///
/// Without rendering this is all that can be told of B05: an object that says the very version before was not written.
/// Images, values and charts that put no such label, or the same for ever, are not compared.
pub(super) fn label_before(chart: &str, before: &str, after: &str) -> Option<String> {
    let name = chart.rsplit('/').next().unwrap_or(chart);
    let label = |version: &str| {
        let whole = format!("{name}-{version}");
        let plain = whole.chars().map(|c| if c == '+' { '_' } else { c });
        plain.take(LABEL_LIMIT).collect::<String>().trim_end_matches(['-', '_', '.']).to_owned()
    };
    (label(before) != label(after)).then(|| label(before))
}

/// Says so where an object still has that label.
pub(super) fn outdated(kind: &str, metadata: &ObjectMeta, before: Option<&str>) -> Option<String> {
    let label = metadata.labels.as_ref()?.get(CHART)?;
    (Some(label.as_str()) == before).then(|| line(kind, metadata, &format!("label {CHART} is still {label}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deployment_with(status: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "namespace": "gpu", "name": "gpu-operator", "generation": 2,
                "labels": { CHART: "gpu-operator-v25.3.0" } },
            "spec": { "replicas": 2, "selector": {}, "template": {} },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_deployment_says_how_many_replicas_are_missing_or_why() {
        let said = |status: Value| deployment(&deployment_with(&status));
        let settled = json!({ "observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2 });
        assert_eq!(said(settled), None);
        let behind = json!({ "observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 2 });
        assert_eq!(said(behind).unwrap(), "Deployment gpu/gpu-operator: 1 of 2 replicas updated, 2 available");
        let failed = json!({ "observedGeneration": 2, "conditions": [
            { "type": "Progressing", "status": "False", "message": "deadline exceeded" }] });
        assert_eq!(said(failed).unwrap(), "Deployment gpu/gpu-operator: deadline exceeded");
        let old = json!({ "observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2 });
        assert!(said(old).is_some());
    }

    /// B05.
    #[test]
    fn an_object_with_the_chart_label_of_before_was_not_written() {
        let before = label_before("charts/gpu-operator", "v25.3.0", "v25.3.1");
        assert_eq!(before.as_deref(), Some("gpu-operator-v25.3.0"));
        let live = deployment_with(&Value::Null);
        let said = outdated("Deployment", &live.metadata, before.as_deref()).unwrap();
        assert_eq!(said, "Deployment gpu/gpu-operator: label helm.sh/chart is still gpu-operator-v25.3.0");
        let other = label_before("charts/gpu-operator", "v25.2.0", "v25.3.1");
        assert_eq!(outdated("Deployment", &live.metadata, other.as_deref()), None);
        assert_eq!(label_before("charts/x", "1.0.0", "1.0.0"), None);
        assert_eq!(label_before("charts/x", "1.0.0+a", "1.0.0").as_deref(), Some("x-1.0.0_a"));
    }
}
