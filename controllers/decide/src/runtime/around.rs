//! What one rollout needs to know of the world around it.

use std::sync::Arc;

use aicr_crds::{ClusterRuntime, RuntimeRollout, runtime::DeploymentValidation};

use super::fitness;
use crate::seen::{RolloutSeen, RuntimeFacts, RuntimeSeen, TargetSeen, World, age_key, outcome};
use crate::{facts::Facts, rollout::validation_input};

impl World {
    /// The world around one rollout of this runtime.
    pub fn around(&self, rollout: &RuntimeRollout) -> RolloutSeen {
        RolloutSeen {
            settings: Arc::clone(&self.settings),
            runtime: self.runtime_seen(rollout),
            engine: self.engine,
            resolution: self.resolution.state.clone(),
            target: self.target_seen(rollout),
            applications: Arc::clone(&self.applications),
            unreadable: super::next::unreadable(self),
            unfinished: self.others(rollout),
            facts: self.facts_for(rollout),
        }
    }

    /// What was gathered, with the AICR Jobs of this rollout's validation.
    fn facts_for(&self, rollout: &RuntimeRollout) -> Arc<Facts> {
        let mut facts = Arc::clone(&self.facts);
        if rollout.spec.validation == DeploymentValidation::Required && !self.jobs.is_empty() {
            let input = validation_input(rollout);
            let mut mine = self.jobs.iter().filter(|job| job.input == input).peekable();
            if mine.peek().is_some() {
                Arc::make_mut(&mut facts).validation.jobs.extend(mine.cloned());
            }
        }
        facts
    }

    fn runtime_seen(&self, rollout: &RuntimeRollout) -> RuntimeSeen {
        if rollout.spec.runtime.uid != self.uid() {
            return RuntimeSeen::Gone;
        }
        let ClusterRuntime { metadata, spec, .. } = self.runtime.as_ref();
        RuntimeSeen::There(RuntimeFacts {
            deleting: metadata.deletion_timestamp.as_ref().map(|_| spec.deletion_policy),
            paused: spec.paused,
            suspend_engine: spec.suspend_engine,
            suspension_refused: super::suspension::is_refused(self),
            new_token: self.new_token(),
            target: self.target(),
        })
    }

    fn target_seen(&self, rollout: &RuntimeRollout) -> TargetSeen {
        let Some(digest) = rollout.spec.target_plan_digest else { return TargetSeen::None };
        match fitness(self, digest, rollout.spec.validation) {
            Ok(stored) => TargetSeen::Plan(Arc::clone(stored)),
            Err((reason, message)) => TargetSeen::Unfit(reason, message),
        }
    }

    fn others(&self, rollout: &RuntimeRollout) -> Vec<(jiff::Timestamp, String)> {
        let other = |candidate: &&Arc<RuntimeRollout>| {
            outcome(candidate).is_none() && candidate.metadata.name != rollout.metadata.name
        };
        let keyed = |candidate: &Arc<RuntimeRollout>| {
            let (created, _, name) = age_key(candidate);
            Some((created?, name.to_owned()))
        };
        self.rollouts.iter().filter(other).filter_map(keyed).collect()
    }
}
