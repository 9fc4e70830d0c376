//! The data the stand-in plays: components, pins, overlays, upgrade records, profiles.

use std::collections::{BTreeMap, BTreeSet};

use semver::VersionReq;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::failure::Failure;
use crate::yaml;

const COMPONENTS: &str = include_str!("../data/components.yaml");
const RELEASES: &str = include_str!("../data/releases.yaml");
const OVERLAYS: &str = include_str!("../data/overlays.yaml");
const UPGRADES: &str = include_str!("../data/upgrades.yaml");
const PROFILES: &str = include_str!("../data/profiles.yaml");

/// Where AICR writes selectors and tolerations into a component's values.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paths {
    pub(crate) selectors: Vec<String>,
    pub(crate) tolerations: Vec<String>,
}

/// A custom resource definition of a chart.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crd {
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) place: CrdPlace,
    /// The first chart version that has it.
    pub(crate) since: Option<String>,
}

/// Where in the chart a definition lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CrdPlace {
    Crds,
    Templates,
}

/// A component of the recipes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The upstream chart; none for a manifest-only component.
    pub(crate) chart: Option<String>,
    pub(crate) source: String,
    /// Version of what a manifest-only component carries.
    pub(crate) payload: Option<String>,
    pub(crate) overlays: Vec<String>,
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// A manifest of AICR's own: the component itself, or its `-post` release beside a chart.
    pub(crate) manifest: Option<String>,
    #[serde(default)]
    pub(crate) readiness: bool,
    /// Whether the chart has anything but definitions.
    #[serde(default = "yes")]
    pub(crate) workload: bool,
    /// Whether the chart has a ConfigMap that stays when the release goes.
    #[serde(default)]
    pub(crate) keeps: bool,
    #[serde(default)]
    pub(crate) system: Paths,
    #[serde(default)]
    pub(crate) accelerated: Paths,
    pub(crate) values: Value,
    #[serde(default)]
    pub(crate) overrides: Value,
    #[serde(default)]
    pub(crate) crds: Vec<Crd>,
}

fn yes() -> bool {
    true
}

/// A range of versions in the words of the data.
fn range<'de, D: Deserializer<'de>>(from: D) -> Result<VersionReq, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    version: String,
    base: Option<String>,
    pins: BTreeMap<String, String>,
    /// Components of the base that are no more.
    #[serde(default)]
    drops: Vec<String>,
}

/// A constraint on a reading of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Constraint {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A layer of the recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overlay {
    pub(crate) name: String,
    pub(crate) family: Option<String>,
    #[serde(default)]
    pub(crate) criteria: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) constraints: Vec<Constraint>,
}

/// What is recorded about the upgrades of a component.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) component: String,
    pub(crate) transitions: Vec<Transition>,
}

/// One recorded upgrade.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Transition {
    #[serde(deserialize_with = "range")]
    pub(crate) from: VersionReq,
    #[serde(deserialize_with = "range")]
    pub(crate) to: VersionReq,
    pub(crate) verdict: String,
    #[serde(default)]
    pub(crate) summary: String,
    pub(crate) precondition: Option<String>,
    #[serde(default)]
    pub(crate) steps_by_deployer: Vec<StepGroup>,
}

/// Steps for some deployers, or for all that no other group names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepGroup {
    #[serde(default)]
    pub(crate) deployers: Vec<String>,
    pub(crate) steps: Vec<Value>,
}

/// A profile and what each of its values owns: component → path → value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) values: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>,
}

/// All data, read once.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) components: Vec<Component>,
    pub(crate) overlays: Vec<Overlay>,
    pub(crate) records: Vec<Record>,
    pub(crate) profiles: Vec<Profile>,
    releases: Vec<Release>,
}

impl Catalog {
    pub(crate) fn load() -> Result<Self, Failure> {
        Ok(Self {
            components: yaml::read(COMPONENTS)?,
            overlays: yaml::read(OVERLAYS)?,
            records: yaml::read(UPGRADES)?,
            profiles: yaml::read(PROFILES)?,
            releases: yaml::read(RELEASES)?,
        })
    }

    /// The names of the releases that can be played.
    pub(crate) fn releases(&self) -> Vec<&str> {
        self.releases.iter().map(|release| release.version.as_str()).collect()
    }

    /// Component → pinned version of one release.
    pub(crate) fn pins(&self, version: &str) -> Result<BTreeMap<String, String>, Failure> {
        let release = self.releases.iter().find(|release| release.version == version).ok_or_else(|| {
            let known = self.releases().join(" ");
            Failure::invalid(format!("the stand-in has no data of release {version}: set one of {known}"))
        })?;
        let mut pins = match &release.base {
            Some(base) => self.pins(base)?,
            None => BTreeMap::new(),
        };
        pins.retain(|component, _| !release.drops.contains(component));
        pins.extend(release.pins.clone());
        Ok(pins)
    }

