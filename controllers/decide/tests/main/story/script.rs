//! Scripts: one command a line; the transcript says what the operator did after each.

use aicr_crds::reason::Reason;
use aicr_crds::{Digest, keys::annotation, rollout::Verdict, runtime::SelectionPolicy};
use aicr_decide::seen::{Assessment, AssessmentRow, EngineState, ResolutionState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{
    Story, argo, plans,
    words::{argo_says, job, live, note},
};

/// Runs a script and returns its transcript.
pub(crate) fn run(script: &str) -> String {
    let (story, names) = played(script);
    names.iter().fold(story.log.join("\n"), |text, (name, digest)| {
        text.replace(&digest.to_string(), &format!("<{name}>")).replace(&digest.short(), &format!("<{name}>"))
    })
}

/// Plays a script; the cluster as it is then, and the plans by name.
pub(crate) fn played(script: &str) -> (Story, Names) {
    let (mut story, mut names) = (Story::new(), Names::new());
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            story.say(line);
            continue;
        }
        story.say(format!("> {line}"));
        let before = serde_json::to_value(&story.runtime.spec).unwrap();
        command(&mut story, &mut names, line);
        if serde_json::to_value(&story.runtime.spec).unwrap() != before {
            *story.runtime.metadata.generation.get_or_insert_default() += 1;
            story.runtime.metadata.resource_version = Some(story.tick());
        }
    }
    (story, names)
}

/// Digests of plans by the names that scripts give them.
pub(crate) type Names = std::collections::BTreeMap<String, Digest>;

fn command(story: &mut Story, names: &mut Names, line: &str) {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let known = inputs(story, names, verb, rest)
        || people(story, names, verb, rest)
        || objects(story, names, verb, rest)
        || trouble(story, names, verb, rest);
    assert!(known, "no such command: {line}");
}

/// Plans, assessments, resolution, time.
fn inputs(story: &mut Story, names: &mut Names, verb: &str, rest: &str) -> bool {
    match verb {
        "plan" => plan(story, names, rest),
        "given" => given(story, names, rest),
        "assessment" => assessment(story, names, rest),
        "candidate" => {
            story.resolution.candidate = Some(names[rest]);
            story.resolution.state = ResolutionState::Resolved;
        }
        "resolving" => {
            let plan_stands = rest.starts_with("again ");
            let message = rest.trim_start_matches("again ").to_owned();
            story.resolution.state = ResolutionState::Resolving { message, plan_stands };
        }
        "stalled" => {
            let (reason, message) = rest.split_once(": ").unwrap_or(("NodeGroupEmpty", "no node matches"));
            let reason: Reason = serde_json::from_value(json!(reason)).unwrap();
            story.resolution.state = ResolutionState::Stalled { reason, message: message.into() };
        }
        "operator" => story.operator(),
        "rounds" => story.rounds(rest.parse().unwrap()),
        "settle" => settle(story, rest),
        "later" => story.later(aicr_crds::duration::parse(rest).unwrap()),
        "show" => show(story),
        _ => return false,
    }
    true
}

/// What people set on the runtime and do to rollouts.
fn people(story: &mut Story, names: &mut Names, verb: &str, rest: &str) -> bool {
    let spec = &mut story.runtime.spec;
    match verb {
        "pin" => {
            let selection = &mut spec.selection;
            (selection.policy, selection.pinned_plan_digest) = (SelectionPolicy::Pinned, names[rest].to_string());
        }
        "automatic" => spec.selection = aicr_crds::runtime::Selection::default(),
        "paused" => spec.paused = rest == "true",
        "suspendEngine" => spec.suspend_engine = rest == "true",
        "validation" => spec.validation.deployment = serde_json::from_value(json!(rest)).unwrap(),
        "deletionPolicy" => spec.deletion_policy = serde_json::from_value(json!(rest)).unwrap(),
        "actionTimeout" => spec.rollout.action_timeout = rest.into(),
        "deadline" => spec.rollout.deadline = rest.into(),
        "adoption" => spec.adoption = Some(aicr_crds::runtime::Adoption { runtime_uid: rest.into() }),
        "approve" => story.approve((!rest.is_empty()).then(|| aicr_crds::duration::parse(rest).unwrap())),
        "revoke" => story.revoke(),
        "acknowledge" => story.acknowledge(rest),
        "retry" => annotated(story, annotation::RETRY, rest),
        "authors" => annotated(story, annotation::SPEC_CHANGED_BY, rest),
        "tamper" => story.unfinished().spec.approval.as_mut().unwrap().binding_digest = Digest::of(b"another rollout"),
        "deleted" => story.runtime.metadata.deletion_timestamp = Some(Time(story.now)),
        "reborn" => reborn(story, rest),
        _ => return false,
    }
    true
}

