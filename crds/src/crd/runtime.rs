//! What the API server checks of a ClusterRuntime beyond its types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::rules::{self, Rule};
use super::schema::{at, items, keyed_by, labels, require, text, words};
use crate::runtime::NAME;

/// Adds bounds and rules.
pub(super) fn guard(schema: &mut JSONSchemaProps) {
    singleton(schema);
    placement(schema);
    keyed_by(at(schema, "spec.overrides"), &["component", "path"]);
    selection(schema);
    rollout(schema);
    conditions(schema);
}

fn singleton(schema: &mut JSONSchemaProps) {
    // Listed only so that the refusal can name the field.
    at(schema, "metadata").type_ = Some("object".to_owned());
    at(schema, "metadata.name").type_ = Some("string".to_owned());
    let rule = format!("self.metadata.name == '{NAME}'");
    require(schema, Rule::new(rule, format!("a ClusterRuntime must be named {NAME}")).on(".metadata.name"));
}

fn placement(schema: &mut JSONSchemaProps) {
    labels(at(schema, "spec.placement.accelerated.nodeSelector"), 1, 16);
    labels(at(schema, "spec.placement.system.nodeSelector"), 0, 16);
    labels(at(schema, "spec.configuration.workloadSelector"), 0, 16);
}

fn selection(schema: &mut JSONSchemaProps) {
    let rule = Rule::new(
        "self.policy != 'Pinned' || self.pinnedPlanDigest != ''",
        "policy Pinned needs the digest of a plan: sha256: and 64 hex digits",
    );
    require(at(schema, "spec.selection"), rule.on(".pinnedPlanDigest").missing());
}

fn rollout(schema: &mut JSONSchemaProps) {
    for (name, least, most) in
        [("stabilizationWindow", "0s", "24h"), ("actionTimeout", "1m", "24h"), ("deadline", "10m", "168h")]
    {
        require(at(schema, &format!("spec.rollout.{name}")), rules::duration(name, least, most));
    }
    require(at(schema, "spec.rollout"), rules::not_longer("actionTimeout", "deadline"));
}

fn conditions(schema: &mut JSONSchemaProps) {
    let conditions = at(schema, "status.conditions");
    keyed_by(conditions, &["type"]);
    items(conditions, |condition| {
        text(at(condition, "type"), 1, 64);
        words(at(condition, "status"), &["True", "False", "Unknown"]);
        text(at(condition, "reason"), 1, 128);
        text(at(condition, "message"), 0, 32_768);
    });
}
