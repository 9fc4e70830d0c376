//! A fresh installation: what it serves before anybody asks for anything.

use std::io::Write as _;
use std::process::{Command, Stdio};

use aicr_tests::Stage;

const OUTCOMES: [&str; 6] = ["Succeeded", "Failed", "Expired", "Revoked", "Superseded", "Orphaned"];
const STAGES: [&str; 6] = ["snapshot", "recipe", "base", "render", "assessment", "validation"];

pub(crate) fn every_series_is_there_at_zero(stage: &Stage) {
    let text = stage.metrics();
    let zero = |series: &str| {
        let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(name, _)| name == series));
        assert_eq!(line, Some(format!("{series} 0").as_str()), "{text}");
    };
    for outcome in OUTCOMES {
        zero(&format!("aicr_operator_rollout_outcomes_total{{outcome=\"{outcome}\"}}"));
    }
    for step in STAGES {
        for result in ["success", "failure"] {
            zero(&format!("aicr_operator_job_duration_seconds_count{{result=\"{result}\",stage=\"{step}\"}}"));
        }
        zero(&format!("aicr_operator_job_runs_total{{class=\"\",result=\"success\",stage=\"{step}\"}}"));
        for class in ["never", "bounded", "transient", "authorization"] {
            zero(&format!("aicr_operator_job_runs_total{{class=\"{class}\",result=\"failure\",stage=\"{step}\"}}"));
        }
    }
    for result in ["success", "failure"] {
        zero(&format!("aicr_operator_validation_runs_total{{result=\"{result}\"}}"));
    }
    zero("aicr_operator_registry_token_expiry_timestamp_seconds");
    zero("aicr_operator_registry_token_refresh_timestamp_seconds");
    promtool(&text);
}

fn promtool(text: &str) {
    let mut check = Command::new("promtool");
    let mut child = check
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn both_kinds_answer_as_on_the_page(stage: &Stage) {
    assert_eq!(stage.list(&["get", "aicrrt"]).len(), 0);
    assert_eq!(stage.list(&["get", "aicrro"]).len(), 0);
    let plans = stage.list(&["get", "configmaps", "-n", "aicr-system", "-l", "operator.aicr.run/role=plan"]);
    assert_eq!(plans.len(), 0);
}
