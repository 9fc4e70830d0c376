//! Writes for the runtime as the hands carry them out: new rollouts, and what is done between, around and after them.

use std::sync::Arc;

use aicr_crds::{
    RuntimeRollout,
    application::{Application, AutomatedSync, Desired},
    keys::{annotation, finalizer},
    plan::Plan,
};
use aicr_decide::{report, rollout::ObjectRef, runtime::Write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    cluster::{Answer, Cluster},
    ghost::Ghost,
    hands::{annotate, note, replace},
    promises,
    store::{Change, Store},
};

impl Cluster {
    /// One write for the runtime.
    pub(crate) fn runtime_write(&mut self, operator: usize, view: &Store, write: &Write) {
        match write {
            Write::CreateRollout(rollout) => self.create_rollout(view, rollout),
            Write::RunAssessment(plan) => self.run_job(plan),
            Write::StoreAssessment { job, input } => {
                self.say(|| "stores an assessment");
                self.commit(Change::Assessment(input.clone(), Arc::clone(&self.family.assessment)));
                self.commit(Change::JobGone(job.clone()));
            }
            Write::AddFinalizer => self.finalizers(view, Some(vec![finalizer::CLEANUP.to_owned()])),
            Write::Release { .. } => self.release(view),
            Write::RebuildPlan(stored) | Write::StorePlan(stored) => {
                self.say(|| format!("stores plan {}", stored.plan.digest()));
                self.commit(Change::Plan(stored.plan.digest(), self.now, Arc::new((**stored).clone())));
            }
            Write::DeletePlan(name) => {
                let found =
                    self.truth.world.plans.keys().find(|digest| Plan::config_map_name(**digest) == *name).copied();
                self.say(|| format!("deletes {name}"));
                if let Some(digest) = found {
                    self.commit(Change::PlanGone(digest));
                }
            }
            Write::DeleteRollout(on) => self.delete_rollout(on),
            Write::Follow { .. }
            | Write::Orphan { .. }
            | Write::SetAutomated { .. }
            | Write::Repair { .. }
            | Write::Recreate(_)
            | Write::WithdrawRemove { .. } => {
                // The lease is looked at once more before Argo CD is written to.
                if operator == self.leader {
                    let broken = promises::puts_right(self, write);
                    if self.put_right(operator, view, write) {
                        self.check(broken);
                    }
                }
            }
        }
    }

    /// Whether an Application was written.
    fn put_right(&mut self, operator: usize, view: &Store, write: &Write) -> bool {
        match write {
            Write::Follow { on, ownership } => {
                self.say(|| format!("{}: annotations follow", on.name));
                self.narrow(on, |application, _| note(application, ownership))
            }
            Write::Orphan { on } => self.orphan(operator, view, on),
            Write::SetAutomated { on, enabled } => self.set_automated(operator, on, *enabled),
            Write::Repair { desired, on, .. } => {
                self.say(|| format!("forces {} back to {}", on.name, desired.ownership.plan_digest.short()));
                let made = self.owned(desired);
                self.narrow(on, |application, _| replace(application, made))
            }
            Write::Recreate(desired) => {
                self.say(|| format!("writes {} again", desired.name));
                let absent = self.truth.application(&desired.name).is_none();
                if absent {
                    let made = self.owned(desired);
                    self.create_application(made, Ghost::default());
                }
                absent
            }
            Write::WithdrawRemove { on, enabled } => self.withdraw(on, *enabled),
            Write::CreateRollout(_)
            | Write::RunAssessment(_)
            | Write::StoreAssessment { .. }
            | Write::AddFinalizer
            | Write::Release { .. }
            | Write::RebuildPlan(_)
            | Write::StorePlan(_)
            | Write::DeletePlan(_)
            | Write::DeleteRollout(_) => false,
        }
    }

    fn owned(&self, desired: &Desired) -> Application {
        let mut made = self.family.application(desired);
        note(&mut made, &desired.ownership);
        made
    }

