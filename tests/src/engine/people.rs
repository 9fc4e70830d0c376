//! An approver, who approves whatever waits for approval at once, or is away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aicr_crds::RuntimeRollout;
use aicr_crds::keys::label;
use aicr_crds::rollout::{Approval, Person};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::sync::watch;

use super::Sight;

/// For how long an approval holds: longer than any replica's clock is off.
const HOLDS: Duration = Duration::from_mins(30);

/// Where the approver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approver {
    /// At the keyboard.
    There,
    /// Not.
    Away,
}

/// Approves, for as long as it is polled.
pub(super) async fn approve(client: Client, sight: Sight, mut place: watch::Receiver<Approver>) {
    let api: Api<RuntimeRollout> = Api::all(client);
    let (mut news, mut given) = (sight.changes(), BTreeSet::new());
    loop {
        news.mark_unchanged();
        if *place.borrow_and_update() == Approver::There {
            for rollout in sight.rollouts().into_iter().filter(|rollout| waits(rollout)) {
                if given.insert(rollout.uid().unwrap_or_default()) {
                    give(&api, &rollout).await;
                }
            }
        }
        tokio::select! {
            told = news.changed() => if told.is_err() { return },
            told = place.changed() => if told.is_err() { return },
        }
    }
}

fn waits(rollout: &RuntimeRollout) -> bool {
    let ended = rollout.labels().contains_key(label::OUTCOME);
    !ended && rollout.spec.needs_approval() && rollout.spec.approval.is_none()
}

async fn give(api: &Api<RuntimeRollout>, rollout: &RuntimeRollout) {
    let name = rollout.name_any();
    let patch = json!({ "spec": { "approval": approval(rollout, Timestamp::now()) } });
    match api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => {}
        // What was cleared away meanwhile needs none.
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => eprintln!("approve {name}: {error}"),
    }
}

/// Where the approver is told to be.
pub(super) fn approver() -> (Arc<watch::Sender<Approver>>, watch::Receiver<Approver>) {
    let (sender, receiver) = watch::channel(Approver::There);
    (Arc::new(sender), receiver)
}

/// An approval of what the rollout says.
fn approval(rollout: &RuntimeRollout, now: Timestamp) -> Approval {
    let binding_digest = rollout.spec.binding_digest().unwrap_or_else(|error| panic!("a binding digest: {error}"));
    let groups = vec!["approvers".to_owned()];
    Approval {
        reason: "played".to_owned(),
        expires_at: Time((now + HOLDS).min(rollout.spec.deadline.0)),
        binding_digest,
        approved_by: Person { username: "bob".to_owned(), groups },
        approved_at: Time(now),
    }
}
