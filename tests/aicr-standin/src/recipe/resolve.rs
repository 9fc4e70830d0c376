//! Which overlays apply, which a failed constraint drops, and whether every stated dimension is carried.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::criteria::Criteria;
use crate::catalog::{Catalog, Constraint, Overlay};
use crate::constraint::{holds, reading};
use crate::failure::Failure;
use crate::log;

/// What was chosen.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) applied: Vec<Overlay>,
    /// Names of overlays that a constraint dropped.
    pub(crate) excluded: Vec<String>,
    /// Entries of `metadata.constraintWarnings`.
    pub(crate) warnings: Vec<Value>,
}

/// Chooses the overlays for what is asked; every stated dimension must be carried by one.
pub(crate) fn choose(
    catalog: &Catalog,
    asked: &Criteria,
    stated: &Criteria,
    snapshot: Option<&Value>,
) -> Result<Choice, Failure> {
    let matching: Vec<&Overlay> = catalog.overlays.iter().filter(|overlay| asked.meet(&overlay.criteria)).collect();
    for (dimension, value) in asked.dimensions() {
        if matching.iter().any(|overlay| overlay.criteria.contains_key(dimension)) {
            continue;
        }
        if stated.get(dimension).is_some() {
            return Err(uncovered(catalog, dimension, value));
        }
        log::warn("relaxing snapshot-detected criterion", &[("field", json!(dimension)), ("detected", json!(value))]);
    }
    let warnings = snapshot.map(|snapshot| failed(&matching, snapshot)).unwrap_or_default();
    let dropped: BTreeSet<&Option<String>> = matching
        .iter()
        .filter(|overlay| warnings.iter().any(|warning| warning["overlay"] == overlay.name))
        .map(|overlay| &overlay.family)
        .collect();
    let (excluded, applied): (Vec<&Overlay>, Vec<&Overlay>) =
        matching.into_iter().partition(|overlay| dropped.contains(&overlay.family));
    Ok(Choice {
        applied: applied.into_iter().cloned().collect(),
        excluded: excluded.into_iter().map(|overlay| overlay.name.clone()).collect(),
        warnings,
    })
}

fn uncovered(catalog: &Catalog, dimension: &str, value: &str) -> Failure {
    let combinations: Vec<String> = catalog
        .overlays
        .iter()
        .filter(|overlay| overlay.criteria.get(dimension).is_some_and(|carried| carried == value))
        .map(|overlay| {
            let others = overlay.criteria.iter().filter(|(other, _)| *other != dimension);
            let pairs: Vec<String> = others.map(|(other, value)| format!("{other}={value}")).collect();
            format!("({})", pairs.join(", "))
        })
        .collect();
    let listed = if combinations.is_empty() { "none".to_owned() } else { combinations.join(", ") };
    Failure::invalid(format!("{dimension} '{value}' requires additional criteria; supported combinations: {listed}"))
}

fn failed(overlays: &[&Overlay], snapshot: &Value) -> Vec<Value> {
    let mut warnings = Vec::new();
    for overlay in overlays {
        for constraint in &overlay.constraints {
            warnings.extend(warning(overlay, constraint, snapshot));
        }
    }
    warnings
}

fn warning(overlay: &Overlay, constraint: &Constraint, snapshot: &Value) -> Option<Value> {
    let actual = reading(snapshot, &constraint.name);
    if actual.as_deref().is_some_and(|actual| holds(constraint, actual)) {
        return None;
    }
    log::warn(
        "overlay excluded due to constraint failure",
        &[("overlay", json!(overlay.name)), ("constraint", json!(constraint.name))],
    );
    let mut entry = json!({
        "overlay": overlay.name,
        "constraint": constraint.name,
        "expected": constraint.value,
        "reason": if actual.is_some() { "constraint not satisfied" } else { "reading not in the snapshot" },
    });
    if let Some(actual) = actual {
        entry["actual"] = json!(actual);
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeflow() -> Criteria {
        Criteria::of(&[
            ("service", "eks"),
            ("accelerator", "h100"),
            ("intent", "training"),
            ("os", "ubuntu"),
            ("platform", "kubeflow"),
        ])
    }

    fn names(choice: &Choice) -> Vec<&str> {
        choice.applied.iter().map(|overlay| overlay.name.as_str()).collect()
    }

    #[test]
    fn the_kubeflow_leaf_has_the_eight_overlays_of_the_real_one() {
        let choice = choose(&Catalog::load().unwrap(), &kubeflow(), &kubeflow(), None).unwrap();
        assert_eq!(
            names(&choice),
            [
                "base",
                "monitoring-hpa",
                "h100-any",
                "eks",
                "eks-training",
                "h100-eks-training",
                "h100-eks-ubuntu-training",
                "h100-eks-ubuntu-training-kubeflow"
            ]
        );
    }

    #[test]
    fn a_stated_dimension_that_no_overlay_carries_is_refused() {
        let stated = Criteria::of(&[("os", "ubuntu")]);
        let failure = choose(&Catalog::load().unwrap(), &stated, &stated, None).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "[INVALID_REQUEST] os 'ubuntu' requires additional criteria; supported combinations: (accelerator=h100, \
             intent=training, service=eks), (accelerator=h100, intent=training, platform=kubeflow, service=eks)"
        );
    }

    #[test]
    fn a_dimension_of_the_snapshot_alone_is_relaxed() {
        let stated = Criteria::of(&[("service", "kind")]);
        let asked = Criteria::of(&[("service", "kind"), ("os", "rhel")]);
        assert!(choose(&Catalog::load().unwrap(), &asked, &stated, None).is_ok());
    }

    #[test]
    fn a_snapshot_without_os_readings_leaves_the_three_overlays_outside_the_family() {
        let server = json!({"subtype": "server", "data": {"version": "v1.34.4"}});
        let snapshot = json!({"measurements": [{"type": "K8s", "subtypes": [server]}]});
        let choice = choose(&Catalog::load().unwrap(), &kubeflow(), &kubeflow(), Some(&snapshot)).unwrap();
        assert_eq!(names(&choice), ["base", "monitoring-hpa", "h100-any"]);
        assert_eq!((choice.excluded.len(), choice.warnings.len()), (5, 3));
    }
}
