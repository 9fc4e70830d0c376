//! Whether each override names a value that exists, and arrived as what it was written as.

use aicr_crds::{reason::Reason, runtime::Override};
use aicr_read::{
    bundle::{Bundle, Release},
    chart, path, values,
};
use serde_json::{Map, Value};

use crate::{
    artifact::Manifest,
    carry::Carried,
    failure::{MirrorFailure, of_values},
    place::At,
    registry::Registry,
};

/// The path by which AICR itself switches a component on or off.
const SWITCH: &str = "enabled";

/// How many overrides one message names.
const NAMED: usize = 10;

/// Compares with a render without overrides, and gives those whose path it does not have: the chart's defaults may.
///
/// # Errors
/// `InvalidOverride` for a component that the recipe lacks, for what AICR did not take, and for what arrives as
/// something else than stood there.
pub(crate) fn against_base<'a>(
    overrides: &'a [Override],
    base: &Bundle,
    rendered: &Bundle,
) -> Result<Vec<&'a Override>, MirrorFailure> {
    let mut sought = Vec::new();
    for set in overrides.iter().filter(|set| set.path != SWITCH || base.recipe.component(&set.component).is_none()) {
        if base.recipe.component(&set.component).is_none() {
            return Err(invalid(set, "the recipe has no such component; write its name as the recipe has it"));
        }
        let before = found(base, set)?;
        let dropped = of_component(rendered, set).next().is_none();
        let after = found(rendered, set)?;
        match (&before, &after) {
            (_, None) if !dropped => return Err(invalid(set, "AICR took it, but its render does not hold it")),
            (Some(before), Some(after)) => same_kind(set, before, after, "AICR's render without it holds")?,
            (Some(_), None) => {}
            (None, None | Some(_)) => sought.extend((!set.additive).then_some(set)),
        }
    }
    Ok(sought)
}

/// Looks for what is left in the default values of the charts, which are below our prefix by now.
///
/// # Errors
/// `OverridePathUnknown`, naming every override whose path is nowhere; `InvalidOverride` as above.
pub(crate) async fn against_defaults(
    registry: &Registry,
    rendered: &Bundle,
    carried: &[Carried],
    sought: &[&Override],
) -> Result<(), MirrorFailure> {
    let mut unknown = Vec::new();
    let mut read: Option<(&str, Vec<Value>)> = None;
    let mut sorted = sought.to_vec();
    sorted.sort_by(|one, other| one.component.cmp(&other.component));
    for set in sorted {
        // One chart's defaults at a time.
        let defaults = match read.take() {
            Some(known) if known.0 == set.component => known,
            Some(_) | None => (set.component.as_str(), defaults(registry, rendered, carried, &set.component).await?),
        };
        match defaults.1.iter().find_map(|values| path::find(values, &set.path)) {
            Some(before) => {
                if let Some(after) = found(rendered, set)? {
                    same_kind(set, before, &after, "the chart's default is")?;
                }
            }
            None => unknown.push(named(set)),
        }
        read = Some(defaults);
    }
    if unknown.is_empty() { Ok(()) } else { Err(nowhere(&unknown)) }
}

async fn defaults(
    registry: &Registry,
    rendered: &Bundle,
    carried: &[Carried],
    component: &str,
) -> Result<Vec<Value>, MirrorFailure> {
    let mut all = Vec::new();
    for (_, carried) in rendered.releases.iter().zip(carried).filter(|(release, _)| release.component == component) {
        let place = registry.place(&carried.chart.repository);
        let failed = |error| MirrorFailure::of_mirror(&error);
        let manifest = registry.manifest(&place, At::Digest(carried.digest)).await.map_err(failed)?;
        // What is no chart, or has defaults that nobody can read, has no path either.
        let Ok(archive) = Manifest::parse(&manifest).and_then(|manifest| manifest.chart().cloned()) else { continue };
        let bytes = registry.blob(&place, &archive, chart::PACKED_LIMIT as u64).await.map_err(failed)?;
        all.extend(chart::default_values(&bytes));
    }
    Ok(all)
}

fn of_component<'a>(bundle: &'a Bundle, set: &'a Override) -> impl Iterator<Item = &'a Release> {
    bundle.releases.iter().filter(|release| release.component == set.component)
}

/// What stands at the path in the values of one of the component's releases.
fn found(bundle: &Bundle, set: &Override) -> Result<Option<Value>, MirrorFailure> {
    for release in of_component(bundle, set) {
        let values = values::check(&release.values).map_err(|error| of_values(&release.id, &error))?;
        if let Some(value) = path::find(&values, &set.path) {
            return Ok(Some(shallow(value)));
        }
    }
    Ok(None)
}

/// Of a map or list only that it is one.
fn shallow(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar.clone(),
    }
}

/// A template takes `580.99` and `"580.99"` differently, and nobody sees it in the override.
fn same_kind(set: &Override, before: &Value, after: &Value, whose: &str) -> Result<(), MirrorFailure> {
    let write = match (before, after) {
        (Value::Null, _) | (_, Value::Null) => return Ok(()),
        (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_)) => {
            return Ok(());
        }
        (Value::Object(_) | Value::Array(_), _) => "name a path below it",
        (Value::String(_), _) => "write the value within double quotes of its own, as in value: '\"580\"'",
        (Value::Bool(_), _) => "write true or false",
        (Value::Number(_), _) => "write a whole number, or another one with a signed exponent, such as 75e-2 for 0.75",
    };
    Err(invalid(set, &format!("it arrives as {}, but {whose} {}; {write}", kind(after), kind(before))))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn named(set: &Override) -> String {
    format!("{}:{}", set.component, set.path)
}

