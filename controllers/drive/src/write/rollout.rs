//! What is written to rollouts, beside their status.

use aicr_crds::{
    ClusterRuntime, RuntimeRollout,
    keys::{annotation, finalizer, label},
    reason::Outcome,
    rollout::WrittenEntry,
};
use aicr_decide::rollout::{ObjectRef, written};
use jiff::Timestamp;
use kube::api::{ListParams, ObjectMeta};
use serde_json::Value;

use super::{Writer, Written, body, create, delete, limited, merge, status::object_ref};
use crate::error::DriveError;

impl Writer {
    /// Creates a rollout; stale where one of its name exists, or an Application names one.
    ///
    /// A creation has no version to hold against, and an Application that names a rollout counts as begun by it. A replica
    /// that has not heard of a rollout, which somebody has deleted by hand since, would give its name once more.
    pub(crate) async fn create_rollout(&self, rollout: &RuntimeRollout) -> Result<Written<RuntimeRollout>, DriveError> {
        let name = rollout.metadata.name.as_deref().unwrap_or_default();
        if self.is_named(name).await? {
            return Ok(Written::Stale);
        }
        create(&self.rollouts(), format!("create RuntimeRollout {name}"), rollout).await
    }

    /// Whether an Application says that this rollout wrote it, or deletes it.
    async fn is_named(&self, rollout: &str) -> Result<bool, DriveError> {
        let ours = ListParams::default().labels(&format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_VALUE));
        let act = format!("list Applications before RuntimeRollout {rollout} is created");
        // No answer to a list is stale.
        let Written::Done(all) = limited(act, self.applications().list_metadata(&ours), |_| false).await? else {
            return Ok(true);
        };
        let names = |metadata: &ObjectMeta| {
            let said = metadata.annotations.as_ref();
            let said = |key| said.and_then(|all| all.get(key)).is_some_and(|named| named == rollout);
            said(annotation::ROLLOUT) || said(annotation::DELETE_ROLLOUT)
        };
        Ok(all.items.iter().any(|application| names(&application.metadata)))
    }

    /// Adds one entry to what a rollout did; the rollout as it is now.
    pub(crate) async fn record(
        &self,
        rollout: &RuntimeRollout,
        release: &str,
        entry: &WrittenEntry,
    ) -> Result<Written<RuntimeRollout>, DriveError> {
        let mut all = written(rollout);
        all.insert(release.to_owned(), entry.clone());
        let text = serde_json::to_string(&all)
            .map_err(|error| DriveError::Content { act: "record".to_owned(), problem: error.to_string() })?;
        let on = object_ref(&rollout.metadata);
        self.patched(&on, &body::annotations(&on, &[(annotation::WRITTEN, Some(text))])).await
    }

    /// Records a retry token as spent; the rollout as it is now.
    pub(crate) async fn spend_token(
        &self,
        rollout: &RuntimeRollout,
        token: &str,
    ) -> Result<Written<ObjectRef>, DriveError> {
        let on = object_ref(&rollout.metadata);
        self.annotate(&on, &body::annotations(&on, &[(annotation::RETRY_SPENT, Some(token.to_owned()))])).await
    }

    /// Ends a rollout: label and time in one patch, which alone decides; the rollout as it is now.
    pub(crate) async fn end(
        &self,
        rollout: &RuntimeRollout,
        outcome: Outcome,
        evidence: Option<&str>,
        now: Timestamp,
    ) -> Result<Written<ObjectRef>, DriveError> {
        let on = object_ref(&rollout.metadata);
        let mut patch = body::end(&on, outcome.as_str(), &now.to_string());
        if let Some(evidence) = evidence {
            patch["metadata"]["annotations"][annotation::EVIDENCE] = evidence.into();
        }
        self.annotate(&on, &patch).await
    }

    /// Deletes an ended rollout that is not kept.
    pub(crate) async fn delete_rollout(&self, on: &ObjectRef) -> Result<Written<()>, DriveError> {
        let act = format!("delete RuntimeRollout {}", on.name);
        delete(&self.rollouts(), &on.name, act, &on.uid, Some(&on.resource_version)).await
    }

    /// Adds the operator's finalizer to the runtime, or takes it off; others stay.
    pub(crate) async fn cleanup(&self, runtime: &ClusterRuntime, held: bool) -> Result<Written<()>, DriveError> {
        let on = object_ref(&runtime.metadata);
        let mut finalizers = runtime.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|name| name != finalizer::CLEANUP);
        finalizers.extend(held.then(|| finalizer::CLEANUP.to_owned()));
        let mut metadata = body::guard(&on);
        metadata["finalizers"] = finalizers.into();
        let patch = serde_json::json!({ "metadata": metadata });
        merge(&self.runtimes(), &on.name, "change the runtime's finalizer", &patch).await.map(Written::forget)
    }

    async fn annotate(&self, on: &ObjectRef, patch: &Value) -> Result<Written<ObjectRef>, DriveError> {
        Ok(match self.patched(on, patch).await? {
            Written::Done(rollout) => Written::Done(object_ref(&rollout.metadata)),
            Written::Stale => Written::Stale,
        })
    }

    async fn patched(&self, on: &ObjectRef, patch: &Value) -> Result<Written<RuntimeRollout>, DriveError> {
        merge(&self.rollouts(), &on.name, format!("patch RuntimeRollout {}", on.name), patch).await
    }
}

/// The rollout as it was seen.
pub(crate) fn seen_ref(rollout: &RuntimeRollout) -> ObjectRef {
    object_ref(&rollout.metadata)
}
