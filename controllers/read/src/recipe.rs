//! AICR's resolved recipe: which components, in which order, and what was left out.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{ReadError, quoted},
    names, yaml,
};

/// The apiVersions of a recipe that are read: plain ones, and those with a profile or configuration.
pub const API_VERSIONS: [&str; 2] = ["aicr.run/v1", "aicr.run/v1beta2"];

/// The most components of one recipe.
pub const COMPONENT_LIMIT: usize = 256;

const WHAT: &str = "AICR RecipeResult";

/// A resolved recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The AICR version that resolved it, with or without a leading `v`.
    pub version: String,
    /// What it was resolved for.
    pub criteria: Criteria,
    /// Overlays that a constraint left out: the recipe is then smaller than what was asked for.
    pub excluded_overlays: Vec<ExcludedOverlay>,
    /// Constraints that the snapshot does not meet.
    pub constraint_warnings: Vec<ConstraintWarning>,
    /// Its components, at most [`COMPONENT_LIMIT`], each name once.
    pub components: Vec<Component>,
    /// Component names in an order that respects the dependencies; disabled ones are not in it.
    pub deployment_order: Vec<String>,
}

/// The dimensions that a recipe was resolved for; each may be absent or `any`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Criteria {
    /// Kubernetes service.
    pub service: Option<String>,
    /// Accelerator.
    pub accelerator: Option<String>,
    /// Intent.
    pub intent: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Platform.
    pub platform: Option<String>,
}

/// An overlay that AICR left out of the recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedOverlay {
    /// The overlay's name.
    pub name: String,
    /// Why, such as `mixin-constraint-failed`; empty if AICR gave none.
    pub reason: String,
}

/// A constraint that the snapshot does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintWarning {
    /// The overlay that states it.
    pub overlay: String,
    /// The reading's path, such as `OS.release.ID`.
    pub constraint: String,
    /// What the overlay expects.
    pub expected: String,
    /// What the snapshot says, if anything.
    pub actual: Option<String>,
    /// AICR's reason.
    pub reason: String,
}

/// One component of the recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Canonical name, a DNS label.
    pub name: String,
    /// Namespace, if the recipe states one.
    pub namespace: Option<String>,
    /// Chart name without repository; absent for components of manifests only.
    pub chart: Option<String>,
    /// Version as pinned, with or without a leading `v`.
    pub version: Option<String>,
    /// Chart repository or OCI path without the chart's name; absent for components of manifests only.
    pub source: Option<String>,
    /// Names of the components that come first; may name disabled ones.
    pub dependencies: Vec<String>,
    /// Whether the recipe itself leaves the component switched on.
    pub enabled: bool,
}