/// The value is never quoted: it may be what nobody should read in a status.
fn invalid(set: &Override, problem: &str) -> MirrorFailure {
    MirrorFailure::stalled(Reason::InvalidOverride, format!("override {}: {problem}", named(set)))
}

fn nowhere(unknown: &[String]) -> MirrorFailure {
    let mut names = unknown.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if unknown.len() > NAMED {
        names = format!("{names} and {} more", unknown.len() - NAMED);
    }
    let message = format!(
        "neither AICR's render without overrides nor the chart's default values hold {names}; correct the path in \
         spec.overrides, or set additive: true"
    );
    MirrorFailure::stalled(Reason::OverridePathUnknown, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use aicr_read::{
        bundle::Source,
        recipe::{Component, Criteria, Recipe},
    };
    use rstest::rstest;

    fn bundle(values: &[&str]) -> Bundle {
        let component = Component {
            name: "gpu-operator".into(),
            namespace: None,
            chart: None,
            version: None,
            source: None,
            dependencies: vec![],
            enabled: true,
        };
        let release = |values: &&str| Release {
            id: "gpu-operator".into(),
            component: "gpu-operator".into(),
            namespace: "gpu".into(),
            source: Source::Local { name: "a".into(), version: "1.0.0".into(), files: BTreeMap::new() },
            values: (*values).into(),
            depends_on: vec![],
            readiness_gate: false,
        };
        let recipe = Recipe {
            version: "1.1.2".into(),
            criteria: Criteria::default(),
            excluded_overlays: vec![],
            constraint_warnings: vec![],
            components: vec![component],
            deployment_order: vec![],
        };
        Bundle { version: "1.1.2".into(), releases: values.iter().map(release).collect(), recipe, recipe_bytes: vec![] }
    }

    fn set(component: &str, path: &str) -> Override {
        Override { component: component.into(), path: path.into(), value: "hidden".into(), additive: false }
    }

    fn check(path: &str, before: &str, after: &str) -> Result<usize, MirrorFailure> {
        let overrides = [set("gpu-operator", path)];
        against_base(&overrides, &bundle(&[before]), &bundle(&[after])).map(|sought| sought.len())
    }

    #[rstest]
    #[case::text("v: \"580.99\"", "v: \"580.95\"")]
    #[case::text_that_looks_like_a_number("v: auto", "v: \"1.10\"")]
    #[case::number("v: 1", "v: 0.5")]
    #[case::boolean("v: true", "v: false")]
    #[case::nothing_before("v: null", "v: 3")]
    #[case::taken_away("v: 3", "v: null")]
    fn what_stood_there_may_become_another_of_its_kind(#[case] before: &str, #[case] after: &str) {
        assert_eq!(check("v", before, after), Ok(0));
    }

    #[rstest]
    #[case::number_for_text("v: \"580\"", "v: 580.99", "arrives as a number", "double quotes")]
    #[case::boolean_for_text("v: \"on\"", "v: true", "arrives as true or false", "double quotes")]
    #[case::text_for_number("v: 0.75", "v: \"0.5\"", "arrives as text", "75e-2")]
    #[case::text_for_boolean("v: true", "v: \"yes\"", "arrives as text", "write true or false")]
    #[case::scalar_for_map("v: {a: 1}", "v: x", "holds a map", "below it")]
    #[case::scalar_for_list("v: [a]", "v: x", "holds a list", "below it")]
    fn what_arrives_as_another_kind_is_refused_and_says_what_to_write(
        #[case] before: &str,
        #[case] after: &str,
        #[case] said: &str,
        #[case] todo: &str,
    ) {
        let failure = check("v", before, after).unwrap_err();
        assert_eq!(failure.reason, Some(Reason::InvalidOverride));
        for said in ["override gpu-operator:v:", said, todo] {
            assert!(failure.message.contains(said), "{failure}");
        }
        assert!(!failure.message.contains("hidden"), "{failure}");
    }

    #[test]
    fn what_aicr_did_not_render_is_refused_unless_the_component_is_gone() {
        let failure = check("v", "v: 1", "w: 1").unwrap_err();
        assert!(failure.message.contains("does not hold it"), "{failure}");
        let overrides = [set("gpu-operator", "v"), set("gpu-operator", SWITCH)];
        assert_eq!(against_base(&overrides, &bundle(&["v: 1"]), &bundle(&[])), Ok(vec![]));
    }

    #[test]
    fn a_component_that_the_recipe_lacks_is_refused_also_by_its_switch() {
        for path in ["v", SWITCH] {
            let overrides = [set("gpuoperator", path)];
            let failure = against_base(&overrides, &bundle(&["v: 1"]), &bundle(&["v: 1"])).unwrap_err();
            assert_eq!(failure.reason, Some(Reason::InvalidOverride));
            assert!(failure.message.contains("gpuoperator"), "{failure}");
        }
    }

    #[test]
    fn a_path_that_the_base_lacks_is_sought_in_the_defaults_unless_it_is_additive() {
        assert_eq!(check("v.w", "v: {}", "v: {w: 1}"), Ok(1));
        let additive = [Override { additive: true, ..set("gpu-operator", "v.w") }];
        assert_eq!(against_base(&additive, &bundle(&["v: {}"]), &bundle(&["v: {w: 1}"])), Ok(vec![]));
    }

    #[test]
    fn unknown_paths_are_named_up_to_ten() {
        let names: Vec<String> = (0..12).map(|n| format!("a:p{n}")).collect();
        let failure = nowhere(&names);
        assert_eq!(failure.reason, Some(Reason::OverridePathUnknown));
        assert!(failure.message.contains("a:p0, a:p1, ") && failure.message.contains("a:p9 and 2 more;"), "{failure}");
        assert!(failure.message.contains("additive: true"), "{failure}");
    }
}
