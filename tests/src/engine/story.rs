//! What every story here ends with: the rollout came to its end, and nothing was done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aicr_crds::keys::{annotation, label};
use aicr_crds::plan::Plan;
use aicr_crds::reason::{EventReason, Outcome};
use aicr_crds::rollout::Phase;
use aicr_crds::{Digest, RuntimeRollout};
use aicr_decide::seen::outcome;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use super::audit::{Line, Mark};
use super::{Engine, OPERATOR, Operator, Sight};

/// How many ended rollouts the operator keeps.
const KEPT: usize = 20;
/// How old an end must be before another than who wrote it tells of it, and some.
const MINUTES_OLD: SignedDuration = SignedDuration::from_mins(3);

/// How an operator's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All is said and done.
    Settled,
    /// It died on its way.
    Dead,
}

/// What was there before a rollout.
#[derive(Clone, Debug)]
pub struct Before {
    mark: Mark,
    rollouts: BTreeSet<String>,
}

impl Engine {
    /// What is there before a rollout.
    pub fn before(&self) -> Before {
        let rollouts = self.rollouts().iter().filter_map(ResourceExt::uid).collect();
        Before { mark: self.audit.mark(), rollouts }
    }

    /// Runs an operator until it has nothing more to do for this plan, or is dead.
    pub fn run(&self, operator: &Operator, target: &Plan, bound: Duration) -> End {
        let mut death = operator.wire.death();
        let what = format!("a rollout to {}", target.digest());
        let end = self.tokio.block_on(async {
            tokio::select! {
                () = self.sight.until(&what, bound, |sight| is_settled(sight, target).then_some(())) => End::Settled,
                _ = death.wait_for(|dead| *dead) => End::Dead,
            }
        });
        assert!(operator.is_alive(), "the drive loop has ended");
        end
    }

    /// Waits until an operator that runs elsewhere has nothing more to do for this plan.
    pub fn settle(&self, target: &Plan, bound: Duration) {
        let what = format!("a rollout to {}", target.digest());
        self.until(&what, bound, |sight| is_settled(sight, target).then_some(()));
    }

    /// Makes ends that nobody has told of old enough to be told of, as two minutes would.
    pub fn age_untold_ends(&self) {
        let api: Api<RuntimeRollout> = Api::all(self.client.clone());
        for rollout in self.rollouts().iter().filter(|rollout| is_untold(rollout)) {
            let finished = (Timestamp::now() - MINUTES_OLD).to_string();
            let patch = json!({ "metadata": { "annotations": { annotation::FINISHED_AT: finished } } });
            let done = self.wait(api.patch(&rollout.name_any(), &PatchParams::default(), &Patch::Merge(&patch)));
            done.unwrap_or_else(|error| panic!("{}: {error}", rollout.name_any()));
        }
    }

    /// The rollouts as the API server has them now.
    pub fn rollouts(&self) -> Vec<RuntimeRollout> {
        let api: Api<RuntimeRollout> = Api::all(self.client.clone());
        let all = self.wait(api.list(&ListParams::default()));
        all.unwrap_or_else(|error| panic!("list rollouts: {error}")).items
    }

    /// What was not as it should be since then, where exactly one rollout to this plan was due; empty where all was well.
    pub fn complaints(&self, before: &Before, target: Digest) -> Vec<String> {
        let all = self.rollouts();
        let new: Vec<&RuntimeRollout> =
            all.iter().filter(|one| !before.rollouts.contains(&one.uid().unwrap_or_default())).collect();
        let [rollout] = new.as_slice() else {
            let names: Vec<String> = new.iter().map(|rollout| rollout.name_any()).collect();
            return vec![format!("not one new rollout but {names:?}")];
        };
        let mut complaints = Vec::new();
        let end = outcome(rollout);
        if end != Some(Outcome::Succeeded) || rollout.spec.target_plan_digest != Some(target) {
            complaints.push(format!("{} ended {end:?}", rollout.name_any()));
        }
        complaints.extend(twice(&self.audit.taken_since(before.mark, OPERATOR)));
        complaints.extend(told(&self.events(), rollout));
        complaints
    }
}

/// It has ended, and its status does not say so.
fn is_untold(rollout: &RuntimeRollout) -> bool {
    let phase = rollout.status.as_ref().and_then(|status| status.phase);
    outcome(rollout).is_some_and(|outcome| phase != Some(Phase::from(outcome)))
}

