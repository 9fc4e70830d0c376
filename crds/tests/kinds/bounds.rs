//! Every string, list and map of both kinds is bounded, and the schema says no more than it means.

use aicr_crds::crd::{cluster_runtime, runtime_rollout};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use rstest::rstest;

use crate::schema::{self, at, fields, rules};

fn below(crd: &CustomResourceDefinition) -> Vec<(String, JSONSchemaProps)> {
    let root = schema::of(crd);
    let parts = ["spec", "status"].into_iter().flat_map(|part| fields(at(root, part), part));
    parts.map(|(path, field)| (path, field.clone())).collect()
}

fn what_is_unbounded(field: &JSONSchemaProps) -> Option<&'static str> {
    match field.type_.as_deref() {
        Some("string") => {
            let bounded = field.max_length.is_some() || field.enum_.is_some() || field.format.is_some();
            (!bounded).then_some("a string without maxLength, enum or format")
        }
        Some("array") => {
            (field.max_items.is_none() || field.items.is_none()).then_some("a list without maxItems or items")
        }
        Some("object") if field.properties.is_none() => {
            let bounded = field.max_properties.is_some() && field.additional_properties.is_some();
            let keys = rules(field).iter().any(|rule| rule.contains("size(key) <="));
            (!bounded || !keys).then_some("a map without maxProperties, or with unbounded values or keys")
        }
        Some("object" | "boolean" | "integer") => None,
        Some(_) | None => Some("a field without a type that we use"),
    }
}

#[rstest]
#[case::cluster_runtime(cluster_runtime())]
#[case::runtime_rollout(runtime_rollout())]
fn every_string_list_and_map_is_bounded(#[case] crd: CustomResourceDefinition) {
    let fields = below(&crd);
    assert!(fields.len() > 50, "{} fields only", fields.len());
    let unbounded: Vec<_> =
        fields.iter().filter_map(|(path, field)| Some(format!("{path}: {}", what_is_unbounded(field)?))).collect();
    assert!(unbounded.is_empty(), "{unbounded:#?}");
}

#[rstest]
#[case::cluster_runtime(cluster_runtime())]
#[case::runtime_rollout(runtime_rollout())]
fn no_field_may_be_null_and_every_list_has_a_type(#[case] crd: CustomResourceDefinition) {
    for (path, field) in below(&crd) {
        assert_eq!(field.nullable, None, "{path}");
        assert_eq!(field.title, None, "{path}");
        assert_eq!(field.x_kubernetes_list_type.is_some(), field.items.is_some(), "{path}");
    }
}

#[test]
fn lists_of_named_things_are_told_apart_by_their_names() {
    let (runtime, rollout) = (cluster_runtime(), runtime_rollout());
    for (crd, path, keys) in [
        (&runtime, "spec.overrides", vec!["component", "path"]),
        (&runtime, "status.conditions", vec!["type"]),
        (&rollout, "spec.acknowledgements", vec!["release"]),
    ] {
        let list = at(schema::of(crd), path);
        assert_eq!(list.x_kubernetes_list_type.as_deref(), Some("map"), "{path}");
        assert_eq!(list.x_kubernetes_list_map_keys.clone().unwrap_or_default(), keys, "{path}");
    }
}

#[test]
fn the_bounds_are_those_of_the_page() {
    let rollout = runtime_rollout();
    for (path, most) in
        [("spec.steps", 256), ("spec.inventory", 256), ("spec.acknowledgements", 64), ("spec.requestedBy", 64)]
    {
        assert_eq!(at(schema::of(&rollout), path).max_items, Some(most), "{path}");
    }
    let runtime = cluster_runtime();
    for (path, least, most) in [
        ("spec.placement.accelerated.nodeSelector", Some(1), 16),
        ("spec.placement.system.nodeSelector", None, 16),
        ("spec.configuration.workloadSelector", None, 16),
    ] {
        let map = at(schema::of(&runtime), path);
        assert_eq!((map.min_properties, map.max_properties), (least, Some(most)), "{path}");
    }
}