    fn refuses(&self, on: &ObjectRef) -> bool {
        self.refusing.contains(&on.name.as_str())
    }

    fn orphan(&mut self, operator: usize, view: &Store, on: &ObjectRef) -> bool {
        let refused = self.refuses(on);
        self.say(|| format!("orphans {}{}", on.name, if refused { ", refused" } else { "" }));
        if refused {
            self.operators[operator].answers.push(Answer::OrphaningRefused(on.name.clone()));
            return false;
        }
        let uid = view.world.uid().to_owned();
        self.narrow(on, |application, _| annotate(application, annotation::ORPHANED_FROM, Some(&uid)))
    }

    fn set_automated(&mut self, operator: usize, on: &ObjectRef, enabled: bool) -> bool {
        let refused = self.refuses(on);
        self.say(|| format!("automated sync of {} {enabled}{}", on.name, if refused { ", refused" } else { "" }));
        let name = on.name.clone();
        let answer = if refused { Answer::AutomationRefused(name) } else { Answer::AutomationTaken(name) };
        self.operators[operator].answers.push(answer);
        !refused
            && self.narrow(on, |application, _| {
                application.automated = if enabled { AutomatedSync::Enabled } else { AutomatedSync::Disabled };
            })
    }

    fn create_rollout(&mut self, view: &Store, rollout: &RuntimeRollout) {
        let name = rollout.metadata.name.clone().unwrap_or_default();
        let names = |application: &Arc<Application>| {
            let said = &application.annotations;
            [&said.rollout, &said.delete_rollout].into_iter().flatten().any(|named| *named == name)
        };
        // The API server refuses the first; the hands ask it for the second before they create.
        if self.truth.world.rollout_names.contains(&name) || self.truth.world.applications.iter().any(names) {
            return;
        }
        self.say(|| format!("creates {name}: {}", steps(rollout)));
        let mut rollout = rollout.clone();
        let version = self.tick();
        rollout.metadata.uid = Some(format!("uid-{version}"));
        rollout.metadata.creation_timestamp = Some(Time(whole(self.now)));
        rollout.metadata.resource_version = Some(version.to_string());
        let note = report::created_event(&view.world.runtime, &rollout);
        self.commit(Change::Rollout(Arc::new(rollout)));
        self.announce(&note);
    }

    fn delete_rollout(&mut self, on: &ObjectRef) {
        let found = self.truth.id_of(&on.name).filter(|id| {
            let version = self.truth.rollout(*id).and_then(|rollout| rollout.metadata.resource_version.as_deref());
            version == Some(on.resource_version.as_str())
        });
        if let Some(id) = found {
            self.say(|| format!("deletes rollout {}", on.name));
            self.commit(Change::RolloutGone(id));
        }
    }

    /// The runtime's finalizers, where it is still as it was seen.
    fn finalizers(&mut self, view: &Store, finalizers: Option<Vec<String>>) {
        let mut runtime = self.truth.world.runtime.as_ref().clone();
        if self.truth.has_runtime && runtime.metadata.resource_version == view.world.runtime.metadata.resource_version {
            runtime.metadata.finalizers = finalizers;
            runtime.metadata.resource_version = Some(self.tick().to_string());
            self.commit(Change::Runtime(Arc::new(runtime)));
        }
    }

    /// Without its finalizer a runtime in deletion is gone.
    fn release(&mut self, view: &Store) {
        let there = &self.truth.world.runtime.metadata;
        if self.truth.has_runtime && there.resource_version == view.world.runtime.metadata.resource_version {
            self.say(|| "the runtime is gone");
            self.commit(Change::RuntimeGone);
        }
    }
}

fn whole(at: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(at.as_second()).unwrap_or(at)
}

fn steps(rollout: &RuntimeRollout) -> String {
    let each = rollout.spec.steps.iter().map(|step| {
        let owes = if step.acknowledge { ", acknowledged" } else { "" };
        format!("{} {} ({}{owes})", step.operation, step.release, step.approval.need)
    });
    each.collect::<Vec<_>>().join(", ")
}
