//! `aicr validate`: readiness against the snapshot, then the checks of the deployment phase, in a CTRF report.

pub(crate) mod check;
mod launch;

use serde_json::{Value, json};

use crate::args::{Flag, Parsed};
use crate::catalog::Constraint;
use crate::constraint::{holds, reading};
use crate::failure::Failure;
use crate::place::{self, Format, Output};
use crate::{bundle, configmap, evidence, log, release};

pub(crate) const FLAGS: &[Flag] = &[
    Flag::one("recipe").or("r"),
    Flag::one("snapshot").or("s"),
    Flag::one("config"),
    Flag::many("phase"),
    Flag::many("skip-check"),
    Flag::switch("fail-on-error"),
    Flag::switch("fail-fast"),
    Flag::one("output").or("o"),
    Flag::one("kubeconfig").or("k"),
    Flag::one("namespace").or("n"),
    Flag::one("image"),
    Flag::many("image-pull-secret"),
    Flag::one("job-name"),
    Flag::one("service-account-name"),
    Flag::many("node-selector"),
    Flag::many("toleration"),
    Flag::one("timeout"),
    Flag::switch("no-cleanup"),
    Flag::switch("require-gpu"),
    Flag::switch("no-cluster"),
    Flag::one("evidence-dir"),
    Flag::one("emit-attestation"),
    Flag::one("push"),
    Flag::switch("no-sign"),
    Flag::switch("allow-mutable-validator-tags"),
    Flag::switch("plain-http"),
    Flag::switch("insecure-tls"),
    Flag::switch("yes"),
];

const PHASES: [&str; 4] = ["deployment", "performance", "conformance", "all"];

/// Runs the command. The report is written before the exit code is decided.
pub(crate) async fn run(parsed: &Parsed) -> Result<(), Failure> {
    for absent in ["config", "evidence-dir"] {
        if parsed.get(absent).is_some() {
            return Err(Failure::invalid(format!("--{absent} is not supported by the stand-in")));
        }
    }
    phases(parsed.all("phase"))?;
    let kubeconfig = parsed.get("kubeconfig");
    let origin = parsed.get("recipe").ok_or_else(|| Failure::invalid("--recipe is required"))?;
    let recipe = bundle::load(origin, kubeconfig).await?;
    let snapshot = parsed.get("snapshot").ok_or_else(|| {
        Failure::invalid("--snapshot is required: capturing one live is not supported by the stand-in")
    })?;
    ready(&recipe, &place::document(snapshot, kubeconfig).await?)?;
    let checks = checks(&recipe, parsed.all("skip-check"));
    let tests = if parsed.on("no-cluster", false) {
        let skipped = |name: &String| test(name, "skipped", "skipped - no-cluster mode");
        checks.iter().map(skipped).collect()
    } else {
        let namespace = parsed.get("namespace").unwrap_or("aicr-validation");
        launch::all(configmap::client(kubeconfig).await?, namespace, &recipe, &checks).await?
    };
    let report = ctrf(&tests);
    let output = Output { to: parsed.get("output"), kind: "CTRF", format: Format::Json, kubeconfig };
    output.value(&report).await?;
    if let Some(folder) = parsed.get("emit-attestation") {
        evidence::emit(parsed, folder, &recipe, &report).await?;
    }
    let failed = tests.iter().any(|test| test["status"] == "failed" || test["status"] == "other");
    if failed && parsed.on("fail-on-error", true) {
        return Err(Failure::internal("validation failed: one or more phases did not pass"));
    }
    Ok(())
}

fn phases(words: &[String]) -> Result<(), Failure> {
    match words.iter().find(|word| !PHASES.contains(&word.as_str())) {
        Some(bad) => Err(Failure::invalid(format!(
            "invalid phase \"{bad}\": must be one of: deployment, performance, conformance, all"
        ))),
        None => Ok(()),
    }
}

/// The readiness pre-flight: no Jobs and no report when it fails.
fn ready(recipe: &Value, snapshot: &Value) -> Result<(), Failure> {
    let all: Vec<&Value> = recipe["constraints"].as_array().into_iter().flatten().collect();
    log::info("readiness pre-flight", &[("constraints", json!(all.len()))]);
    for entry in all {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let constraint = Constraint { name: text("name"), value: text("value") };
        let actual = reading(snapshot, &constraint.name).unwrap_or_default();
        if !holds(&constraint, &actual) {
            let (name, value) = (&constraint.name, &constraint.value);
            return Err(Failure::invalid(format!("readiness check failed: {name} expected {value}, got {actual}")));
        }
        let keys = [("name", json!(constraint.name)), ("expected", json!(constraint.value)), ("actual", json!(actual))];
        log::info("readiness constraint passed", &keys);
    }
    Ok(())
}

/// The checks of the deployment phase: the only one the stand-in runs.
fn checks(recipe: &Value, skipped: &[String]) -> Vec<String> {
    let declared = recipe["validation"]["deployment"]["checks"].as_array().into_iter().flatten();
    declared.filter_map(Value::as_str).map(ToOwned::to_owned).filter(|name| !skipped.contains(name)).collect()
}

fn test(name: &str, status: &str, message: &str) -> Value {
    json!({"name": name, "status": status, "duration": 0, "suite": ["deployment"], "stdout": [], "message": message})
}

fn ctrf(tests: &[Value]) -> Value {
    let now = jiff::Timestamp::now();
    let count = |status: &str| tests.iter().filter(|test| test["status"] == status).count();
    json!({
        "reportFormat": "CTRF",
        "specVersion": "0.0.1",
        "timestamp": now.to_string(),
        "generatedBy": "aicr",
        "results": {
            "tool": {"name": "aicr", "version": release::stamped()},
            "summary": {
                "tests": tests.len(),
                "passed": count("passed"),
                "failed": count("failed"),
                "skipped": count("skipped"),
                "pending": 0,
                "other": count("other"),
                "start": now.as_millisecond(),
                "stop": now.as_millisecond(),
            },
            "tests": tests,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmet_constraint_is_an_invalid_request_in_aicrs_words() {
        let recipe = json!({"constraints": [{"name": "K8s.server.version", "value": ">= 1.32.4"}]});
        let server = json!({"subtype": "server", "data": {"version": "v1.30.0"}});
        let snapshot = json!({"measurements": [{"type": "K8s", "subtypes": [server]}]});
        assert_eq!(
            ready(&recipe, &snapshot).unwrap_err().to_string(),
            "[INVALID_REQUEST] readiness check failed: K8s.server.version expected >= 1.32.4, got v1.30.0"
        );
    }

    #[test]
    fn a_bad_phase_is_refused_with_the_list() {
        assert_eq!(
            phases(&["nope".into()]).unwrap_err().to_string(),
            "[INVALID_REQUEST] invalid phase \"nope\": must be one of: deployment, performance, conformance, all"
        );
    }

    #[test]
    fn the_report_counts_its_tests() {
        let report = ctrf(&[test("a", "passed", ""), test("b", "failed", "x"), test("c", "skipped", "")]);
        let summary = &report["results"]["summary"];
        assert_eq!((&summary["tests"], &summary["passed"], &summary["failed"]), (&json!(3), &json!(1), &json!(1)));
    }
}