/// Whether a rollout to this plan has succeeded, everything says so, and nothing is left to be tidied up.
fn is_settled(sight: &Sight, target: &Plan) -> bool {
    let digest = target.digest();
    let uid = sight.runtime().and_then(|runtime| runtime.uid()).unwrap_or_default();
    let mut rollouts = sight.rollouts();
    rollouts.retain(|rollout| rollout.spec.runtime.uid == uid);
    let Some(newest) = rollouts.last() else { return false };
    let succeeded = newest.spec.target_plan_digest == Some(digest)
        && newest.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Succeeded));
    let told = rollouts.iter().all(|rollout| outcome(rollout).is_some() && !is_untold(rollout));
    succeeded && told && rollouts.len() <= KEPT && is_said(sight, digest) && is_there(sight, target)
}

/// Whether the runtime says that it is at this plan.
fn is_said(sight: &Sight, digest: Digest) -> bool {
    let status = sight.runtime().and_then(|runtime| runtime.status.clone()).unwrap_or_default();
    let ready = status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && status.active_plan_digest == Some(digest)
}

/// Whether the Applications are the plan's; those of others are not looked at.
fn is_there(sight: &Sight, target: &Plan) -> bool {
    let mut applications = sight.applications();
    applications.retain(|application| application.labels().contains_key(label::MANAGED_BY));
    let digest = target.digest().to_string();
    let at_plan = |name: &str| {
        let found = applications.iter().find(|application| application.name_any() == name);
        found.is_some_and(|application| application.annotations().get(annotation::PLAN_DIGEST) == Some(&digest))
    };
    target.releases().all(|release| at_plan(&release.content.id)) && applications.len() == target.releases().count()
}

/// What was done more than once of what may be done once.
fn twice(lines: &[Line]) -> Vec<String> {
    let mut deeds: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        if let Some(deed) = deed(line) {
            *deeds.entry(deed).or_default() += 1;
        }
    }
    deeds.into_iter().filter(|(_, times)| *times > 1).map(|(deed, times)| format!("{deed}: {times} times")).collect()
}

/// A write of which there must be one, in words that are the same for the same deed; `None` for those that may repeat.
fn deed(line: &Line) -> Option<String> {
    let Line { verb, resource, name, subresource, body, .. } = line;
    if !subresource.is_empty() {
        return None;
    }
    let metadata = &body["metadata"];
    let noted = |key: &str| metadata["annotations"][key].as_str().map(str::to_owned);
    match resource.as_str() {
        "applications" if verb == "delete" => Some(format!("delete Application {name}")),
        "applications" if body["spec"]["source"].is_object() => {
            Some(format!("write Application {name} for {:?}", noted(annotation::ROLLOUT)))
        }
        "applications" if body["operation"].is_object() => {
            Some(format!("sync Application {name}: {}", body["operation"]["info"]))
        }
        "applications" => noted(annotation::DELETE_ROLLOUT).map(|by| format!("prepare {name} for {by}")),
        "runtimerollouts" if verb == "create" => Some(format!("create {}", metadata["name"])),
        "runtimerollouts" if verb == "delete" => Some(format!("delete {name}")),
        "runtimerollouts" if metadata["labels"][label::OUTCOME].is_string() => Some(format!("end {name}")),
        "runtimerollouts" => noted(annotation::WRITTEN).map(|entries| format!("record on {name}: {entries}")),
        _ => None,
    }
}

/// What is wrong with what was told: a rollout's beginning and end once each, and nothing twice.
fn told(events: &[Event], rollout: &RuntimeRollout) -> Vec<String> {
    let reason = |event: &Event| event.reason.clone().unwrap_or_default();
    let note = |event: &Event| event.note.clone().unwrap_or_default();
    let about = |event: &Event| event.regarding.clone().unwrap_or_default().uid;
    let count = |wanted: EventReason, is: &dyn Fn(&Event) -> bool| {
        events.iter().filter(|event| reason(event) == wanted.to_string() && is(event)).count()
    };
    let name = rollout.name_any();
    let mut complaints = Vec::new();
    let created = count(EventReason::RolloutCreated, &|event| note(event).contains(&name));
    let ended = count(EventReason::RolloutSucceeded, &|event| about(event) == rollout.uid());
    for (what, times) in [("creation", created), ("end", ended)] {
        if times != 1 {
            complaints.push(format!("{times} Events of the {what} of {name}"));
        }
    }
    let mut seen = BTreeSet::new();
    let again = events.iter().filter(|event| !seen.insert((about(event), reason(event), note(event))));
    complaints.extend(again.map(|event| format!("two Events {}: {}", reason(event), note(event))));
    complaints
}
