//! Status: compared first, then written through its subresource as the difference, at the version that was decided on.

use std::fmt::Debug;

use aicr_crds::{ClusterRuntime, ClusterRuntimeStatus, RuntimeRollout, RuntimeRolloutStatus};
use aicr_decide::rollout::ObjectRef;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{Writer, Written, body, bounded};
use crate::error::DriveError;

impl Writer {
    /// Writes the runtime's status, where it differs.
    pub(crate) async fn runtime_status(
        &self,
        runtime: &ClusterRuntime,
        status: &ClusterRuntimeStatus,
    ) -> Result<Written<()>, DriveError> {
        let on = object_ref(&runtime.metadata);
        let act = format!("patch the status of ClusterRuntime {}", on.name);
        write(&self.runtimes(), &on, act, runtime.status.as_ref(), status).await.map(Written::forget)
    }

    /// Writes a rollout's status, where it differs; `on` is the rollout as it is now, after what was written before, and
    /// the answer as it is then.
    pub(crate) async fn rollout_status(
        &self,
        rollout: &RuntimeRollout,
        on: &ObjectRef,
        status: &RuntimeRolloutStatus,
    ) -> Result<Written<ObjectRef>, DriveError> {
        let act = format!("patch the status of RuntimeRollout {}", on.name);
        write(&self.rollouts(), on, act, rollout.status.as_ref(), status).await
    }
}

/// Name, UID and version of an object.
pub(super) fn object_ref(metadata: &kube::core::ObjectMeta) -> ObjectRef {
    ObjectRef {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

async fn write<K, S>(
    api: &Api<K>,
    on: &ObjectRef,
    act: String,
    stored: Option<&S>,
    status: &S,
) -> Result<Written<ObjectRef>, DriveError>
where
    K: Clone + DeserializeOwned + Debug + Resource,
    S: Serialize,
{
    let Some(patch) = change(on, &act, stored, status)? else { return Ok(Written::Done(on.clone())) };
    let params =
        PatchParams { field_manager: Some(aicr_crds::keys::manager::PATCH.to_owned()), ..PatchParams::default() };
    Ok(match bounded(act, api.patch_status(&on.name, &params, &Patch::Merge(&patch))).await? {
        Written::Done(after) => Written::Done(object_ref(after.meta())),
        Written::Stale => Written::Stale,
    })
}

/// The patch; `None` where the stored status says the same already, in the whole seconds that it is stored in.
fn change<S: Serialize>(
    on: &ObjectRef,
    act: &str,
    stored: Option<&S>,
    status: &S,
) -> Result<Option<Value>, DriveError> {
    let value = |status: &S| {
        serde_json::to_value(status)
            .map_err(|error| DriveError::Content { act: act.to_owned(), problem: error.to_string() })
    };
    let before = stored.map_or_else(|| Ok(json!({})), value)?;
    let difference = body::difference(&before, &value(status)?);
    Ok(difference.map(|difference| json!({ "metadata": body::guard(on), "status": difference })))
}

#[cfg(test)]
mod tests {
    use aicr_crds::rollout::Phase;

    use super::*;

    fn on() -> ObjectRef {
        ObjectRef { name: "r".to_owned(), uid: "u".to_owned(), resource_version: "3".to_owned() }
    }

    fn status(phase: Phase, message: Option<&str>) -> RuntimeRolloutStatus {
        let message = message.map(str::to_owned);
        RuntimeRolloutStatus { phase: Some(phase), message, ..RuntimeRolloutStatus::default() }
    }

    #[test]
    fn an_unchanged_status_is_no_call_and_a_vanished_field_is_null() {
        let before = status(Phase::Stalled, Some("drift"));
        assert_eq!(change(&on(), "", Some(&before), &before).unwrap(), None);
        let after = status(Phase::Progressing, None);
        let patch = change(&on(), "", Some(&before), &after).unwrap().unwrap();
        assert_eq!(patch["status"], json!({ "phase": "Progressing", "message": null }));
        assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "3" }));
    }

    #[test]
    fn times_that_differ_within_their_second_are_the_same_status() {
        let at = |text: &str| {
            let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(text.parse().unwrap());
            RuntimeRolloutStatus { finished_at: Some(time), ..RuntimeRolloutStatus::default() }
        };
        let (before, after) = (at("2026-11-29T10:00:00Z"), at("2026-11-29T10:00:00.7Z"));
        assert_eq!(change(&on(), "", Some(&before), &after).unwrap(), None);
    }
}
