//! The operator's writes, carried out as the API server would: preconditions checked, each logged in one line.

use aicr_crds::{
    application::Desired,
    keys::{annotation, finalizer},
};
use aicr_decide::{
    facts::Refusal,
    report::{Subject, carried_out, created_event, suspension_refused},
    resolve::{JobPhase, JobSeen},
    rollout::{ObjectRef, Write, written},
    runtime,
    seen::World,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::Story;

impl Story {
    /// Whether anything was written.
    pub(super) fn runtime_write(&mut self, world: &World, write: runtime::Write) -> bool {
        let told = write.clone();
        let mut made = String::new();
        match write {
            runtime::Write::CreateRollout(rollout) => self.create_rollout(world, *rollout),
            runtime::Write::Follow { on, ownership } => {
                self.say(format!("  {}: ownership annotations follow", on.name));
                self.annotate(&on, &json!(ownership.annotations()));
            }
            runtime::Write::RunAssessment(job) => {
                self.say(format!("  runs {}", job.stage));
                self.jobs.push(started(&job));
            }
            runtime::Write::StoreAssessment { job, .. } => panic!("{job}: stories give reports as `assessment`"),
            runtime::Write::AddFinalizer => {
                self.say("  adds the finalizer");
                self.runtime.metadata.finalizers = Some(vec![finalizer::CLEANUP.to_owned()]);
            }
            runtime::Write::Release { .. } => {
                self.tell_of(world, &told, "");
                self.say("  takes the finalizer off: the runtime is gone");
                self.runtime.metadata.finalizers = None;
            }
            runtime::Write::Orphan { on } => return self.orphan(&on),
            runtime::Write::SetAutomated { on, enabled } => {
                if !self.set_automated(world, &on, enabled) {
                    return true;
                }
            }
            runtime::Write::Repair { desired, on, .. } => {
                self.say(format!("  forces Application {} back to plan {}", on.name, desired.ownership.plan_digest));
                self.apply(&desired, &on);
            }
            runtime::Write::Recreate(desired) => {
                self.say(format!("  writes Application {} again", desired.name));
                made = self.create(&desired);
            }
            runtime::Write::RebuildPlan(stored) | runtime::Write::StorePlan(stored) => {
                self.say(format!("  stores plan {}, rebuilt from the Applications", stored.plan.digest()));
                made = format!("uid-plan-{}", self.tick());
                self.plans.insert(stored.plan.digest(), (self.now, *stored));
            }
            runtime::Write::WithdrawRemove { on, enabled } => self.withdraw(&on.name, enabled),
            runtime::Write::DeletePlan(name) => {
                self.say("  deletes a plan that retention does not keep".to_owned());
                self.plans.retain(|digest, _| aicr_crds::plan::Plan::config_map_name(*digest) != name);
            }
            runtime::Write::DeleteRollout(on) => {
                self.say(format!("  deletes rollout {}, which retention does not keep", on.name));
                self.rollouts.retain(|rollout| rollout.metadata.name.as_ref() != Some(&on.name));
            }
        }
        self.tell_of(world, &told, &made);
        true
    }

    fn tell_of(&mut self, world: &World, write: &runtime::Write, made: &str) {
        for (subject, note) in carried_out(world, write, made) {
            let on = match subject {
                Subject::Runtime => "the runtime".to_owned(),
                Subject::Application(name) => format!("Application {name}"),
            };
            self.tell(&on, &note);
        }
    }

    fn create_rollout(&mut self, world: &World, mut rollout: aicr_crds::RuntimeRollout) {
        let name = rollout.metadata.name.clone().unwrap();
        self.say(format!("  creates {name}"));
        for step in &rollout.spec.steps {
            let verdict = step.verdict.map_or(String::new(), |verdict| format!(" [{verdict}]"));
            let owes = if step.acknowledge { ", acknowledged" } else { "" };
            self.log.push(format!(
                "    {} {}{verdict}: {}, {}{owes}",
                step.operation, step.release, step.approval.need, step.approval.reason
            ));
        }
        rollout.metadata.uid = Some(format!("uid-{name}"));
        rollout.metadata.creation_timestamp = Some(Time(self.now));
        rollout.metadata.resource_version = Some(self.tick());
        self.tell("the runtime", &created_event(&world.runtime, &rollout));
        self.rollouts.push(rollout);
    }

    fn orphan(&mut self, on: &ObjectRef) -> bool {
        if self.refusing.contains(&on.name) {
            self.say(format!("  is refused to annotate Application {}", on.name));
            let refusal = Refusal { why: "admission denied it".into(), at: self.now };
            self.facts.refusals.orphaning.insert(on.name.clone(), refusal);
            return true;
        }
        self.say(format!("  annotates Application {} as orphaned", on.name));
        let uid = self.runtime.metadata.uid.clone();
        self.annotate(on, &json!({annotation::ORPHANED_FROM: uid}));
        true
    }

    /// Whether the API server took it.
    fn set_automated(&mut self, world: &World, on: &ObjectRef, enabled: bool) -> bool {
        let switched = if enabled { "on" } else { "off" };
        if self.refusing.contains(&on.name) {
            self.say(format!("  is refused to switch automated sync of {} {switched}", on.name));
            let refusal = Refusal { why: "admission denied it".into(), at: self.now };
            for note in suspension_refused(world, &on.name, &refusal.why) {
                self.tell("the runtime", &note);
            }
            self.facts.refusals.automation.insert(on.name.clone(), refusal);
            return false;
        }
        self.say(format!("  switches automated sync of {} {switched}", on.name));
        self.facts.refusals.automation.remove(&on.name);
        self.guarded(on)["spec"]["syncPolicy"]["automated"]["enabled"] = json!(enabled);
        self.touched(&on.name);
        true
    }

    pub(super) fn rollout_write(&mut self, index: usize, write: &Write, why: &str) {
        match write {
            Write::Begin { .. } => {}
            Write::Create(desired) => {
                self.say(format!("  creates Application {}", desired.name));
                self.create(desired);
            }
            Write::Apply { desired, on } => {
                self.say(format!("  applies Application {}", on.name));
                self.apply(desired, on);
            }
            Write::Refresh { on, hard } => {
                let word = if *hard { "hard" } else { "normal" };
                self.say(format!("  refreshes {} ({word}: {why})", on.name));
                self.annotate(on, &json!({annotation::ARGO_REFRESH: word}));
            }
            Write::Sync { on, source } => {
                self.say(format!("  starts a sync of {} ({why})", on.name));
                let rollout = self.rollouts[index].metadata.name.clone();
                let info = json!([{"name": aicr_crds::application::ROLLOUT_INFO, "value": rollout}]);
                let application = self.guarded(on);
                application["operation"] = json!({"sync": {"source": source}, "info": info});
                application["status"]["operationState"] = Value::Null;
                self.touched(&on.name);
            }
            Write::Terminate { on } => {
                self.say(format!("  terminates the operation of {} ({why})", on.name));
                self.guarded(on)["status"]["operationState"]["phase"] = json!("Terminating");
                self.touched(&on.name);
            }
            Write::PrepareRemove { on } => self.prepare(index, on),
            Write::ClaimRemove { on } => {
                self.say(format!("  takes over the removal of {}", on.name));
                let rollout = self.rollouts[index].metadata.name.clone();
                self.annotate(on, &json!({annotation::DELETE_ROLLOUT: rollout}));
            }
            Write::Annotate { on, ownership } => {
                self.say(format!("  writes the ownership annotations of {}", on.name));
                let mut all = json!(ownership.annotations());
                all[annotation::ORPHANED_FROM] = Value::Null;
                self.annotate(on, &all);
            }
            Write::RunValidation(plan) => {
                self.say(format!("  runs {}", plan.stage));
                self.jobs.push(started(plan));
            }
            Write::WithdrawRemove { on, enabled } => self.withdraw(&on.name, *enabled),
            Write::Delete { on } => {
                self.say(format!("  deletes {}", on.name));
                let now = self.now.to_string();
                self.guarded(on)["metadata"]["deletionTimestamp"] = json!(now);
                self.touched(&on.name);
            }
            Write::Record { release, entry } => {
                self.say(format!("  records {release} {}", if entry.ready { "ready" } else { "written" }));
                let mut all = written(&self.rollouts[index]);
                all.insert(release.clone(), entry.clone());
                let text = serde_json::to_string(&all).unwrap();
                self.noted(index, annotation::WRITTEN, &text);
            }
            Write::SpendToken { token } => {
                self.say(format!("  spends token {token}"));
                self.noted(index, annotation::RETRY_SPENT, token);
            }
        }
    }

    fn noted(&mut self, index: usize, key: &str, text: &str) {
        let annotations = self.rollouts[index].metadata.annotations.get_or_insert_default();
        annotations.insert(key.into(), text.into());
    }

    fn create(&mut self, desired: &Desired) -> String {
        assert!(!self.applications.contains_key(&desired.name), "creates {} which exists", desired.name);
        let version = self.tick();
        let uid = format!("uid-{}-{version}", desired.name);
        let mut body = desired.body(Some(&uid));
        body["metadata"]["resourceVersion"] = json!(version);
        self.applications.insert(desired.name.clone(), body);
        uid
    }

    fn apply(&mut self, desired: &Desired, on: &ObjectRef) {
        let kept = self.guarded(on).clone();
        let mut body = desired.body(Some(&on.uid));
        body["status"] = kept["status"].clone();
        if let Some(finalizers) = kept["metadata"].get("finalizers") {
            body["metadata"]["finalizers"] = finalizers.clone();
        }
        self.applications.insert(on.name.clone(), body);
        self.touched(&on.name);
    }

    /// A merge patch of annotations.
    fn annotate(&mut self, on: &ObjectRef, annotations: &Value) {
        let stored = self.guarded(on)["metadata"]["annotations"].as_object_mut().unwrap();
        for (key, value) in annotations.as_object().unwrap() {
            if value.is_null() {
                stored.remove(key);
            } else {
                stored.insert(key.clone(), value.clone());
            }
        }
        self.touched(&on.name);
    }

    fn prepare(&mut self, index: usize, on: &ObjectRef) {
        self.say(format!("  marks {} for removal", on.name));
        let rollout = self.rollouts[index].metadata.name.clone();
        self.annotate(on, &json!({annotation::DELETE_ROLLOUT: rollout}));
        // Argo CD makes the comparison that is asked for at once.
        let now = self.now.to_string();
        let application = self.applications.get_mut(&on.name).unwrap();
        application["metadata"]["finalizers"] = json!([finalizer::ARGO_CASCADE[0]]);
        application["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false);
        application["status"]["reconciledAt"] = json!(now);
    }

    fn withdraw(&mut self, name: &str, enabled: bool) {
        self.say(format!("  takes the removal marks off {name}"));
        let application = self.applications.get_mut(name).unwrap();
        application["spec"]["syncPolicy"]["automated"]["enabled"] = json!(enabled);
        let metadata = &mut application["metadata"];
        metadata["annotations"].as_object_mut().unwrap().remove(annotation::DELETE_ROLLOUT);
        metadata.as_object_mut().unwrap().remove("finalizers");
        self.touched(name);
    }

    /// The Application, once its uid and resourceVersion were checked as the API server does.
    fn guarded(&mut self, on: &ObjectRef) -> &mut Value {
        let application = self.applications.get_mut(&on.name).unwrap();
        assert_eq!(application["metadata"]["uid"], json!(on.uid), "uid of {}", on.name);
        assert_eq!(application["metadata"]["resourceVersion"], json!(on.resource_version), "version of {}", on.name);
        application
    }
}

fn started(plan: &aicr_decide::resolve::JobPlan) -> JobSeen {
    JobSeen {
        name: plan.name.clone(),
        stage: plan.stage,
        input: plan.input.clone(),
        attempt: plan.attempt,
        run: format!("run-{}-{}", plan.stage, plan.attempt),
        phase: JobPhase::Active(None),
    }
}
