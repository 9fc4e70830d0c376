//! Renders with overrides: one without them first, and what AICR's refusal of each means.

use aicr_crds::{ClusterRuntime, Digest, reason::Reason, runtime::Criteria};
use jiff::Timestamp;
use serde_json::json;

use super::{
    discovery::Groups,
    inputs::input_label,
    jobs::{Class, Failure, JobPhase, JobSeen},
    mirror::MirrorSeen,
    next::{Credentials, Seen, play::install, render},
    snapshot::{Reading, Record, Stored},
    verdict::{Stage, Verdict},
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn succeeded(stage: Stage, message: &str, output: Option<&str>) -> JobSeen {
    let (message, output) = (message.to_owned(), output.map(str::to_owned));
    seen(stage, JobPhase::Succeeded { message, output, refused: None, at: NOW })
}

fn refused(stage: Stage, text: &str) -> JobSeen {
    let failure = Failure { exit: Some(2), text: text.into(), class: Class::Never, reason: Reason::AICRInvalidRequest };
    seen(stage, JobPhase::Failed { failure, at: NOW })
}

fn seen(stage: Stage, phase: JobPhase) -> JobSeen {
    let input = input_label(Digest::of(b"inputs"));
    JobSeen { name: format!("aicr-{stage}"), stage, input, attempt: 1, run: "r".into(), phase }
}

/// What is next after these Jobs beside the recipe's.
fn next(overrides: &[&str], jobs: Vec<JobSeen>) -> Verdict {
    let set = |path: &&str| json!({"component": "gpu-operator", "path": path, "value": "1.10"});
    let spec = json!({
        "intent": "training",
        "placement": {"accelerated": {"nodeSelector": {"a": "b"}}},
        "overrides": overrides.iter().map(set).collect::<Vec<_>>(),
    });
    let runtime = ClusterRuntime::new("cluster", serde_json::from_value(spec).unwrap());
    let stored = Stored {
        name: "snapshot".into(),
        taken_at: NOW,
        record: Record::default(),
        reading: Ok(Reading::default()),
        text: "text".into(),
        resolved: [].into(),
    };
    let recipe = succeeded(Stage::Recipe, "", Some("recipe"));
    let seen = Seen {
        runtime: &runtime,
        install: &install(),
        groups: Groups::default(),
        snapshots: vec![],
        jobs: [vec![recipe], jobs].concat(),
        records: vec![],
        plans: vec![],
        gpu_operator: None,
        credentials: Credentials::Ready,
        mirror: MirrorSeen::None,
    };
    render(&seen, &stored, Digest::of(b"inputs"), Criteria::default(), NOW).unwrap_or_else(|verdict| *verdict)
}

fn run(verdict: Verdict) -> (Stage, Vec<String>) {
    let Verdict::Run(plan) = verdict else { panic!("no Job: {verdict:?}") };
    let sets = plan.args.iter().filter(|arg| arg.contains("gpu-operator:")).cloned().collect();
    (plan.stage, sets)
}

#[test]
fn without_overrides_there_is_one_render() {
    assert_eq!(run(next(&[], vec![])), (Stage::Render, vec![]));
    let bundle = Digest::of(b"bundle");
    let verdict = next(&[], vec![succeeded(Stage::Render, &format!("{bundle}\n"), None)]);
    let Verdict::Mirror(plan) = verdict else { panic!("{verdict:?}") };
    assert_eq!((plan.bundle, plan.base, plan.overrides.len()), (bundle, None, 0));
}

#[test]
fn with_overrides_the_render_without_them_comes_first_and_both_are_mirrored_from() {
    assert_eq!(run(next(&["a.b"], vec![])), (Stage::Base, vec![]));
    let (base, bundle) = (Digest::of(b"base"), Digest::of(b"bundle"));
    let first = succeeded(Stage::Base, &base.to_string(), None);
    assert_eq!(run(next(&["a.b"], vec![first.clone()])), (Stage::Render, vec!["gpu-operator:a.b=\"1.10\"".to_owned()]));
    let verdict = next(&["a.b"], vec![first, succeeded(Stage::Render, &bundle.to_string(), None)]);
    let Verdict::Mirror(plan) = verdict else { panic!("{verdict:?}") };
    assert_eq!((plan.bundle, plan.base, plan.overrides.len()), (bundle, Some(base), 1));
}

#[test]
fn what_aicr_refuses_only_with_the_overrides_is_theirs() {
    let base = succeeded(Stage::Base, &Digest::of(b"base").to_string(), None);
    let said = "path driver.enabled is owned by the profile";
    let Verdict::Stall(reason, message) = next(&["a.b"], vec![base, refused(Stage::Render, said)]) else { panic!() };
    assert_eq!(reason, Reason::InvalidOverride);
    assert!(message.contains(said), "{message}");
}

#[test]
fn what_aicr_refuses_without_overrides_is_the_placement_s_where_it_says_so() {
    let table = [
        ("invalid --system-node-toleration: no key", Reason::InvalidPlacement),
        ("invalid --accelerated-node-selector", Reason::InvalidPlacement),
        ("recipe file has kind Nope", Reason::AICRInvalidRequest),
    ];
    for (said, expected) in table {
        for (overrides, stage) in [([].as_slice(), Stage::Render), (["a.b"].as_slice(), Stage::Base)] {
            let Verdict::Stall(reason, message) = next(overrides, vec![refused(stage, said)]) else { panic!() };
            assert_eq!(reason, expected, "{said}");
            assert!(message.contains(said), "{message}");
        }
    }
}
