//! Scripts: one command a line; the transcript says what the operator did after each.

use aicr_crds::reason::Reason;
use aicr_crds::{Digest, keys::annotation, rollout::Verdict, runtime::SelectionPolicy};
use aicr_decide::seen::{Assessment, AssessmentRow, EngineState, ResolutionState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{Sim, argo, plans};

/// Runs a script and returns its transcript.
pub(crate) fn run(script: &str) -> String {
    let mut sim = Sim::new();
    let mut names = std::collections::BTreeMap::new();
    for line in script.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('#') {
            sim.say(line);
            continue;
        }
        sim.say(format!("> {line}"));
        command(&mut sim, &mut names, line);
    }
    let digests: Vec<(String, Digest)> = names.into_iter().collect();
    digests.iter().fold(sim.log.join("\n"), |text, (name, digest)| {
        text.replace(&digest.to_string(), &format!("<{name}>")).replace(&digest.short(), &format!("<{name}>"))
    })
}

fn command(sim: &mut Sim, names: &mut std::collections::BTreeMap<String, Digest>, line: &str) {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "plan" => plan(sim, names, rest),
        "assessment" => assessment(sim, names, rest),
        "candidate" => sim.candidate(names[rest]),
        "pin" => {
            let selection = &mut sim.runtime.spec.selection;
            (selection.policy, selection.pinned_plan_digest) = (SelectionPolicy::Pinned, names[rest].to_string());
        }
        "operator" => sim.operator(),
        "settle" => settle(sim, rest),
        "argo" => argo_says(sim, rest),
        "later" => sim.later(aicr_crds::duration::parse(rest).unwrap()),
        "approve" => sim.approve((!rest.is_empty()).then(|| aicr_crds::duration::parse(rest).unwrap())),
        "revoke" => sim.revoke(),
        "acknowledge" => sim.acknowledge(rest),
        "retry" => {
            sim.runtime.metadata.annotations.get_or_insert_default().insert(annotation::RETRY.into(), rest.into());
        }
        "lose" => sim.lose_status(),
        "paused" => sim.runtime.spec.paused = rest == "true",
        "suspendEngine" => sim.runtime.spec.suspend_engine = rest == "true",
        "validation" => sim.runtime.spec.validation.deployment = serde_json::from_value(json!(rest)).unwrap(),
        "deletionPolicy" => sim.runtime.spec.deletion_policy = serde_json::from_value(json!(rest)).unwrap(),
        "deleted" => sim.runtime.metadata.deletion_timestamp = Some(Time(sim.now)),
        "terminating" => {
            let now = sim.now.to_string();
            sim.applications.get_mut(rest).unwrap()["metadata"]["deletionTimestamp"] = json!(now);
            sim.touched(rest);
        }
        "reborn" => {
            sim.runtime.metadata.uid = Some("uid-reborn".into());
            sim.runtime.status = None;
            sim.rollouts.clear();
            for (_, stored) in sim.plans.values_mut() {
                stored.context.runtime_uid = "uid-reborn".into();
            }
        }
        "authors" => {
            sim.runtime
                .metadata
                .annotations
                .get_or_insert_default()
                .insert(annotation::SPEC_CHANGED_BY.into(), rest.into());
        }
        "tamper" => sim.unfinished().spec.approval.as_mut().unwrap().binding_digest = Digest::of(b"another rollout"),
        "schema" => sim.unfinished().spec.schema_version = rest.into(),
        "stalled" => {
            sim.resolution.state =
                ResolutionState::Stalled { reason: Reason::NodeGroupEmpty, message: "no node matches".into() };
        }
        "actionTimeout" => sim.runtime.spec.rollout.action_timeout = rest.into(),
        "project" => sim.engine = if rest == "missing" { EngineState::ProjectMissing } else { EngineState::Available },
        "edit" => {
            sim.applications.get_mut(rest).unwrap()["spec"]["source"]["helm"]["values"] = json!("edited: true\n");
            sim.touched(rest);
        }
        "undo" => undo(sim, names, rest),
        "delete" => {
            sim.applications.remove(rest);
        }
        "create" => {
            let foreign = json!({"metadata": {"name": rest, "uid": "uid-foreign", "resourceVersion": "1"}, "spec": {"project": "default"}});
            sim.applications.insert(rest.into(), foreign);
        }
        _ => panic!("no such command: {line}"),
    }
}

