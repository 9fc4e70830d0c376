//! The recipe document of a choice of overlays.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::criteria::Criteria;
use super::resolve::Choice;
use crate::catalog::{Catalog, Component, deployment_order};
use crate::failure::Failure;
use crate::{release, tree};

/// Builds the document that one release writes.
pub(crate) fn build(
    catalog: &Catalog,
    played: &str,
    criteria: &Criteria,
    choice: &Choice,
    profile: Option<&str>,
) -> Result<Value, Failure> {
    let pins = catalog.pins(played)?;
    let mut chosen: Vec<&Component> =
        catalog.components.iter().filter(|c| applies(c, choice) && c.is_in(&pins)).collect();
    chosen.sort_by(|a, b| a.name.cmp(&b.name));
    let mut refs: Vec<Value> = chosen.iter().map(|component| reference(component, pins.get(&component.name))).collect();
    let mut metadata = json!({
        "appliedOverlays": choice.applied.iter().map(|overlay| &overlay.name).collect::<Vec<_>>(),
        "version": stamp(played),
    });
    if !choice.excluded.is_empty() {
        let reason = |name| json!({"name": name, "reason": "mixin-constraint-failed"});
        metadata["excludedOverlays"] = choice.excluded.iter().map(reason).collect();
        metadata["constraintWarnings"] = json!(choice.warnings);
    }
    if let Some(profile) = profile {
        metadata["selectedProfile"] = select(catalog, profile, &mut refs)?;
    }
    let needs: BTreeMap<String, Vec<String>> = chosen.iter().map(|c| (c.name.clone(), c.needs.clone())).collect();
    let constraints = choice.applied.iter().flat_map(|overlay| &overlay.constraints);
    Ok(json!({
        "apiVersion": if profile.is_some() { "aicr.run/v1beta2" } else { "aicr.run/v1" },
        "componentRefs": refs,
        "constraints": constraints.map(|c| json!({"name": c.name, "value": c.value})).collect::<Vec<_>>(),
        "criteria": criteria.document(),
        "deploymentOrder": deployment_order(&needs)?,
        "kind": "RecipeResult",
        "metadata": metadata,
        "validation": validation(choice),
    }))
}

/// The version written into documents: the played one, unless a fault wants another.
fn stamp(played: &str) -> String {
    if played == release::played() { release::stamped() } else { played.trim_start_matches('v').to_owned() }
}

fn applies(component: &Component, choice: &Choice) -> bool {
    choice.applied.iter().any(|overlay| component.overlays.contains(&overlay.name))
}

fn reference(component: &Component, pin: Option<&String>) -> Value {
    let mut entry = json!({
        "name": component.name,
        "namespace": component.namespace,
        "source": component.source(),
        "type": "Helm",
        "healthCheckAsserts": padding(&component.name),
    });
    if let (Some(chart), Some(pin)) = (&component.chart, pin) {
        entry["chart"] = json!(chart);
        entry["version"] = json!(pin);
        entry["valuesFile"] = json!(format!("components/{}/values.yaml", component.name));
    }
    if let Some(manifest) = &component.manifest {
        entry["manifestFiles"] = json!([format!("components/{}/manifests/{manifest}.yaml", component.name)]);
    }
    if !component.needs.is_empty() {
        entry["dependencyRefs"] = json!(component.needs);
    }
    if !component.overrides.is_null() {
        entry["overrides"] = component.overrides.clone();
    }
    entry
}

/// A text as large as the real health checks are: 2 to 5 kB, by the name.
fn padding(name: &str) -> String {
    let lines = 30 + name.bytes().map(usize::from).sum::<usize>() % 40;
    let line = format!("# {name}: a line in place of a health check of AICR's own\n");
    line.repeat(lines)
}

/// Lays the profile's values over the overrides; returns what it owns.
fn select(catalog: &Catalog, chosen: &str, refs: &mut [Value]) -> Result<Value, Failure> {
    let (name, value) = chosen
        .split_once('=')
        .ok_or_else(|| Failure::invalid(format!("invalid --profile \"{chosen}\": expected name=value")))?;
    let owned = catalog
        .profiles
        .iter()
        .find(|profile| profile.name == name)
        .and_then(|profile| profile.values.get(value))
        .ok_or_else(|| Failure::invalid(format!("unknown profile \"{chosen}\"")))?;
    for entry in refs.iter_mut() {
        let Some(paths) = entry["name"].as_str().and_then(|name| owned.get(name)) else { continue };
        for (path, value) in paths {
            tree::put(&mut entry["overrides"], path, value.clone())?;
        }
    }
    let paths: BTreeMap<&String, Vec<&String>> =
        owned.iter().map(|(component, paths)| (component, paths.keys().collect())).collect();
    Ok(json!({"name": name, "value": value, "ownedPaths": paths}))
}

fn validation(choice: &Choice) -> Value {
    let kubeflow = choice.applied.iter().any(|overlay| overlay.criteria.contains_key("platform"));
    let mut conformance = vec![
        "platform-health",
        "gpu-operator-health",
        "dra-support",
        "accelerator-metrics",
        "ai-service-metrics",
        "gang-scheduling",
        "pod-autoscaling",
        "cluster-autoscaling",
    ];
    conformance.extend(kubeflow.then_some("robust-controller"));
    conformance.push("secure-accelerator-access");
    json!({
        "conformance": {"checks": conformance},
        "deployment": {
            "checks": ["operator-health", "expected-resources", "gpu-operator-version", "check-nvidia-smi"],
            "constraints": [{"name": "Deployment.gpu-operator.version", "value": ">= v24.6.0"}],
        },
        "performance": {
            "checks": ["nccl-all-reduce-bw"],
            "constraints": [{"name": "nccl-all-reduce-bw", "value": ">= 300"}],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::yaml;

    #[test]
    fn the_kubeflow_recipe_has_fifteen_components_and_a_life_like_size() {
        let recipe = sample("v1.0.0");
        assert_eq!(recipe["componentRefs"].as_array().unwrap().len(), 15);
        assert_eq!(recipe["metadata"]["version"], "1.0.0");
        let size = yaml::text(&recipe).unwrap().len();
        assert!((40_000..110_000).contains(&size), "{size}");
    }

    #[test]
    fn two_releases_differ_by_pins_and_stamp_only() {
        let (mut old, new) = (sample("v1.1.3"), sample("v1.1.4"));
        old["metadata"]["version"] = json!("1.1.4");
        assert_eq!(old, new);
    }

    #[test]
    fn a_profile_owns_its_paths_and_an_unknown_one_is_refused() {
        let catalog = Catalog::load().unwrap();
        let mut refs = vec![json!({"name": "gpu-operator"})];
        let selected = select(&catalog, "gpu-driver=preinstalled", &mut refs).unwrap();
        assert_eq!(selected["ownedPaths"], json!({"gpu-operator": ["driver.enabled"]}));
        assert_eq!(refs[0]["overrides"], json!({"driver": {"enabled": false}}));
        assert_eq!(select(&catalog, "nope=1", &mut refs).unwrap_err().exit(), 2);
    }

    #[test]
    fn the_text_of_a_recipe_reads_back_as_the_same_value() {
        let recipe = sample("v1.1.2");
        assert_eq!(yaml::read::<Value>(&yaml::text(&recipe).unwrap()).unwrap(), recipe);
    }
}