impl Recipe {
    /// The component of this name.
    pub fn component(&self, name: &str) -> Option<&Component> {
        self.components.iter().find(|component| component.name == name)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    metadata: Metadata,
    #[serde(default)]
    criteria: Criteria,
    component_refs: Vec<Ref>,
    deployment_order: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    version: String,
    excluded_overlays: Option<Vec<Value>>,
    constraint_warnings: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ref {
    name: String,
    namespace: Option<String>,
    chart: Option<String>,
    version: Option<String>,
    source: Option<String>,
    dependency_refs: Option<Vec<String>>,
    overrides: Option<Overrides>,
}

#[derive(Deserialize)]
struct Overrides {
    enabled: Option<Value>,
}

/// Reads a resolved recipe, YAML or JSON, of at most 1 MiB.
///
/// # Errors
/// `Unsupported` for another kind or apiVersion, `TooLarge`, else `Damaged`.
pub fn read(bytes: &[u8]) -> Result<Recipe, ReadError> {
    let document: Document = yaml::typed(bytes, "RecipeResult", &API_VERSIONS)?;
    names::count(WHAT, "components", document.component_refs.len(), COMPONENT_LIMIT)?;
    let components: Vec<Component> = document.component_refs.into_iter().map(component).collect();
    check(&components, &document.deployment_order)?;
    let metadata = document.metadata;
    Ok(Recipe {
        version: metadata.version,
        criteria: document.criteria,
        excluded_overlays: metadata.excluded_overlays.unwrap_or_default().iter().map(excluded).collect(),
        constraint_warnings: metadata.constraint_warnings.unwrap_or_default().iter().map(warning).collect(),
        components,
        deployment_order: document.deployment_order,
    })
}

fn component(from: Ref) -> Component {
    let switched_off = from.overrides.and_then(|overrides| overrides.enabled) == Some(Value::Bool(false));
    let stated = |text: Option<String>| text.filter(|text| !text.is_empty());
    Component {
        name: from.name,
        namespace: stated(from.namespace),
        chart: stated(from.chart),
        version: stated(from.version),
        source: stated(from.source),
        dependencies: from.dependency_refs.unwrap_or_default(),
        enabled: !switched_off,
    }
}

fn check(components: &[Component], order: &[String]) -> Result<(), ReadError> {
    let mut known = BTreeSet::new();
    for component in components {
        names::label(WHAT, "component name", &component.name, names::LABEL)?;
        if let Some(namespace) = &component.namespace {
            names::label(WHAT, "namespace", namespace, names::LABEL)?;
        }
        if !known.insert(component.name.as_str()) {
            return Err(ReadError::damaged(WHAT, format!("the component {} stands in it twice", component.name)));
        }
    }
    let mut placed = BTreeSet::new();
    for name in order {
        if !known.contains(name.as_str()) {
            let problem = format!("its deploymentOrder names {}, which is no component of it", quoted(name));
            return Err(ReadError::damaged(WHAT, problem));
        }
        if !placed.insert(name) {
            return Err(ReadError::damaged(WHAT, format!("its deploymentOrder names {name} twice")));
        }
    }
    Ok(())
}

/// The field's text, bounded: these rows only end up in messages.
fn field(row: &Value, key: &str) -> Option<String> {
    let text = yaml::loose(row.get(key).cloned())?;
    Some(text.chars().take(253).collect())
}

fn excluded(row: &Value) -> ExcludedOverlay {
    // Older AICR versions list the names alone.
    let name = row.as_str().map(str::to_owned).or_else(|| field(row, "name"));
    ExcludedOverlay { name: name.unwrap_or_default(), reason: field(row, "reason").unwrap_or_default() }
}

fn warning(row: &Value) -> ConstraintWarning {
    ConstraintWarning {
        overlay: field(row, "overlay").unwrap_or_default(),
        constraint: field(row, "constraint").unwrap_or_default(),
        expected: field(row, "expected").unwrap_or_default(),
        actual: field(row, "actual"),
        reason: field(row, "reason").unwrap_or_default(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rstest::rstest;

    pub(crate) const GOOD: &str = r#"apiVersion: aicr.run/v1
componentRefs:
  - chart: cert-manager
    healthCheckAsserts: |
      kind: Test
    name: cert-manager
    namespace: cert-manager
    source: https://charts.example.com
    type: Helm
    version: v1.20.2
  - chart: gpu-operator
    dependencyRefs: [cert-manager, dra-node-labeler, tuning]
    name: gpu-operator
    namespace: gpu-operator
    overrides: {driver: {enabled: false}, toolkit: {version: 1.10}}
    source: oci://registry.example.com/charts
    version: 26.10
  - name: dra-node-labeler
    overrides: {enabled: false}
  - name: tuning
    namespace: skyhook
    source: ""
criteria: {accelerator: h100, intent: training, os: ubuntu, service: eks, nodes: 3}
deploymentOrder: [cert-manager, tuning, gpu-operator]
kind: RecipeResult
metadata:
  appliedOverlays: [base]
  version: v1.0.0
"#;

    #[test]
    fn components_order_and_criteria_are_read() {
        let recipe = read(GOOD.as_bytes()).unwrap();
        assert_eq!(recipe.version, "v1.0.0");
        assert_eq!(recipe.criteria.accelerator.as_deref(), Some("h100"));
        assert_eq!(recipe.criteria.platform, None);
        assert_eq!(recipe.deployment_order, ["cert-manager", "tuning", "gpu-operator"]);
        let gpu = recipe.component("gpu-operator").unwrap();
        assert_eq!(gpu.version.as_deref(), Some("26.10"));
        assert_eq!(gpu.dependencies, ["cert-manager", "dra-node-labeler", "tuning"]);
        assert!(gpu.enabled);
        assert!(!recipe.component("dra-node-labeler").unwrap().enabled);
        assert_eq!(recipe.component("tuning").unwrap().source, None);
        assert!(recipe.excluded_overlays.is_empty() && recipe.constraint_warnings.is_empty());
    }

    #[test]
    fn what_aicr_left_out_is_read() {
        let text = GOOD.replace(
            "  version: v1.0.0",
            "  constraintWarnings: [{overlay: o, constraint: OS.release.ID, expected: ubuntu, reason: missing}]\n  \
             excludedOverlays: [{name: h100-eks, reason: mixin-constraint-failed}, old]\n  version: v1.0.0",
        );
        let recipe = read(text.as_bytes()).unwrap();
        assert_eq!(recipe.excluded_overlays[0].reason, "mixin-constraint-failed");
        assert_eq!(recipe.excluded_overlays[1].name, "old");
        assert_eq!(recipe.constraint_warnings[0].constraint, "OS.release.ID");
        assert_eq!(recipe.constraint_warnings[0].actual, None);
    }

    #[test]
    fn a_profiled_recipe_is_read_too() {
        assert!(read(GOOD.replacen("aicr.run/v1", "aicr.run/v1beta2", 1).as_bytes()).is_ok());
    }

    #[rstest]
    #[case::other_kind(&GOOD.replace("kind: RecipeResult", "kind: Snapshot"))]
    #[case::older(&GOOD.replace("aicr.run/v1", "aicr.run/v1alpha2"))]
    #[case::config(&GOOD.replace("aicr.run/v1", "aicr.run/v1beta1"))]
    fn another_kind_or_version_is_unsupported(#[case] text: &str) {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Unsupported { .. })));
    }

    #[rstest]
    #[case::empty("")]
    #[case::truncated(&GOOD[..GOOD.len() * 2 / 3])]
    #[case::two_documents(&format!("{GOOD}---\n{GOOD}"))]
    #[case::duplicate_component(&GOOD.replace("name: dra-node-labeler", "name: tuning"))]
    #[case::name_with_a_slash(&GOOD.replace("tuning", "../tuning"))]
    #[case::namespace_in_capitals(&GOOD.replace("namespace: skyhook", "namespace: Skyhook"))]
    #[case::unknown_in_order(&GOOD.replace("[cert-manager, tuning, ", "[cert-manager, nobody, "))]
    #[case::twice_in_order(&GOOD.replace("[cert-manager, tuning, ", "[cert-manager, cert-manager, "))]
    #[case::no_order(&GOOD.replace("deploymentOrder:", "order:"))]
    fn a_damaged_recipe_is_refused(#[case] text: &str) {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Damaged { .. })));
    }

    #[test]
    fn more_components_than_the_limit_are_refused() {
        let rows: Vec<String> = (0..=COMPONENT_LIMIT).map(|n| format!("  - name: c{n}\n")).collect();
        let text = GOOD.replace("componentRefs:\n", &format!("componentRefs:\n{}", rows.concat()));
        assert!(read(text.as_bytes()).unwrap_err().to_string().contains("components"));
    }
}