fn plan(sim: &mut Sim, names: &mut std::collections::BTreeMap<String, Digest>, rest: &str) {
    let (name, releases) = rest.split_once(": ").expect("plan NAME: RELEASES");
    let stored = plans::plan(releases, name, sim.now);
    names.insert(name.into(), stored.plan.digest());
    sim.plans.insert(stored.plan.digest(), (sim.now, stored));
}

/// `assessment A B: gpu-operator safe; nvsentinel manual check,apply,verify`.
fn assessment(sim: &mut Sim, names: &std::collections::BTreeMap<String, Digest>, rest: &str) {
    let (pair, rows) = rest.split_once(": ").expect("assessment FROM TO: ROWS");
    let (from, to) = pair.split_once(' ').unwrap();
    assert!(names.contains_key(from) && names.contains_key(to));
    // The plans' recipes are their names.
    let key = Digest::of(format!("{}{}", Digest::of(from.as_bytes()), Digest::of(to.as_bytes())).as_bytes()).prefix(32);
    let row = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let verdict: Verdict = serde_json::from_value(json!(words[1])).unwrap();
        let steps = words.get(2).map(|steps| steps.split(',').map(str::to_owned).collect()).unwrap_or_default();
        (words[0].to_owned(), AssessmentRow { verdict: Some(verdict), explanation: "a migration".into(), steps })
    };
    let rows = rows.split("; ").map(row).collect();
    sim.assessments
        .insert(key, Assessment { config_map: "aicr-assessment".into(), digest: Digest::of(b"report"), rows });
}

/// Argo CD settles one release, or all; the operator acts after each, until nothing is in flight.
fn settle(sim: &mut Sim, rest: &str) {
    let all: Vec<String> = sim.applications.keys().cloned().collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut todo: Vec<String> = if rest.is_empty() { all } else { vec![rest.into()] };
    while let Some(name) = todo.pop() {
        seen.insert(name.clone());
        if sim.applications[&name]["metadata"]["deletionTimestamp"].is_string() {
            sim.applications.remove(&name);
        } else {
            let now = sim.now;
            argo::settles(sim.applications.get_mut(&name).unwrap(), now);
            sim.touched(&name);
        }
        if todo.is_empty() {
            sim.operator();
            let fresh = |name: &String| !seen.contains(name) && rest.is_empty();
            todo = sim.applications.keys().filter(|name| fresh(name)).cloned().collect();
        }
    }
}

/// `argo gpu-operator health Progressing`, `argo gpu-operator fails MESSAGE`.
fn argo_says(sim: &mut Sim, rest: &str) {
    let mut words = rest.splitn(3, ' ');
    let (name, what, more) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
    let now = sim.now;
    let application = sim.applications.get_mut(name).unwrap();
    match what {
        "settles" => argo::settles(application, now),
        "health" => {
            argo::settles(application, now);
            argo::health(application, more);
        }
        "fails" => argo::fails(application, now, more),
        "deleted" => {
            sim.applications.remove(name);
            return;
        }
        // Its stale list of finalizers, written over the one that the operator had marked.
        "erases" => {
            let rollout = sim.unfinished().metadata.name.clone();
            let metadata = &mut sim.applications.get_mut(name).unwrap()["metadata"];
            metadata["annotations"][annotation::DELETE_ROLLOUT] = json!(rollout);
            metadata["finalizers"] = json!(["post-delete-finalizer.argocd.argoproj.io"]);
        }
        _ => panic!("Argo CD does not {what}"),
    }
    sim.touched(name);
}

fn undo(sim: &mut Sim, names: &std::collections::BTreeMap<String, Digest>, rest: &str) {
    let (name, plan) = rest.split_once(' ').expect("undo RELEASE PLAN");
    let values = sim.plans[&names[plan]].1.plan.release(name).unwrap().content.values.clone();
    sim.applications.get_mut(name).unwrap()["spec"]["source"]["helm"]["values"] = json!(values);
    sim.touched(name);
}
