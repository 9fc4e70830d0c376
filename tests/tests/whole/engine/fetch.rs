//! Charts that Argo CD cannot fetch: the plan and what runs stay as they are, and comparisons recover by themselves.

use aicr_tests::Stage;
use serde_json::{Value, json};

use super::{SECOND, application};
use crate::parcel::stack;

/// Argo CD's credentials for the registry.
const SECRET: [&str; 4] = ["secret", "aicr-registry", "-n", "argocd"];

/// A password that the registry takes no longer, as an expired token is. Changes nothing.
pub(crate) fn an_expired_password_of_argo_cds_stops_comparisons_alone(stage: &Stage) {
    let password = stage.json(&[&["get"][..], &SECRET].concat())["data"]["password"].clone();
    let put = |password: &Value| {
        stage.administrator().patch(&SECRET, &json!({"data": {"password": password}})).passed();
    };
    let before = (stack(stage), plan(stage));
    // "expired" in base64.
    put(&json!("ZXhwaXJlZA=="));
    let said = refused(stage);
    assert!(said.contains("401"), "{said}");
    assert_eq!((stack(stage), plan(stage)), before);
    put(&password);
    compared(stage);
    assert_eq!((stack(stage), plan(stage)), before);
}

/// A registry that is away. Changes nothing.
pub(crate) fn a_registry_that_is_away_stops_comparisons_alone(stage: &Stage) {
    let before = (stack(stage), plan(stage));
    stage.lab.stop_part("registry").unwrap();
    refused(stage);
    assert_eq!((stack(stage), plan(stage)), before);
    assert_eq!(stage.condition("Resolved").0, "True", "what was resolved needs no registry");
    stage.lab.start_part("registry").unwrap();
    compared(stage);
    assert_eq!((stack(stage), plan(stage)), before);
}

/// Asks Argo CD to fetch anew, and waits until it says that it cannot; its words.
fn refused(stage: &Stage) -> String {
    looks_again(stage);
    stage.until("a comparison that fails", 3, || {
        let conditions = application(stage, SECOND)["status"]["conditions"].clone();
        let failed = conditions.as_array().into_iter().flatten().find(|one| one["type"] == "ComparisonError");
        failed.map(|one| one["message"].to_string()).ok_or_else(|| conditions.to_string())
    })
}

/// Asks again, and waits until it can.
fn compared(stage: &Stage) {
    looks_again(stage);
    stage.until("a comparison that goes well", 4, || {
        let status = application(stage, SECOND)["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let failed = conditions.iter().any(|one| one["type"] == "ComparisonError");
        if !failed && status["sync"]["status"] == "Synced" { Ok(()) } else { Err(status.to_string()) }
    });
}

fn looks_again(stage: &Stage) {
    let hard = "argocd.argoproj.io/refresh=hard";
    stage.kubectl(&["annotate", "application", SECOND, "-n", "argocd", hard, "--overwrite"]);
    stage.until("Argo CD to look", 2, || {
        let asked = application(stage, SECOND)["metadata"]["annotations"]["argocd.argoproj.io/refresh"].clone();
        if asked.is_null() { Ok(()) } else { Err(asked.to_string()) }
    });
}

fn plan(stage: &Stage) -> Value {
    let status = stage.json(&["get", "clusterruntime", "cluster"])["status"].clone();
    assert!(status["activePlanDigest"].is_string(), "{status}");
    status["activePlanDigest"].clone()
}
