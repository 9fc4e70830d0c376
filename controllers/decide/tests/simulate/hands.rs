//! Writes as the hands carry them out: each with its precondition, none with anything left to choose.

use std::sync::Arc;

use aicr_crds::{
    RuntimeRollout,
    application::{Annotations, Application, AutomatedSync, Desired, OperationPhase, Ownership},
    keys::{annotation, finalizer, label},
};
use aicr_decide::{
    resolve::{JobPhase, JobPlan, JobSeen},
    rollout::{ObjectRef, Position, Write},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    cluster::Cluster,
    ghost::Ghost,
    look::Look,
    mutants::Mutant,
    promises,
    store::{Change, Id, OfRollout},
};

/// What became of a write.
pub(crate) enum Landed {
    /// Done; the rollout's version after it.
    Done(Option<String>),
    /// The object was another by then.
    Stale,
    /// The process died before it.
    Died,
}

impl Cluster {
    /// One write of a rollout.
    pub(crate) fn write(
        &mut self,
        operator: usize,
        id: Id,
        position: &Position<'_>,
        write: &Write,
        look: &mut Look,
    ) -> Landed {
        let rollout = position.rollout;
        let version = rollout.metadata.resource_version.clone();
        // The status that follows is the write.
        if let Write::Begin { .. } = write {
            return Landed::Done(version);
        }
        if !look.burns() {
            return Landed::Died;
        }
        let annotated = |landed: Option<u64>| landed.map_or(Landed::Stale, |on| Landed::Done(Some(on.to_string())));
        match write {
            Write::Record { release, entry } => {
                let mut all = position.written.as_ref().clone();
                all.insert(release.clone(), entry.clone());
                let text = serde_json::to_string(&all).unwrap();
                annotated(self.change_rollout(id, version.as_deref(), OfRollout::Wrote(Arc::new(all), text)))
            }
            Write::SpendToken { token } => {
                let change = OfRollout::Annotation(annotation::RETRY_SPENT, token.clone());
                annotated(self.change_rollout(id, version.as_deref(), change))
            }
            Write::RunValidation(plan) => {
                let broken = promises::runs_once(self, plan);
                self.check(broken);
                self.run_job(plan);
                Landed::Done(version)
            }
            Write::Begin { .. }
            | Write::Create(_)
            | Write::Apply { .. }
            | Write::Refresh { .. }
            | Write::Sync { .. }
            | Write::Terminate { .. }
            | Write::PrepareRemove { .. }
            | Write::ClaimRemove { .. }
            | Write::Annotate { .. }
            | Write::WithdrawRemove { .. }
            | Write::Delete { .. } => {
                // The lease is looked at once more before Argo CD is written to.
                let broken = promises::lands(self, id, write);
                if operator == self.leader && self.write_application(id, rollout, write) {
                    self.check(broken);
                    // Only a view that has held the request can show that it was answered.
                    if let Write::Refresh { .. } = write {
                        self.operators[operator].reads_back |= self.mutant != Mutant::RefreshNotReadBack;
                    }
                    Landed::Done(version)
                } else {
                    Landed::Stale
                }
            }
        }
    }

    fn write_application(&mut self, id: Id, rollout: &RuntimeRollout, write: &Write) -> bool {
        let name = rollout.metadata.name.clone().unwrap_or_default();
        match write {
            Write::Create(desired) => self.create(id, desired, rollout),
            Write::Apply { desired, on } => self.guarded(on) && self.apply(id, desired, rollout),
            Write::Refresh { on, .. } => self.narrow(on, |application, _| {
                annotate(application, annotation::ARGO_REFRESH, Some("normal"));
            }),
            Write::Sync { on, .. } => self.narrow(on, |application, ghost| {
                application.operation_requested = true;
                application.status.operation = None;
                ghost.synced_for = Some(id);
            }),
            Write::Terminate { on } => self.narrow(on, |application, _| {
                if let Some(state) = &mut application.status.operation {
                    state.phase = OperationPhase::Terminating;
                }
            }),
            Write::PrepareRemove { on } => self.narrow(on, |application, _| {
                annotate(application, annotation::DELETE_ROLLOUT, Some(&name));
                annotate(application, annotation::ARGO_REFRESH, Some("normal"));
                application.metadata.finalizers = Some(vec![finalizer::ARGO_CASCADE[0].to_owned()]);
                application.automated = AutomatedSync::Disabled;
            }),
            Write::ClaimRemove { on } => self.narrow(on, |application, _| {
                annotate(application, annotation::DELETE_ROLLOUT, Some(&name));
            }),
            Write::Annotate { on, ownership } => self.adopt(id, on, ownership),
            Write::WithdrawRemove { on, enabled } => self.withdraw(on, *enabled),
            Write::Delete { on } => self.guarded(on) && self.delete(&on.name),
            Write::Begin { .. } | Write::Record { .. } | Write::SpendToken { .. } | Write::RunValidation(_) => false,
        }
    }

    fn create(&mut self, id: Id, desired: &Desired, rollout: &RuntimeRollout) -> bool {
        if self.truth.application(&desired.name).is_some() {
            return false;
        }
        let mut application = self.family.application(desired);
        own(&mut application, rollout);
        let ghost = Ghost { step: Some((id, self.now)), ..Ghost::default() };
        self.create_application(application, ghost);
        true
    }

