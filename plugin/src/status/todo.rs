//! What a person has to do next, with the exact command, the most urgent first.

use aicr_crds::{
    RuntimeRollout,
    reason::{ConditionType, Reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    advice::Advice,
    seen::{Runtime, Seen},
};
use crate::view;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Todo {
    /// Why.
    pub(super) why: String,
    /// By which commands, in order; none where it depends on the message.
    pub(super) commands: Vec<String>,
}

impl Todo {
    /// As `status -o json` has it.
    pub(super) fn document(&self) -> Value {
        json!({ "why": self.why, "commands": self.commands })
    }
}

/// Everything that waits for a person.
pub(super) fn all(seen: &Seen, namespace: &str, now: Timestamp) -> Vec<Todo> {
    let Some(runtime) = &seen.runtime else {
        let why = "write a ClusterRuntime named cluster, and apply it".to_owned();
        return vec![Todo { why, commands: vec!["kubectl apply -f clusterruntime.yaml".to_owned()] }];
    };
    let mut all: Vec<_> = stalled(runtime, namespace).into_iter().collect();
    all.extend(holds(seen, runtime));
    all.extend(seen.unfinished().flat_map(|rollout| decisions(rollout, now)));
    // A rollout that this plugin cannot read, or whose approval binds something else, has no line of its own.
    if let (true, Some(condition)) = (all.is_empty(), stall(runtime)) {
        all.push(Todo {
            why: format!("Stalled with {}: do as its message says", condition.reason),
            commands: Vec::new(),
        });
    }
    all
}

fn stall(runtime: &Runtime) -> Option<&Condition> {
    runtime.condition(ConditionType::Stalled.as_str()).filter(|condition| condition.status == "True")
}

/// What the Stalled condition asks for; what its rollout asks for in more detail is left to it.
fn stalled(runtime: &Runtime, namespace: &str) -> Option<Todo> {
    let word = stall(runtime)?.reason.as_str();
    let Some(reason) = Reason::ALL.iter().find(|reason| reason.as_str() == word) else {
        let why = format!("Stalled with {word}, a reason that this plugin does not know: do as its message says");
        return Some(Todo { why, commands: Vec::new() });
    };
    let advice = Advice::of(*reason)?;
    Some(Todo { why: format!("Stalled with {word}: {}", advice.text()), commands: advice.commands(namespace) })
}

/// The switches of the spec that hold something which would go on.
fn holds(seen: &Seen, runtime: &Runtime) -> Vec<Todo> {
    let ready = runtime.condition(ConditionType::Ready.as_str()).map(|condition| condition.reason.as_str());
    let waits = seen.unfinished().next().is_some() || ready == Some(Reason::Paused.as_str());
    let switches = [
        (runtime.spec.suspend_engine, "suspendEngine", "Argo CD's automated sync is off; when the incident is over"),
        (runtime.spec.paused && waits, "paused", "a rollout is held; when the freeze is over"),
    ];
    let held = switches.into_iter().filter(|(on, ..)| *on);
    held.map(|(_, field, why)| Todo {
        why: format!("spec.{field} is true: {why}"),
        commands: vec![format!(
            "kubectl patch clusterruntime cluster --type merge -p '{{\"spec\":{{\"{field}\":false}}}}'"
        )],
    })
    .collect()
}

/// What a rollout waits for people to decide.
fn decisions(rollout: &RuntimeRollout, now: Timestamp) -> Vec<Todo> {
    let name = rollout.name_any();
    if rollout.spec.deadline.0 <= now || rollout.spec.revocation.is_some() {
        return Vec::new();
    }
    let mut all = Vec::new();
    if view::is_unapproved(rollout) {
        all.push(Todo {
            why: format!("rollout {name} needs an approver"),
            commands: vec![
                format!("kubectl aicr describe {name}"),
                format!("kubectl aicr approve {name} --reason \"...\""),
            ],
        });
    }
    all.extend(view::owed(rollout).into_iter().map(|step| Todo {
        why: format!("release {} is applied: do its recorded steps, then acknowledge them", step.release),
        commands: vec![
            format!("kubectl aicr describe {name}"),
            format!("kubectl aicr acknowledge {name} {} --reason \"...\"", step.release),
        ],
    }));
    all
}
