//! AICR's report on a validation run, out of the ConfigMap that the run wrote, and where its evidence went.

use std::collections::BTreeSet;

use aicr_decide::{
    facts::Report,
    resolve::{JobPhase, JobSeen, Stage},
};
use aicr_read::ctrf;
use k8s_openapi::api::core::v1::ConfigMap;

use super::seen::document;

/// The exit with which AICR says that checks failed, after pushing their evidence.
const CHECKS_FAILED: i32 = 8;

/// The report of a finished validation Job, with what its checks' images were; `None` where there is nothing to report.
pub(crate) fn of(
    job: &JobSeen,
    output: Option<&ConfigMap>,
    repository: &str,
    unpinned: BTreeSet<String>,
) -> Option<Report> {
    if job.stage != Stage::Validation {
        return None;
    }
    let mut failed: Vec<String> = unpinned.into_iter().collect();
    let Some(report) = read(job, output) else {
        return (!failed.is_empty()).then_some(Report { failed, evidence: None });
    };
    failed.extend(report.failed());
    let pushed = match &job.phase {
        JobPhase::Succeeded { .. } => true,
        JobPhase::Failed { failure, .. } => failure.exit == Some(CHECKS_FAILED),
        JobPhase::Suspended | JobPhase::Active(_) => false,
    };
    // The tag is the Job's name, which no other run has.
    let evidence = pushed.then(|| format!("{repository}/evidence:{}", job.name));
    Some(Report { failed, evidence })
}

fn read(job: &JobSeen, output: Option<&ConfigMap>) -> Option<ctrf::Report> {
    let text = output.and_then(document)?;
    match ctrf::read(text.as_bytes()) {
        Ok(report) => Some(report),
        Err(error) => {
            tracing::warn!(job = job.name, %error, "the validation report cannot be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use aicr_crds::reason::Reason;
    use aicr_decide::resolve::{Class, Failure};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn job(exit: Option<i32>) -> JobSeen {
        let at = Timestamp::UNIX_EPOCH;
        let phase = match exit {
            Some(0) => JobPhase::Succeeded { message: String::new(), output: None, refused: None, at },
            exit => {
                let (class, reason) = (Class::Bounded, Reason::AICRInternal);
                JobPhase::Failed { failure: Failure { exit, text: String::new(), class, reason }, at }
            }
        };
        let name = "aicr-validation-0123456789ab-1".to_owned();
        JobSeen { name, stage: Stage::Validation, input: "i".into(), attempt: 1, run: "r".into(), phase }
    }

    fn output(status: &str) -> ConfigMap {
        let report = json!({ "reportFormat": "CTRF", "results": { "summary": { "tests": 1 },
            "tests": [{ "name": "operator-health", "status": status, "message": "not available: gpu/x" }] } });
        let data = [("format".to_owned(), "json".to_owned()), ("snapshot.json".to_owned(), report.to_string())];
        ConfigMap { data: Some(data.into()), ..ConfigMap::default() }
    }

    #[test]
    fn a_failed_run_s_report_names_its_checks_and_the_evidence_that_was_pushed_before() {
        let report = of(&job(Some(8)), Some(&output("failed")), "r/p", BTreeSet::new()).unwrap();
        assert_eq!(report.failed, ["operator-health: not available: gpu/x"]);
        assert_eq!(report.evidence.as_deref(), Some("r/p/evidence:aicr-validation-0123456789ab-1"));
        let passed = of(&job(Some(0)), Some(&output("passed")), "r/p", BTreeSet::new()).unwrap();
        assert!(passed.failed.is_empty() && passed.evidence.is_some());
    }

    #[test]
    fn a_run_that_did_not_come_to_its_verdict_pushed_nothing_and_one_without_output_reports_nothing() {
        assert_eq!(of(&job(None), Some(&output("passed")), "r/p", BTreeSet::new()).unwrap().evidence, None);
        assert_eq!(of(&job(Some(8)), None, "r/p", BTreeSet::new()), None);
        assert_eq!(of(&job(Some(8)), Some(&ConfigMap::default()), "r/p", BTreeSet::new()), None);
        let snapshot = JobSeen { stage: Stage::Snapshot, ..job(Some(0)) };
        assert_eq!(of(&snapshot, Some(&output("passed")), "r/p", BTreeSet::new()), None);
    }

    #[test]
    fn an_image_that_is_not_pinned_fails_a_run_that_passed() {
        let unpinned = || BTreeSet::from(["validator image x is not pinned".to_owned()]);
        let report = of(&job(Some(0)), Some(&output("passed")), "r/p", unpinned()).unwrap();
        assert_eq!(report.failed, ["validator image x is not pinned"]);
        assert!(of(&job(Some(8)), None, "r/p", unpinned()).is_some());
    }
}
