//! Reports from the field that need an API server and an Argo CD that does as it is told.

use std::time::Duration;

use aicr_tests::engine::plans::Which;
use aicr_tests::engine::player::Manner;
use aicr_tests::engine::story::End;
use aicr_tests::engine::wire::{Crash, Keep, Trouble, Wire};
use aicr_tests::engine::{BOUND, Engine, OPERATOR, Operator};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// An operator at plan A, on this way.
fn at_plan_a(engine: &Engine, trouble: Trouble) -> Operator {
    engine.clear();
    engine.runtime(&[Which::A.plan(), Which::B.plan()]);
    let operator = engine.operator(Wire::with(Crash::Never, Keep::Writes, trouble));
    assert_eq!(engine.run(&operator, &Which::A.plan(), BOUND), End::Settled);
    operator
}

/// B23: a project that is gone before its Applications holds a removal up, and nothing is deleted meanwhile.
pub(crate) fn a_removal_waits_for_a_project_that_is_gone(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    engine.player.treat("nodewright", Manner::Idle);
    engine.pin(Which::B.digest());
    engine.until("the step before the removal", BOUND, |sight| sight.application("nodewright").map(drop));
    let mark = engine.audit.mark();
    engine.without_project(|| {
        engine.until("the project is missed", BOUND, |sight| {
            (sight.reason("EngineAvailable").as_deref() == Some("ProjectMissing")).then_some(())
        });
        engine.player.treat("nodewright", Manner::Prompt);
        engine.change_application("nodewright", &json!({ "metadata": { "annotations": { "somebody/woke": "it" } } }));
        engine.until("Argo CD's part is done", BOUND, |sight| {
            let application = sight.application("nodewright")?;
            (application.data["status"]["sync"]["status"] == "Synced").then_some(())
        });
        // The release is ready and recorded so; the removal is next, and would begin at once.
        engine.until("the step is recorded as ready", BOUND, |sight| {
            let written = aicr_decide::rollout::written(&*sight.unfinished()?);
            written.get("nodewright").filter(|entry| entry.ready).map(drop)
        });
        let touched = engine.audit.taken_since(mark, OPERATOR);
        let touched: Vec<_> = touched.iter().filter(|line| line.resource == "applications").collect();
        assert!(touched.is_empty(), "written to Argo CD without a project: {touched:?}");
    });
    assert_eq!(engine.run(&operator, &Which::B.plan(), BOUND), End::Settled);
}

/// B12: an Application CRD that does not know `automated.enabled` prunes it, and that is no suspension.
pub(crate) fn a_suspension_that_the_crd_prunes_is_said_to_be_refused(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    let old = OldCrd::install(engine);
    engine.change_runtime(&json!({ "spec": { "suspendEngine": true } }));
    engine.until("the suspension is refused", BOUND, |sight| {
        (sight.reason("Ready").as_deref() == Some("EngineSuspensionRefused")).then_some(())
    });
    let said = |reason: &str| engine.events().iter().filter(|event| event.reason.as_deref() == Some(reason)).count();
    assert_eq!(said("EngineSuspended"), 0, "a suspension that is none is told of");
    engine.poll("an Event for each Application", BOUND, || (said("EngineSuspensionRefused") == 6).then_some(()));
    drop(old);
    // What was refused is tried again after a minute; a new operator knows of no refusal.
    drop(operator);
    let operator = engine.operator(Wire::new(Crash::Never));
    engine.until("the engine is suspended", BOUND, |sight| {
        (sight.reason("Ready").as_deref() == Some("EngineSuspended")).then_some(())
    });
    let enabled = |application: &Value| application["spec"]["syncPolicy"]["automated"]["enabled"].clone();
    // Read anew: a watch that began under the old schema may go on pruning.
    engine.until_async("every Application to read so", || async {
        let all = engine.applications().list(&ListParams::default()).await.ok()?;
        let told = all.items.iter().filter(|one| enabled(&one.data) == false).count();
        (told == 6).then_some(())
    });
    drop(operator);
}

