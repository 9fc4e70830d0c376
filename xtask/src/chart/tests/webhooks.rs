//! Which requests come to the door at all (B43: never those that would heal the cluster).

use serde_json::{Value, json};

use super::{golden_objects, words};

/// One line a rule: entry, operations, group/version, resources, scope, selectors.
const CONSTRAINTS: [&str; 6] = [
    "approvals.operator.aicr.run UPDATE operator.aicr.run/v1alpha1 runtimerollouts Cluster {} {}",
    "approvals.operator.aicr.run CREATE,UPDATE operator.aicr.run/v1alpha1 clusterruntimes Cluster {} {}",
    "rollouts.operator.aicr.run CREATE,UPDATE,DELETE operator.aicr.run/v1alpha1 runtimerollouts,runtimerollouts/status Cluster {} {}",
    "runtimes.operator.aicr.run CREATE,UPDATE operator.aicr.run/v1alpha1 clusterruntimes,clusterruntimes/status Cluster {} {}",
    "applications.operator.aicr.run CREATE,UPDATE,DELETE argoproj.io/v1alpha1 applications Namespaced {} {}",
    "plans.operator.aicr.run CREATE,UPDATE /v1 configmaps Namespaced {\"matchLabels\":{\"kubernetes.io/metadata.name\":\"aicr-system\"}} {\"matchLabels\":{\"operator.aicr.run/role\":\"plan\"}}",
];

fn entries(objects: &[Value]) -> Vec<&Value> {
    let is_configuration = |object: &&Value| object["kind"].as_str().unwrap().ends_with("WebhookConfiguration");
    objects.iter().filter(is_configuration).flat_map(|object| object["webhooks"].as_array().unwrap()).collect()
}

fn constraints(entry: &Value) -> Vec<String> {
    let selector = |key: &str| entry.get(key).unwrap_or(&json!({})).to_string();
    let rule = |rule: &Value| {
        let joined = |key: &str| words(rule, key).join(",");
        format!(
            "{} {} {}/{} {} {} {} {}",
            entry["name"].as_str().unwrap(),
            joined("operations"),
            joined("apiGroups"),
            joined("apiVersions"),
            joined("resources"),
            rule["scope"].as_str().unwrap(),
            selector("namespaceSelector"),
            selector("objectSelector"),
        )
    };
    entry["rules"].as_array().unwrap().iter().map(rule).collect()
}

/// B43.
#[test]
fn the_door_is_asked_about_our_kinds_applications_and_plans_and_about_nothing_that_heals_the_cluster() {
    for (file, objects) in golden_objects() {
        let found: Vec<String> = entries(&objects).into_iter().flat_map(constraints).collect();
        assert_eq!(found, CONSTRAINTS, "{file}");
        for line in &found {
            let resources = line.split(' ').nth(3).unwrap().split([',', '/']);
            for resource in resources {
                let never = ["*", "leases", "events", "pods", "nodes", "namespaces", "secrets", "deployments"];
                assert!(!never.contains(&resource), "{line}");
            }
        }
    }
}

#[test]
fn what_has_no_selector_has_a_match_condition_and_every_entry_is_bounded() {
    for (file, objects) in golden_objects() {
        for entry in entries(&objects) {
            let name = &entry["name"];
            let narrowed = ["matchConditions", "objectSelector"].iter().any(|key| entry.get(key).is_some());
            assert!(narrowed, "{file}: {name}");
            assert_eq!(entry["timeoutSeconds"], 5, "{file}: {name}");
            assert_eq!(entry["sideEffects"], "None", "{file}: {name}");
            assert_eq!(entry["failurePolicy"], "Fail", "{file}: {name}");
            // B41: a chart that says a caBundle would take the operator's away with each upgrade.
            assert!(entry["clientConfig"].get("caBundle").is_none(), "{file}: {name}");
        }
    }
}
