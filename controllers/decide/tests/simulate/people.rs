//! What people, other controllers and accidents do to the cluster.

mod applications;

use std::sync::Arc;

use aicr_crds::{
    Digest, RuntimeRollout,
    keys::annotation,
    reason::Reason,
    rollout::{Acknowledgement, Approval, Person, Revocation, SCHEMA_VERSION},
    runtime::{Adoption, DeletionPolicy, SelectionPolicy},
};
use aicr_decide::{
    rollout::written,
    seen::{EngineState, Resolution, ResolutionState},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    cluster::Cluster,
    event::{self, Hand, Policy},
    family::{REBORN, UID},
    hands::annotate,
    store::{Change, Id, OfRollout},
};

impl Cluster {
    /// Somebody does something.
    pub(crate) fn hand(&mut self, hand: Hand) {
        match hand {
            Hand::Approve(kind) => self.approve(kind),
            Hand::Revoke => self.revoke(),
            Hand::Acknowledge => self.acknowledge(),
            Hand::Retry => self.retry(),
            Hand::Pause(paused) => self.runtime_changes(|spec| spec.paused = paused),
            Hand::Suspend(suspended) => self.runtime_changes(|spec| spec.suspend_engine = suspended),
            Hand::Engine(engine) => self.commit(Change::Engine(engine_state(engine))),
            Hand::Candidate(place) => self.candidate(place),
            Hand::Pin(place) => self.pin(place),
            Hand::Unpin => self.runtime_changes(|spec| spec.selection.policy = SelectionPolicy::Automatic),
            Hand::ResolutionStalls => self.resolution(ResolutionState::Stalled {
                reason: Reason::NodeGroupEmpty,
                message: "no node matches".to_owned(),
            }),
            Hand::Resolves => self.resolution(ResolutionState::Resolving {
                message: "AICR Jobs are running".to_owned(),
                plan_stands: false,
            }),
            Hand::Resolved => self.resolution(ResolutionState::Resolved),
            Hand::Edit(release) => self.edit(release),
            Hand::Undo(release) => self.undo(release),
            Hand::EditPlan(release) => self.edit_plan(release),
            Hand::Unlabel(release) => self.unlabel(release),
            Hand::Restore(release) => self.restore(release),
            Hand::Delete(release) => {
                let name = self.name(release);
                self.delete(name);
            }
            Hand::DeleteHeld(release) => self.delete_held(release),
            Hand::Recreate(release) => self.recreate(release),
            Hand::Appear(release) => self.appear(release),
            Hand::Foreign(release) => self.foreign(release),
            Hand::ForeignGone(release) => self.foreign_gone(release),
            Hand::LocalSync(release) => self.local_sync(release),
            Hand::LoseStatus => self.lose_status(),
            Hand::LoseOldRollouts => self.lose_old_rollouts(),
            Hand::PlanUnreadable(place) => self.commit(Change::PlanUnreadable(self.plan(place))),
            Hand::PlanReadable(place) => self.readable(place),
            Hand::PlanGone(place) => self.commit(Change::PlanGone(self.plan(place))),
            Hand::NewerSchema => self.schema("2"),
            Hand::OlderSchema => self.schema(SCHEMA_VERSION),
            Hand::DeleteRuntime(policy) => self.delete_runtime(policy),
            Hand::ChangePolicy(policy) => self.runtime_changes(|spec| spec.deletion_policy = policy_of(policy)),
            Hand::RuntimeGone => self.runtime_gone(),
            Hand::RuntimeReborn => self.reborn(),
            Hand::Adopt => self.runtime_changes(|spec| {
                spec.adoption = Some(Adoption { runtime_uid: UID.to_owned() });
            }),
            Hand::Gate(release, gate) => {
                self.change_application(self.name(release), |_, ghost| ghost.gate = gate);
            }
            Hand::Refuse(release, refuses) => {
                let name = self.name(release);
                self.refusing.retain(|other| *other != name);
                self.refusing.extend(refuses.then_some(name));
            }
            Hand::Ignore(release, ignores) => {
                self.change_application(self.name(release), |application, _| {
                    annotate(application, annotation::ARGO_SKIP_RECONCILE, ignores.then_some("true"));
                });
            }
            Hand::Trouble(stands) => {
                self.commit(Change::Trouble(stands.then(|| "nodes cannot be listed".to_owned())));
            }
            Hand::Lacks(stands) => {
                self.commit(Change::Lacks(stands.then(|| "namespace aicr-validation is missing".to_owned())));
            }
        }
    }