    /// A whole apply: other people's annotations stay, and so does the status.
    fn apply(&mut self, id: Id, desired: &Desired, rollout: &RuntimeRollout) -> bool {
        let now = self.now;
        let made = self.family.application(desired);
        self.change_application(&desired.name, |application, ghost| {
            ghost.step = Some((id, now));
            replace(application, made);
            own(application, rollout);
        })
    }

    /// Deletes it; one that a finalizer holds is in deletion.
    pub(crate) fn delete(&mut self, name: &str) -> bool {
        let Some((application, _)) = self.truth.application(name) else { return false };
        if application.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) {
            self.commit(Change::ApplicationGone(name.to_owned()));
            return true;
        }
        let now = self.now;
        self.change_application(name, |application, _| {
            application.metadata.deletion_timestamp.get_or_insert(Time(now));
        })
    }

    /// The ownership annotations and nothing else.
    fn adopt(&mut self, id: Id, on: &ObjectRef, ownership: &Ownership) -> bool {
        let now = self.now;
        self.narrow(on, |application, ghost| {
            ghost.step = Some((id, now));
            note(application, ownership);
            annotate(application, annotation::ORPHANED_FROM, None);
        })
    }

    pub(crate) fn withdraw(&mut self, on: &ObjectRef, enabled: bool) -> bool {
        self.narrow(on, |application, _| {
            application.automated = if enabled { AutomatedSync::Enabled } else { AutomatedSync::Disabled };
            annotate(application, annotation::DELETE_ROLLOUT, None);
            application.metadata.finalizers = None;
        })
    }

    /// A Job of this name, unless there is one.
    pub(crate) fn run_job(&mut self, plan: &JobPlan) {
        if self.truth.world.jobs.iter().any(|job| job.name == plan.name) {
            return;
        }
        self.say(|| format!("runs {}", plan.name));
        self.commit(Change::Job(Box::new(JobSeen {
            name: plan.name.clone(),
            stage: plan.stage,
            input: plan.input.clone(),
            attempt: plan.attempt,
            run: plan.name.clone(),
            phase: JobPhase::Active(None),
        })));
    }

    /// Whether the object is there as it was seen.
    pub(crate) fn guarded(&self, on: &ObjectRef) -> bool {
        self.truth.application(&on.name).is_some_and(|(application, _)| {
            let version = application.metadata.resource_version.as_deref() == Some(on.resource_version.as_str());
            application.uid() == on.uid && (version || self.mutant.ignores_application_version())
        })
    }

    pub(crate) fn narrow(&mut self, on: &ObjectRef, change: impl FnOnce(&mut Application, &mut Ghost)) -> bool {
        self.guarded(on) && self.change_application(&on.name, change)
    }
}

/// Sets or takes off an annotation.
pub(crate) fn annotate(application: &mut Application, key: &str, value: Option<&str>) {
    application.annotations.set(key, value.map(str::to_owned));
}

fn own(application: &mut Application, rollout: &RuntimeRollout) {
    annotate(application, annotation::ROLLOUT, rollout.metadata.name.as_deref());
    annotate(application, annotation::RUNTIME_UID, Some(&rollout.spec.runtime.uid));
    let labels = application.metadata.labels.get_or_insert_default();
    labels.insert(label::MANAGED_BY.to_owned(), label::MANAGED_BY_VALUE.to_owned());
}

/// The ownership annotations as they shall be.
pub(crate) fn note(application: &mut Application, ownership: &Ownership) {
    for (key, value) in ownership.annotations() {
        application.annotations.set(&key, Some(value));
    }
}

/// An apply of all that is ours: other people's annotations stay, and so does the status.
pub(crate) fn replace(application: &mut Application, made: Application) {
    let kept = std::mem::replace(application, made);
    let Annotations { refresh, delete_rollout, orphaned_from, skip_reconcile, .. } = kept.annotations;
    let written = std::mem::take(&mut application.annotations);
    application.annotations = Annotations { refresh, delete_rollout, orphaned_from, skip_reconcile, ..written };
    application.metadata.uid = kept.metadata.uid;
    application.metadata.finalizers = kept.metadata.finalizers;
    application.metadata.deletion_timestamp = kept.metadata.deletion_timestamp;
    application.status = kept.status;
    application.operation_requested = kept.operation_requested;
}

/// A write in one line.
pub(crate) fn word(write: &Write) -> String {
    match write {
        Write::Begin { index } => format!("begins step {index}"),
        Write::Create(desired) => format!("creates {}", desired.name),
        Write::Apply { desired, .. } => format!("applies {}", desired.name),
        Write::Refresh { on, .. } => format!("refreshes {}", on.name),
        Write::Sync { on, .. } => format!("syncs {}", on.name),
        Write::Terminate { on } => format!("terminates the operation of {}", on.name),
        Write::PrepareRemove { on } => format!("prepares the removal of {}", on.name),
        Write::WithdrawRemove { on, .. } => format!("withdraws the removal of {}", on.name),
        Write::ClaimRemove { on } => format!("takes over the removal of {}", on.name),
        Write::Annotate { on, .. } => format!("adopts {}", on.name),
        Write::RunValidation(plan) => format!("runs {}", plan.name),
        Write::Delete { on } => format!("deletes {}", on.name),
        Write::Record { release, entry } if entry.ready => format!("records {release} ready"),
        Write::Record { release, .. } => format!("records {release}"),
        Write::SpendToken { token } => format!("spends token {token}"),
    }
}
