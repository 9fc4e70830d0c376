//! AICR's Jobs: how they end, and what they report.

use aicr_crds::reason::Reason;
use aicr_decide::{
    facts::Report,
    resolve::{Class, Failure, JobPhase, Stage},
};

use crate::{cluster::Cluster, event::Run, store::Change};

impl Cluster {
    /// AICR's Job ends.
    pub(crate) fn aicr(&mut self, run: Run) {
        let active = self.truth.world.jobs.iter().find(|job| matches!(job.phase, JobPhase::Active(_)));
        let Some(mut job) = active.cloned() else { return };
        let failure = |class, reason| Failure { exit: Some(1), text: "it broke".to_owned(), class, reason };
        let at = self.now;
        job.phase = match run {
            Run::Succeeds => {
                JobPhase::Succeeded { message: String::new(), output: Some(String::new()), refused: None, at }
            }
            Run::FailsOnce => JobPhase::Failed { failure: failure(Class::Transient, Reason::AICRInternal), at },
            Run::FailsForGood | Run::FailsCheck => {
                JobPhase::Failed { failure: failure(Class::Never, Reason::AICRInvalidRequest), at }
            }
        };
        if job.stage == Stage::Validation {
            self.reports(&job.name, run);
        }
        self.commit(Change::Job(Box::new(job)));
    }

    /// A validation that came to a verdict has written a report.
    fn reports(&mut self, job: &str, run: Run) {
        let report = match run {
            Run::Succeeds => Report { failed: Vec::new(), evidence: Some("evidence".to_owned()) },
            Run::FailsCheck => Report { failed: vec!["nvidia-smi".to_owned()], evidence: None },
            Run::FailsOnce | Run::FailsForGood => return,
        };
        self.commit(Change::Report(job.to_owned(), Box::new(report)));
    }
}