    fn name(&self, release: u8) -> &'static str {
        self.family.releases[usize::from(release) % self.family.releases.len()]
    }

    fn plan(&self, place: u8) -> Digest {
        self.family.plans[usize::from(place) % self.family.plans.len()].plan.digest()
    }

    fn of_unfinished(&mut self, change: impl FnOnce(&RuntimeRollout) -> Option<OfRollout>) -> Option<Id> {
        let id = self.unfinished()?;
        let change = change(self.truth.rollout(id)?)?;
        self.change_rollout(id, None, change)?;
        Some(id)
    }

    fn approve(&mut self, kind: event::Approval) {
        let now = self.now;
        let approved = self.of_unfinished(|rollout| {
            let spec = &rollout.spec;
            let own = aicr_decide::seam::binding(rollout)?;
            let (expires_at, binding_digest) = match kind {
                event::Approval::Whole => (spec.deadline.clone(), own),
                event::Approval::Short => (Time(now + SignedDuration::from_mins(10)), own),
                event::Approval::OfAnother => (spec.deadline.clone(), Digest::of(b"another rollout")),
            };
            let approval = Approval {
                reason: "maintenance".to_owned(),
                expires_at,
                binding_digest,
                approved_by: person(),
                approved_at: Time(now),
            };
            (spec.approval.is_none() && spec.revocation.is_none()).then(|| OfRollout::Approved(Box::new(approval)))
        });
        if let Some(id) = approved {
            let known = self.truth.rollout(id).is_some_and(|rollout| rollout.spec.schema_version == SCHEMA_VERSION);
            self.bound.push((id, known && kind != event::Approval::OfAnother));
        }
    }

    fn revoke(&mut self) {
        let now = Time(self.now);
        self.of_unfinished(|rollout| {
            let revocation = Revocation { reason: "not yet".to_owned(), revoked_by: person(), revoked_at: now };
            rollout.spec.revocation.is_none().then(|| OfRollout::Revoked(Box::new(revocation)))
        });
    }

    fn acknowledge(&mut self) {
        let now = Time(self.now);
        self.of_unfinished(|rollout| {
            let done = written(rollout);
            let open = rollout.spec.steps.iter().find(|step| {
                let given = rollout.spec.acknowledgements.iter().any(|entry| entry.release == step.release);
                step.acknowledge && !given && done.get(&step.release).is_some_and(|entry| entry.ready)
            })?;
            Some(OfRollout::Acknowledged(Box::new(Acknowledgement {
                release: open.release.clone(),
                reason: "done".to_owned(),
                acknowledged_by: person(),
                acknowledged_at: now,
            })))
        });
    }

    fn retry(&mut self) {
        let token = format!("token-{}", self.tick());
        self.runtime_metadata(|metadata| {
            metadata.annotations.get_or_insert_default().insert(annotation::RETRY.to_owned(), token);
        });
    }

    fn runtime_changes(&mut self, change: impl FnOnce(&mut aicr_crds::ClusterRuntimeSpec)) {
        let mut runtime = self.truth.world.runtime.as_ref().clone();
        change(&mut runtime.spec);
        self.commit_runtime(runtime);
    }

    fn runtime_metadata(
        &mut self,
        change: impl FnOnce(&mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta),
    ) {
        let mut runtime = self.truth.world.runtime.as_ref().clone();
        change(&mut runtime.metadata);
        self.commit_runtime(runtime);
    }

    fn commit_runtime(&mut self, mut runtime: aicr_crds::ClusterRuntime) {
        if self.truth.has_runtime {
            runtime.metadata.resource_version = Some(self.tick().to_string());
            self.commit(Change::Runtime(Arc::new(runtime)));
        }
    }

    fn candidate(&mut self, place: u8) {
        let stored = Arc::clone(&self.family.plans[usize::from(place) % self.family.plans.len()]);
        let digest = stored.plan.digest();
        let stored_as = self.truth.world.plans.get(&digest).map(|(_, stored)| stored.context.runtime_uid.as_str());
        let known = stored_as == Some(self.truth.world.uid());
        if !known {
            self.store_plan(&stored);
        }
        let resolution = Resolution {
            state: ResolutionState::Resolved,
            candidate: Some(digest),
            generation: self.truth.world.runtime.metadata.generation,
            ..self.truth.world.resolution.clone()
        };
        self.commit(Change::Resolution(Box::new(resolution)));
    }

    /// A plan as the present runtime would have it.
    fn store_plan(&mut self, stored: &Arc<aicr_crds::plan::StoredPlan>) {
        let mut stored = Arc::clone(stored);
        if stored.context.runtime_uid != self.truth.world.uid() {
            self.truth.world.uid().clone_into(&mut Arc::make_mut(&mut stored).context.runtime_uid);
        }
        self.commit(Change::Plan(stored.plan.digest(), self.now, stored));
    }

    fn readable(&mut self, place: u8) {
        let stored = Arc::clone(&self.family.plans[usize::from(place) % self.family.plans.len()]);
        self.store_plan(&stored);
    }

    fn pin(&mut self, place: u8) {
        let digest = self.plan(place).to_string();
        self.runtime_changes(|spec| {
            spec.selection.policy = SelectionPolicy::Pinned;
            spec.selection.pinned_plan_digest = digest;
        });
    }

    fn resolution(&mut self, state: ResolutionState) {
        let resolution = Resolution { state, ..self.truth.world.resolution.clone() };
        self.commit(Change::Resolution(Box::new(resolution)));
    }

    fn lose_status(&mut self) {
        self.runtime_status(None);
        for id in self.truth.ids().collect::<Vec<_>>() {
            self.change_rollout(id, None, OfRollout::Status(None));
        }
    }

    /// Retention, or a person: all that has ended goes, except what the active plan rests on.
    fn lose_old_rollouts(&mut self) {
        let newest = self.truth.world.newest_success().and_then(|rollout| rollout.metadata.name.clone());
        for id in self.truth.ids().collect::<Vec<_>>() {
            let name = self.truth.rollout(id).and_then(|rollout| rollout.metadata.name.clone());
            if !self.truth.is_unfinished(id) && name != newest {
                self.commit(Change::RolloutGone(id));
            }
        }
    }

    fn schema(&mut self, version: &'static str) {
        self.of_unfinished(|_| Some(OfRollout::Schema(version)));
    }

    fn delete_runtime(&mut self, policy: Policy) {
        let now = self.now;
        self.runtime_changes(|spec| spec.deletion_policy = policy_of(policy));
        self.runtime_metadata(|metadata| {
            metadata.deletion_timestamp.get_or_insert(Time(now));
        });
        if self.truth.world.runtime.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) {
            self.runtime_gone();
        }
    }

    fn runtime_gone(&mut self) {
        if self.truth.has_runtime && self.truth.world.runtime.metadata.deletion_timestamp.is_some() {
            self.commit(Change::RuntimeGone);
        }
    }

    fn reborn(&mut self) {
        if self.truth.has_runtime || self.truth.world.uid() == REBORN {
            return;
        }
        let mut runtime = self.truth.world.runtime.as_ref().clone();
        runtime.metadata.uid = Some(REBORN.to_owned());
        runtime.metadata.deletion_timestamp = None;
        runtime.metadata.finalizers = None;
        runtime.spec.adoption = None;
        runtime.metadata.resource_version = Some(self.tick().to_string());
        runtime.status = None;
        self.commit(Change::Runtime(Arc::new(runtime)));
    }
}

fn person() -> Person {
    Person { username: "alice".to_owned(), groups: vec![] }
}

fn engine_state(engine: event::Engine) -> EngineState {
    match engine {
        event::Engine::There => EngineState::Available,
        event::Engine::Missing => EngineState::Missing,
        event::Engine::NoProject => EngineState::ProjectMissing,
        event::Engine::Unauthorized => EngineState::Unauthorized,
        event::Engine::Stale => EngineState::CredentialsStale,
    }
}

fn policy_of(policy: Policy) -> DeletionPolicy {
    match policy {
        Policy::Orphan => DeletionPolicy::Orphan,
        Policy::Delete => DeletionPolicy::Delete,
    }
}
