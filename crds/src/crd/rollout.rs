//! What the API server checks of a RuntimeRollout beyond its types: what may be added once, and that nothing else changes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::rules::{self, Rule};
use super::schema::{at, keyed_by, require};

const APPROVAL: &str = "approval";
const REVOCATION: &str = "revocation";
const ACKNOWLEDGEMENTS: &str = "acknowledgements";

/// Adds bounds and rules.
pub(super) fn guard(schema: &mut JSONSchemaProps) {
    let spec = at(schema, "spec");
    fixed_at_creation(spec);
    written_once(spec);
    acknowledgements(spec);
    target(spec);
    require(at(spec, "actionTimeout"), rules::duration("actionTimeout", "1m", "24h"));
}

/// Every field but the three of people. A field that is added to the type later is covered without a line here.
fn fixed_at_creation(spec: &mut JSONSchemaProps) {
    let required = spec.required.clone().unwrap_or_default();
    let mut optional = Vec::new();
    for (name, field) in spec.properties.iter_mut().flatten() {
        if [APPROVAL, REVOCATION, ACKNOWLEDGEMENTS].contains(&name.as_str()) {
            continue;
        }
        require(field, rules::unchanged(format!("{name} is immutable")));
        if !required.contains(name) {
            optional.push(name.clone());
        }
    }
    for name in optional {
        require(spec, rules::neither_added_nor_removed(&name));
    }
}

fn written_once(spec: &mut JSONSchemaProps) {
    for (name, changed, removed) in [
        (
            APPROVAL,
            "an approval can be neither changed nor extended; revoke it and ask for a new rollout",
            "an approval cannot be removed; revoke it",
        ),
        (REVOCATION, "a revocation cannot be changed", "a revocation cannot be removed"),
    ] {
        require(at(spec, name), rules::unchanged(changed));
        require(spec, rules::never_removed(name, removed));
    }
}

fn acknowledgements(spec: &mut JSONSchemaProps) {
    keyed_by(at(spec, ACKNOWLEDGEMENTS), &["release"]);
    require(
        spec,
        rules::only_appended(ACKNOWLEDGEMENTS, "an acknowledgement can be neither changed nor removed, only added"),
    );
}

fn target(spec: &mut JSONSchemaProps) {
    let has_target = "has(self.target) == has(self.targetPlanDigest)";
    let agrees = "(!has(self.target) || self.target == self.targetPlanDigest.substring(7, 23))";
    // A digest that its pattern refuses may be too short to cut.
    let readable = "(!has(self.targetPlanDigest) || size(self.targetPlanDigest) == 71)";
    require(
        spec,
        Rule::new(
            format!("!{readable} || ({has_target} && {agrees})"),
            "target must be the first 16 hex digits of targetPlanDigest",
        )
        .on(".target"),
    );
    require(
        spec,
        Rule::new(
            "has(self.targetPlanDigest) == (self.kind != 'Remove')",
            "a rollout of kind Remove has no targetPlanDigest, every other has one",
        )
        .on(".targetPlanDigest"),
    );
}
