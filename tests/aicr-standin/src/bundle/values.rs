//! The values of one component: defaults, overrides of the recipe, scheduling, settings, in this order.

use serde_json::{Value, json};

use super::settings::{Group, Settings};
use crate::catalog::{Component, Paths};
use crate::failure::Failure;
use crate::tree;

/// Composes the values of a component.
pub(super) fn compose(component: &Component, entry: &Value, settings: &Settings) -> Result<Value, Failure> {
    let mut values = component.values.clone();
    if let Some(overrides) = entry.get("overrides") {
        tree::merge(&mut values, overrides);
        if let Some(map) = values.as_object_mut() {
            map.remove("enabled");
        }
    }
    schedule(&mut values, &component.system, &settings.system)?;
    schedule(&mut values, &component.accelerated, &settings.accelerated)?;
    special(&mut values, component, settings)?;
    let own = settings.set.iter().filter(|setting| setting.component == component.name && setting.path != "enabled");
    for setting in own {
        tree::put(&mut values, &setting.path, setting.value.clone())?;
    }
    Ok(values)
}

/// Selectors only where some were given; tolerations always: without any, everything is tolerated.
fn schedule(values: &mut Value, paths: &Paths, group: &Group) -> Result<(), Failure> {
    if !group.selector.is_empty() {
        for path in &paths.selectors {
            tree::put(values, path, json!(group.selector))?;
        }
    }
    let everything = [json!({"operator": "Exists"})];
    let tolerations = if group.tolerations.is_empty() { everything.as_slice() } else { &group.tolerations };
    for path in &paths.tolerations {
        tree::put(values, path, json!(tolerations))?;
    }
    Ok(())
}

/// The flags that mean one component each.
fn special(values: &mut Value, component: &Component, settings: &Settings) -> Result<(), Failure> {
    let claim = "prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.storageClassName";
    let selector = (!settings.workload.is_empty()).then(|| json!(settings.workload));
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let (path, value) = match component.name.as_str() {
        "nodewright-customizations" => ("workloadSelector", selector),
        "nodewright-operator" => ("estimatedNodeCount", settings.nodes.as_deref().map(tree::inferred)),
        "kube-prometheus-stack" => (claim, text(&settings.storage_class)),
        "nvidia-dra-driver-gpu" => ("evictionNodeLabel", text(&settings.eviction_label)),
        _ => return Ok(()),
    };
    match value {
        Some(value) => tree::put(values, path, value),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Setting;
    use super::*;
    use crate::catalog::Catalog;

    fn composed(settings: &Settings) -> Value {
        let catalog = Catalog::load().unwrap();
        let component = catalog.component("gpu-operator").unwrap();
        compose(component, &json!({"overrides": component.overrides}), settings).unwrap()
    }

    #[test]
    fn overrides_of_the_recipe_lie_over_the_defaults() {
        let values = composed(&Settings::default());
        assert_eq!(values["cdi"], json!({"default": false, "enabled": true}));
        assert_eq!(values["daemonsets"]["tolerations"], json!([{"operator": "Exists"}]));
        assert_eq!(values["operator"]["nodeSelector"], Value::Null);
    }

    #[test]
    fn scheduling_lands_at_its_paths_and_a_setting_lies_over_all() {
        let settings = Settings {
            system: Group { selector: [("pool".into(), "system".into())].into(), tolerations: Vec::new() },
            set: vec![Setting {
                component: "gpu-operator".into(),
                path: "driver.version".into(),
                value: json!("1.2.3"),
            }],
            ..Settings::default()
        };
        let values = composed(&settings);
        assert_eq!(values["operator"]["nodeSelector"], json!({"pool": "system"}));
        assert_eq!(values["driver"], json!({"enabled": true, "version": "1.2.3"}));
    }
}
