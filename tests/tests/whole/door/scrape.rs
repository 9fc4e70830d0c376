//! A real Prometheus scrapes both replicas, understands what they say, and evaluates the chart's alerts on it.

use std::fs;
use std::path::Path;

use aicr_lab::product::this_chart;
use aicr_lab::{Place, command};
use aicr_tests::Stage;
use serde_json::{Value, json};

const LISTENS: &str = "127.0.0.1:19090";

/// Leaves no Prometheus.
pub(crate) fn a_prometheus_scrapes_both_replicas(stage: &Stage) {
    let folder = stage.lab.layout().root().join("prometheus");
    fs::create_dir_all(&folder).unwrap();
    let configuration = folder.join("prometheus.yml");
    fs::write(&configuration, configured(stage)).unwrap();
    let arguments = [
        format!("--config.file={}", configuration.display()),
        format!("--storage.tsdb.path={}", folder.join("data").display()),
        format!("--web.listen-address={LISTENS}"),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    stage.lab.spawn("prometheus", Place::Network, Path::new("prometheus"), &arguments, &[]).unwrap();
    stage.until("both replicas scraped", 2, || expect(stage, "sum(up{job=\"aicr-operator\"})", 2.0));
    stage.until("one of them leading", 1, || expect(stage, "sum(aicr_operator_leader)", 1.0));
    for series in [
        "count(aicr_operator_rollout_outcomes_total{outcome=\"Succeeded\"}) == 2",
        "count(aicr_operator_job_runs_total{result=\"success\"}) > 0",
        "count(aicr_operator_condition{type=\"Ready\"}) == 1",
        "sum(aicr_operator_admission_requests_total{decision=\"allowed\"}) > 0",
        "min(aicr_operator_webhook_certificate_expiry_timestamp_seconds) - time() > 86400",
    ] {
        assert!(answer(stage, series).is_some(), "nothing for {series}");
    }
    stage.until("the alerts evaluated", 1, || {
        let evaluated = answer(stage, "sum(prometheus_rule_evaluations_total)");
        if evaluated > Some(20.0) { Ok(()) } else { Err(format!("{evaluated:?}")) }
    });
    assert_eq!(answer(stage, "sum(prometheus_rule_evaluation_failures_total)"), Some(0.0));
    assert_eq!(
        answer(stage, "count(ALERTS{alertstate=\"firing\", alertname=~\"AicrOperator.*|AicrWebhook.*\"})"),
        None
    );
    stage.lab.stop_part("prometheus").unwrap();
}

fn expect(stage: &Stage, query: &str, wanted: f64) -> Result<(), String> {
    let found = answer(stage, query);
    if found == Some(wanted) { Ok(()) } else { Err(format!("{query} is {found:?}")) }
}

/// The value of an instant query with one result.
fn answer(stage: &Stage, query: &str) -> Option<f64> {
    let mut promtool = stage.lab.in_ns("promtool");
    let asked = command::output(promtool.args(["query", "instant", "-o", "json", &format!("http://{LISTENS}"), query]));
    let found: Value = serde_json::from_str(&asked.ok()?).ok()?;
    found[0]["value"][1].as_str()?.parse().ok()
}

/// Debian's Prometheus is built without the discovery of pods, so their addresses are written down.
fn configured(stage: &Stage) -> String {
    let pods = stage.list(&["get", "pods", "-n", "aicr-system", "-l", "app.kubernetes.io/name=aicr-operator"]);
    let target = |pod: &Value| Some(format!("{}:8080", pod["status"]["podIP"].as_str()?));
    let operator: Vec<String> = pods.iter().filter_map(target).collect();
    let jobs = [("aicr-operator", operator), ("prometheus", vec![LISTENS.to_owned()])];
    let jobs = jobs.map(|(job, targets)| json!({"job_name": job, "static_configs": [{"targets": targets}]}));
    // JSON is YAML.
    json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [this_chart().join("files/alerts.yaml")],
        "scrape_configs": jobs,
    })
    .to_string()
}
