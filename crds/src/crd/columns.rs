//! What `kubectl get` prints of both kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition as Column;

pub(super) fn of_cluster_runtime() -> Vec<Column> {
    vec![
        text("Ready", r#".status.conditions[?(@.type=="Ready")].status"#),
        text("Reason", r#".status.conditions[?(@.type=="Ready")].reason"#),
        text("Stalled", r#".status.conditions[?(@.type=="Stalled")].status"#),
        age(),
        wide("Plan", ".status.activePlan"),
        wide("AICR", ".status.aicr.version"),
    ]
}

pub(super) fn of_runtime_rollout() -> Vec<Column> {
    vec![
        text("Phase", ".status.phase"),
        text("Approval", ".status.approval"),
        text("Target", ".spec.target"),
        text("Step", ".status.step"),
        // A text: a date column prints a time to come as `<invalid>`.
        text("Deadline", ".spec.deadline"),
        age(),
    ]
}

fn text(name: &str, json_path: &str) -> Column {
    column(name, "string", json_path)
}

/// Printed with `-o wide` only.
fn wide(name: &str, json_path: &str) -> Column {
    Column { priority: Some(1), ..text(name, json_path) }
}

fn age() -> Column {
    column("Age", "date", ".metadata.creationTimestamp")
}

fn column(name: &str, type_: &str, json_path: &str) -> Column {
    Column { name: name.to_owned(), type_: type_.to_owned(), json_path: json_path.to_owned(), ..Column::default() }
}