/// B55: what was deleted between the look and the write is created by none of the writes that follow.
pub(crate) fn a_write_to_an_application_that_is_gone_creates_none(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::late(Duration::from_secs(1)));
    let mark = engine.audit.mark();
    // The operator hears of the suspension and of the deletion at the same time at the earliest.
    engine.change_runtime(&json!({ "spec": { "suspendEngine": true } }));
    engine.delete_application("prometheus");
    engine.until("the engine is suspended", BOUND, |sight| {
        (sight.reason("Ready").as_deref() == Some("EngineSuspended")).then_some(())
    });
    assert!(engine.sight.application("prometheus").is_none());
    let touched = engine.audit.taken_since(mark, OPERATOR);
    assert!(touched.iter().all(|line| line.name != "prometheus"), "{touched:?}");
    drop(operator);
}

/// A36: an operation for other content is waited for and named, and terminated once half the action timeout has passed.
pub(crate) fn an_operation_for_other_content_is_named_and_ended_after_half_the_time(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    engine.change_runtime(&json!({ "spec": { "rollout": { "actionTimeout": "1m" } } }));
    engine.player.treat("network-operator", Manner::Busy);
    let mark = engine.audit.mark();
    engine.pin(Which::B.digest());
    let observed = engine.until("the operation in flight is named", BOUND, |sight| {
        let observed = sight.unfinished()?.status.clone()?.current?.observed?;
        observed.starts_with("OtherOperation").then_some(observed)
    });
    assert!(observed.contains("an operation for other content is in flight"), "{observed}");
    assert_eq!(engine.run(&operator, &Which::B.plan(), BOUND * 2), End::Settled);
    let lines = engine.audit.taken_since(mark, OPERATOR);
    let to: Vec<_> = lines.iter().filter(|line| line.name == "network-operator").collect();
    let applied = to.iter().find(|line| line.body["spec"]["source"].is_object()).unwrap().answered;
    let ended: Vec<_> =
        to.iter().filter(|line| line.body["status"]["operationState"]["phase"] == "Terminating").collect();
    let [ended] = ended.as_slice() else { panic!("not terminated once: {to:?}") };
    let waited = ended.received.duration_since(applied).as_secs();
    assert!((28..60).contains(&waited), "terminated after {waited} s of 60");
}

/// The Application CRD without `automated.enabled`, as before Argo CD 3.1; the present one is back when it goes.
struct OldCrd<'a> {
    engine: &'a Engine,
    versions: Value,
}

impl<'a> OldCrd<'a> {
    fn install(engine: &'a Engine) -> Self {
        let stored = engine.wait(crds(engine).get(CRD)).unwrap();
        let versions = serde_json::to_value(&stored).unwrap()["spec"]["versions"].clone();
        let mut old = versions.clone();
        let automated =
            "/0/schema/openAPIV3Schema/properties/spec/properties/syncPolicy/properties/automated/properties";
        old.pointer_mut(automated).unwrap().as_object_mut().unwrap().remove("enabled").unwrap();
        put(engine, &old, Field::Pruned);
        Self { engine, versions }
    }
}

impl Drop for OldCrd<'_> {
    fn drop(&mut self) {
        put(self.engine, &self.versions, Field::Kept);
    }
}

/// What becomes of `automated.enabled`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Kept,
    Pruned,
}

const CRD: &str = "applications.argoproj.io";

fn crds(engine: &Engine) -> Api<CustomResourceDefinition> {
    Api::all(engine.client.clone())
}

/// Changes the CRD, and waits until the API server goes by it, which a dry run tells.
fn put(engine: &Engine, versions: &Value, field: Field) {
    let patch = json!({ "spec": { "versions": versions } });
    engine.wait(crds(engine).patch(CRD, &PatchParams::default(), &Patch::Merge(&patch))).unwrap();
    let probe = json!({ "spec": { "syncPolicy": { "automated": { "enabled": false } } } });
    engine.until_async("the API server to have the schema", || async {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        let answer = engine.applications().patch("nfd", &params, &Patch::Merge(&probe)).await.ok()?;
        let kept = answer.data["spec"]["syncPolicy"]["automated"]["enabled"] == false;
        (kept == (field == Field::Kept)).then_some(())
    });
}