    pub(crate) fn component(&self, name: &str) -> Option<&Component> {
        self.components.iter().find(|component| component.name == name)
    }

    /// The component that a name or a registered alias means.
    pub(crate) fn called(&self, name: &str) -> Option<&Component> {
        self.component(name)
            .or_else(|| self.components.iter().find(|component| component.aliases.iter().any(|alias| alias == name)))
    }
}

impl Component {
    /// Whether a release with these pins has it; what has no chart is in every release.
    pub(crate) fn is_in(&self, pins: &BTreeMap<String, String>) -> bool {
        self.chart.is_none() || pins.contains_key(&self.name)
    }

    /// Where the chart comes from: the test's registry where one is named, else the place the real one has.
    pub(crate) fn source(&self) -> String {
        match std::env::var("AICR_STANDIN_CHARTS") {
            Ok(registry) if self.chart.is_some() && !registry.is_empty() => format!("oci://{registry}"),
            Ok(_) | Err(_) => self.source.clone(),
        }
    }
}

/// The order in which components are deployed: dependencies first, by name where that leaves a choice.
/// Edges to components that are not among them are pruned.
pub(crate) fn deployment_order(needs: &BTreeMap<String, Vec<String>>) -> Result<Vec<String>, Failure> {
    let mut order: Vec<String> = Vec::new();
    let mut done: BTreeSet<&String> = BTreeSet::new();
    while order.len() < needs.len() {
        let next = needs.iter().find(|(name, edges)| {
            !done.contains(name) && edges.iter().all(|edge| done.contains(edge) || !needs.contains_key(edge))
        });
        let Some((name, _)) = next else {
            return Err(Failure::internal("dependency cycle between components"));
        };
        done.insert(name);
        order.push(name.clone());
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(catalog: &Catalog) -> BTreeMap<String, Vec<String>> {
        catalog.components.iter().map(|c| (c.name.clone(), c.needs.clone())).collect()
    }

    #[test]
    fn the_kubeflow_leaf_is_deployed_in_the_order_the_real_one_has() {
        let order = deployment_order(&needs(&Catalog::load().unwrap())).unwrap();
        let expected = [
            "aws-ebs-csi-driver",
            "aws-efa",
            "cert-manager",
            "nfd",
            "nodewright-operator",
            "nodewright-customizations",
            "prometheus-operator-crds",
            "kube-prometheus-stack",
            "ephemeral-storage-metrics",
            "gpu-operator",
            "k8s-ephemeral-storage-metrics",
            "kai-scheduler",
            "kubeflow-trainer",
            "nvidia-dra-driver-gpu",
            "nvsentinel",
            "prometheus-adapter",
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn an_edge_to_an_absent_component_is_pruned_and_a_cycle_is_an_error() {
        let edges = |pairs: &[(&str, &[&str])]| {
            pairs.iter().map(|(n, e)| ((*n).to_owned(), e.iter().map(|e| (*e).to_owned()).collect())).collect()
        };
        assert_eq!(deployment_order(&edges(&[("b", &["gone"]), ("a", &["b"])])).unwrap(), ["b", "a"]);
        assert_eq!(deployment_order(&edges(&[("b", &["a"]), ("a", &["b"])])).unwrap_err().exit(), 8);
    }

    #[test]
    fn releases_differ_by_the_pins_that_the_tests_are_about() {
        let catalog = Catalog::load().unwrap();
        let changed = |from: &str, to: &str| {
            let (from, to) = (catalog.pins(from).unwrap(), catalog.pins(to).unwrap());
            to.into_iter().filter(|(name, pin)| from[name] != *pin).map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(changed("v1.0.0", "v1.1.2"), ["gpu-operator", "nodewright-operator", "nvsentinel"]);
        assert_eq!(changed("v1.1.2", "v1.1.3"), ["gpu-operator"]);
        assert!(changed("v1.1.3", "v1.1.4").is_empty());
        let named =
            |version: &str| catalog.pins(version).unwrap().into_keys().filter(|name| name.contains("ephemeral"));
        assert_eq!(named("v1.1.4").collect::<Vec<_>>(), ["k8s-ephemeral-storage-metrics"]);
        assert_eq!(named("v1.1.5").collect::<Vec<_>>(), ["ephemeral-storage-metrics"], "renamed");
        assert_eq!(catalog.pins("v9.9.9").unwrap_err().exit(), 2);
    }

    #[test]
    fn gpu_operator_owns_no_definitions_and_every_dependency_exists() {
        let catalog = Catalog::load().unwrap();
        assert!(catalog.component("gpu-operator").unwrap().crds.is_empty());
        for component in &catalog.components {
            for need in &component.needs {
                assert!(catalog.component(need).is_some(), "{} needs {need}", component.name);
            }
        }
    }
}
