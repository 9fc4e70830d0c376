//! What outlives its use, and what must not be lost too soon: leftovers of launchers, and failed Jobs of stalled stages.

use std::collections::BTreeSet;

use aicr_decide::resolve::{self, JobPhase, JobSeen, KEPT_SECONDS, Stage};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use crate::{
    controller::{Hands, Look},
    error::DriveError,
};

/// How long a launcher that was told to stop may take to clean up after itself.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Remembers which launchers ran, and when their leftovers are looked for.
#[derive(Default)]
pub(crate) struct Upkeep {
    launchers: BTreeSet<String>,
    swept: Option<Timestamp>,
    sweep_at: Option<Timestamp>,
}

impl Upkeep {
    /// One look at all Jobs.
    pub(crate) async fn step(&mut self, hands: &Hands, jobs: &[JobSeen], now: Timestamp) -> Result<Look, DriveError> {
        keep_longer(hands, jobs, now).await?;
        self.launched(jobs, now);
        match self.sweep_at {
            Some(at) if at <= now => {
                sweep(hands, jobs).await?;
                self.swept = Some(now);
                self.sweep_at = None;
                Ok(Look::OnEvent)
            }
            Some(at) => Ok(Look::At(at)),
            None => Ok(Look::OnEvent),
        }
    }

    /// At the start, and some time after a launcher has ended or was cancelled, there may be leftovers.
    fn launched(&mut self, jobs: &[JobSeen], now: Timestamp) {
        let active = |job: &&JobSeen| {
            job.stage == Stage::Snapshot
                && match job.phase {
                    JobPhase::Suspended | JobPhase::Active(_) => true,
                    JobPhase::Succeeded { .. } | JobPhase::Failed { .. } => false,
                }
        };
        let present: BTreeSet<String> = jobs.iter().filter(active).map(|job| job.name.clone()).collect();
        if !self.launchers.is_subset(&present) {
            self.sweep_at = Some(now + GRACE);
        } else if self.swept.is_none() {
            self.sweep_at = Some(now);
        }
        self.launchers = present;
    }
}

async fn keep_longer(hands: &Hands, jobs: &[JobSeen], now: Timestamp) -> Result<(), DriveError> {
    let records = hands.gather.records();
    for name in resolve::kept_longer(jobs, &records, now) {
        let Some(job) = hands.gather.watches.jobs.iter().find_map(|shelf| shelf.get(name)) else { continue };
        let ttl = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
        if ttl.is_some_and(|seconds| seconds < KEPT_SECONDS) {
            let _ = hands.write.keep_job(&job).await?;
            tracing::info!(job = name, "a failed Job of a stalled stage is kept for seven days");
        }
    }
    Ok(())
}

async fn sweep(hands: &Hands, jobs: &[JobSeen]) -> Result<(), DriveError> {
    let agents = hands.gather.agents().await?;
    let names: Vec<String> = agents.iter().map(kube::ResourceExt::name_any).collect();
    let left = resolve::agents_left_behind(&names, jobs);
    for agent in agents.iter().filter(|agent| left.contains(&agent.name_any())) {
        tracing::info!(job = agent.name_any(), "an agent that its launcher left is deleted");
        let _ = hands.write.delete_agent(agent).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(phase: JobPhase) -> JobSeen {
        JobSeen {
            name: "aicr-snapshot-0123456789ab-1".into(),
            stage: Stage::Snapshot,
            input: "i".into(),
            attempt: 1,
            run: "r".into(),
            phase,
        }
    }

    #[test]
    fn leftovers_are_looked_for_at_the_start_and_a_minute_after_a_launcher_is_gone() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut upkeep = Upkeep::default();
        upkeep.launched(&[launcher(JobPhase::Active(None))], at(0));
        assert_eq!(upkeep.sweep_at, Some(at(0)));
        (upkeep.swept, upkeep.sweep_at) = (Some(at(0)), None);
        upkeep.launched(&[launcher(JobPhase::Active(None))], at(10));
        assert_eq!(upkeep.sweep_at, None);
        upkeep.launched(&[], at(20));
        assert_eq!(upkeep.sweep_at, Some(at(80)));
    }
}