fn annotated(story: &mut Story, key: &str, value: &str) {
    story.runtime.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
}

fn reborn(story: &mut Story, rest: &str) {
    let uid = if rest.is_empty() { "uid-reborn" } else { rest };
    story.runtime.metadata.uid = Some(uid.into());
    story.runtime.metadata.deletion_timestamp = None;
    story.runtime.metadata.finalizers = Some(vec![aicr_crds::keys::finalizer::CLEANUP.into()]);
    story.runtime.status = None;
    for (_, stored) in story.plans.values_mut() {
        stored.context.runtime_uid = uid.into();
    }
}

/// What becomes of Applications, Jobs and live objects.
fn objects(story: &mut Story, names: &mut Names, verb: &str, rest: &str) -> bool {
    match verb {
        "argo" => argo_says(story, rest),
        "live" => live(story, rest),
        "job" => job(story, rest),
        "note" => note(story, rest),
        "edit" => {
            story.applications.get_mut(rest).unwrap()["spec"]["source"]["helm"]["values"] = json!("edited: true\n");
            story.touched(rest);
        }
        "switched" => {
            let name = rest.trim_start_matches("off ");
            story.applications.get_mut(name).unwrap()["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false);
            story.touched(name);
        }
        "policy" => {
            story.applications.get_mut(rest).unwrap()["spec"]["syncPolicy"]["syncOptions"] = json!(["Replace=true"]);
            story.touched(rest);
        }
        "manager" => {
            let (name, manager) = rest.split_once(' ').unwrap();
            story.applications.get_mut(name).unwrap()["metadata"]["managedFields"] = json!([
                {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}
            ]);
            story.touched(name);
        }
        "undo" => undo(story, names, rest),
        "delete" => {
            story.applications.remove(rest);
        }
        "create" => {
            let foreign = json!({"metadata": {"name": rest, "uid": "uid-foreign", "resourceVersion": "1"}, "spec": {"project": "default"}});
            story.applications.insert(rest.into(), foreign);
        }
        "terminating" => {
            let now = story.now.to_string();
            story.applications.get_mut(rest).unwrap()["metadata"]["deletionTimestamp"] = json!(now);
            story.touched(rest);
        }
        _ => return false,
    }
    true
}

/// What goes wrong around it.
fn trouble(story: &mut Story, names: &mut Names, verb: &str, rest: &str) -> bool {
    match verb {
        "lose" => match rest {
            "status" => story.lose_status(),
            "plans" => story.plans.clear(),
            "rollouts" => story.rollouts.retain(|rollout| aicr_decide::seen::outcome(rollout).is_none()),
            _ => panic!("nobody loses {rest}"),
        },
        "engine" | "project" => {
            story.engine = match (verb, rest) {
                ("project", "missing") => EngineState::ProjectMissing,
                (_, "missing") => EngineState::Missing,
                (_, "unauthorized") => EngineState::Unauthorized,
                (_, "stale") => EngineState::CredentialsStale,
                _ => EngineState::Available,
            };
        }
        "installed" => story.validation_installed = rest == "true",
        "lacks" => story.facts.validation.lacks = (rest != "nothing").then(|| rest.to_owned()),
        "trouble" => story.facts.trouble = (rest != "none").then(|| rest.to_owned()),
        "refuse" => {
            story.refusing.insert(rest.into());
        }
        "allow" => {
            story.refusing.remove(rest);
        }
        "unreadable" => {
            let (name, why) = rest.split_once(": ").unwrap();
            story.unreadable = vec![(aicr_crds::plan::Plan::config_map_name(names[name]), why.to_owned())];
        }
        "readable" => story.unreadable.clear(),
        "missing" => {
            story.plans.remove(&names[rest]);
        }
        "foreign-plan" => story.plans.get_mut(&names[rest]).unwrap().1.context.runtime_uid = "uid-earlier".into(),
        "finalizers" => story.runtime.metadata.finalizers = None,
        "duplicate" => duplicate(story),
        "schema" => story.unfinished().spec.schema_version = rest.into(),
        _ => return false,
    }
    true
}

/// A second unfinished rollout, as a second leader would have made it.
fn duplicate(story: &mut Story) {
    let mut second = story.unfinished().clone();
    second.metadata.name = Some(format!("{}-second", second.metadata.name.unwrap()));
    second.metadata.uid = Some("uid-second".into());
    second.spec.attempt += 1;
    story.rollouts.push(second);
}

fn plan(story: &mut Story, names: &mut Names, rest: &str) {
    let (name, releases) = rest.split_once(": ").expect("plan NAME: RELEASES");
    let mut stored = plans::plan(releases, name, story.now);
    stored.context.runtime_uid = story.runtime.metadata.uid.clone().unwrap();
    names.insert(name.into(), stored.plan.digest());
    story.plans.insert(stored.plan.digest(), (story.now, stored));
}

/// `given one: nfd=1 gpu-operator=1`: that plan is rolled out already, and every release ready; its transcript is left out.
fn given(story: &mut Story, names: &mut Names, rest: &str) {
    let said = story.log.len();
    let (name, _) = rest.split_once(": ").expect("given NAME: RELEASES");
    plan(story, names, rest);
    story.resolution.candidate = Some(names[name]);
    story.resolution.state = ResolutionState::Resolved;
    story.later(jiff::SignedDuration::from_mins(10));
    story.operator();
    story.approve(None);
    story.operator();
    settle(story, "");
    story.log.truncate(said);
    let releases = story.applications.len();
    story.say(format!("  plan {name} is rolled out, and its {releases} releases are ready"));
}

/// `assessment A B: gpu-operator safe; nvsentinel manual check,apply,verify`.
fn assessment(story: &mut Story, names: &Names, rest: &str) {
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
    story
        .assessments
        .insert(key, Assessment { config_map: "aicr-assessment".into(), digest: Digest::of(b"report"), rows });
}

/// Argo CD settles one release, or all; the operator acts after each, until nothing is in flight.
fn settle(story: &mut Story, rest: &str) {
    let all: Vec<String> = story.applications.keys().cloned().collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut todo: Vec<String> = if rest.is_empty() { all } else { vec![rest.into()] };
    while let Some(name) = todo.pop() {
        seen.insert(name.clone());
        if story.applications[&name]["metadata"]["deletionTimestamp"].is_string() {
            story.applications.remove(&name);
        } else {
            let now = story.now;
            argo::settles(story.applications.get_mut(&name).unwrap(), now);
            story.touched(&name);
        }
        if todo.is_empty() {
            story.operator();
            let asked =
                |application: &Value| application["metadata"]["annotations"][annotation::ARGO_REFRESH].is_string();
            let open = |(name, application): &(&String, &Value)| {
                rest.is_empty() && (!seen.contains(*name) || asked(application))
            };
            todo = story.applications.iter().filter(open).map(|(name, _)| name.clone()).collect();
        }
    }
}

fn undo(story: &mut Story, names: &Names, rest: &str) {
    let (name, plan) = rest.split_once(' ').expect("undo RELEASE PLAN");
    let values = story.plans[&names[plan]].1.plan.release(name).unwrap().content.values.clone();
    story.applications.get_mut(name).unwrap()["spec"]["source"]["helm"]["values"] = json!(values);
    story.touched(name);
}

/// Everything that status says of the newest rollout.
fn show(story: &mut Story) {
    let Some(status) = story.rollouts.last().and_then(|rollout| rollout.status.clone()) else { return };
    let phase = status.phase.map_or("Pending".to_owned(), |phase| phase.to_string());
    let approval = status.approval.map(|approval| approval.to_string()).unwrap_or_default();
    let mut lines = vec![format!("  status: {phase}, approval {approval}: {}", status.message.unwrap_or_default())];
    if let Some(current) = status.current {
        let from = current.timeout_from.0;
        lines.push(format!("  current: {} ({}), timeoutFrom {from}", current.release, current.operation));
    }
    for release in status.releases {
        lines.push(format!("  {}: {} {}", release.release, release.state, release.message.unwrap_or_default()));
    }
    if let Some(validation) = status.validation {
        lines.push(format!(
            "  validation: run {}, evidence {}",
            validation.run,
            validation.evidence.unwrap_or_default()
        ));
    }
    for line in lines {
        story.say(line.trim_end());
    }
}
