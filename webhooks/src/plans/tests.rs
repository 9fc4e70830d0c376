//! Plans are made by the operator, whole, and never changed.

use aicr_crds::{
    Digest,
    plan::{Archive, ChartContent, Plan, PlanContext, ReleaseContent, StoredPlan},
    runtime::Criteria,
};
use serde_json::{Value, json};

use crate::{
    Known, Rule, Verdict, Webhook,
    sample::{OPERATOR, ask, assert_forbidden, review, with},
};

fn plan() -> Value {
    let release = ReleaseContent {
        id: "a".into(),
        component: "a".into(),
        namespace: "gpu".into(),
        chart: ChartContent { repository: "charts/a".into(), content: Digest::of(b"chart") },
        values: "x: 1\n".into(),
        depends_on: vec![],
        readiness_gate: false,
    };
    let archive = Archive { id: "a".into(), version: "1".into(), digest: Digest::of(b"archive"), crds: vec![] };
    let context = PlanContext {
        runtime_uid: "u".into(),
        aicr_version: None,
        aicr_image: None,
        snapshot: None,
        inputs: None,
        criteria: Criteria::default(),
        created: crate::sample::now(),
    };
    let stored = StoredPlan { plan: Plan::new(vec![release], vec![archive]).unwrap(), recipe: None, context };
    let mut map = serde_json::to_value(stored.to_config_map("aicr-system").unwrap()).unwrap();
    map["metadata"]["uid"] = json!("c1");
    map
}

fn of(user: &str, old: Option<&Value>, new: Option<&Value>) -> Verdict {
    ask(Webhook::Plans, &review(user, old, new), &Known::default())
}

#[test]
fn the_operator_alone_creates() {
    assert_eq!(of(OPERATOR, None, Some(&plan())), Verdict::ALLOW);
    assert_forbidden(&of("kubernetes-admin", None, Some(&plan())), Rule::PlanCreation);
}

#[test]
fn payload_digest_name_and_schema_agree_and_it_is_immutable() {
    for change in [
        (|map: &mut Value| map["metadata"]["name"] = json!("aicr-plan-0")) as fn(&mut Value),
        |map| map["metadata"]["annotations"]["operator.aicr.run/plan-digest"] = json!("sha256:0"),
        |map| map["metadata"]["labels"]["operator.aicr.run/schema-version"] = json!("2"),
        |map| map["data"]["plan.json"] = json!("{}"),
        |map| map["data"] = Value::Null,
        |map| map["immutable"] = json!(false),
    ] {
        assert_forbidden(&of(OPERATOR, None, Some(&with(&plan(), change))), Rule::PlanIntegrity);
    }
}

#[test]
fn nobody_updates_and_no_other_config_map_becomes_a_plan() {
    let noted = with(&plan(), |map| map["metadata"]["annotations"]["note"] = json!("x"));
    let unlabelled = with(&plan(), |map| map["metadata"]["labels"] = json!({}));
    for user in [OPERATOR, "kubernetes-admin"] {
        assert_forbidden(&of(user, Some(&plan()), Some(&noted)), Rule::PlanImmutability);
        assert_forbidden(&of(user, Some(&plan()), Some(&unlabelled)), Rule::PlanImmutability);
        assert_forbidden(&of(user, Some(&unlabelled), Some(&plan())), Rule::PlanImmutability);
    }
    let migrated = with(&plan(), |map| map["metadata"]["managedFields"] = json!([{}]));
    assert_eq!(of("migrator", Some(&plan()), Some(&migrated)), Verdict::ALLOW);
}

/// B46: on DELETE there is no object.
#[test]
fn deletion_and_other_config_maps_are_free() {
    for user in [OPERATOR, "kubernetes-admin", "system:serviceaccount:kube-system:namespace-controller"] {
        assert_eq!(of(user, Some(&plan()), None), Verdict::ALLOW);
    }
    let elsewhere = with(&plan(), |map| map["metadata"]["namespace"] = json!("team"));
    assert_eq!(of("ben", None, Some(&elsewhere)), Verdict::ALLOW);
    let snapshot = with(&plan(), |map| map["metadata"]["labels"]["operator.aicr.run/role"] = json!("snapshot"));
    assert_eq!(of("ben", None, Some(&snapshot)), Verdict::ALLOW);
}
