//! What is written to Argo CD.

use aicr_crds::{
    application::{Application, Desired, Ownership},
    keys::{annotation, manager},
};
use aicr_decide::rollout::ObjectRef;
use kube::api::{Patch, PatchParams};

use super::{Writer, Written, body, bounded, delete, limited, merge, ownership};
use crate::error::DriveError;

/// A resourceVersion that no object has.
const NO_VERSION: &str = "1";

impl Writer {
    /// Creates an Application; stale where one of its name exists.
    ///
    /// By apply rather than by POST, so that its fields belong to the manager of later applies and one that they leave
    /// out goes. No object has this version, so the apply creates or is a conflict (tried on 1.34: 201, then 409).
    pub(crate) async fn create_application(&self, desired: &Desired) -> Result<Written<()>, DriveError> {
        let mut whole = desired.body(None);
        whole["metadata"]["resourceVersion"] = serde_json::json!(NO_VERSION);
        let params = PatchParams::apply(manager::APPLY);
        let act = format!("create Application {}", desired.name);
        let api = self.applications();
        let patch = Patch::Apply(&whole);
        let call = api.patch(&desired.name, &params, &patch);
        limited(act, call, |code| code == 409).await.map(Written::forget)
    }

    /// Applies a whole Application that must exist, with this UID at this version, and says at which one it is then; what
    /// others added to its spec goes.
    pub(crate) async fn apply_application(
        &self,
        desired: &Desired,
        on: &ObjectRef,
    ) -> Result<Written<ObjectRef>, DriveError> {
        match self.take_over(on).await? {
            Written::Done(on) => self.apply_whole(desired, &on).await,
            Written::Stale => Ok(Written::Stale),
        }
    }

    /// Takes the fields of others over; the object as it is then.
    async fn take_over(&self, on: &ObjectRef) -> Result<Written<ObjectRef>, DriveError> {
        let api = self.applications();
        let act = format!("take over the fields of Application {}", on.name);
        let Written::Done(found) = bounded(&act, api.get_metadata(&on.name)).await? else { return Ok(Written::Stale) };
        if found.metadata.resource_version.as_ref() != Some(&on.resource_version) {
            return Ok(Written::Stale);
        }
        let entries = found.metadata.managed_fields.unwrap_or_default();
        let Some(entries) = ownership::taken_over(&entries, manager::APPLY) else {
            return Ok(Written::Done(on.clone()));
        };
        let patch = serde_json::json!({ "metadata": {
            "uid": on.uid, "resourceVersion": on.resource_version, "managedFields": entries,
        } });
        let taken = merge(&api, &on.name, act, &patch).await?;
        tracing::info!(application = on.name, "fields that others added to spec are taken over, and go with the apply");
        Ok(match taken {
            Written::Done(taken) => Written::Done(ObjectRef {
                resource_version: taken.metadata.resource_version.unwrap_or_default(),
                ..on.clone()
            }),
            Written::Stale => Written::Stale,
        })
    }

    async fn apply_whole(&self, desired: &Desired, on: &ObjectRef) -> Result<Written<ObjectRef>, DriveError> {
        let mut whole = desired.body(Some(&on.uid));
        whole["metadata"]["resourceVersion"] = serde_json::json!(on.resource_version);
        let params = PatchParams::apply(manager::APPLY).force();
        let act = format!("apply Application {}", on.name);
        let api = self.applications();
        Ok(match bounded(act, api.patch(&on.name, &params, &Patch::Apply(&whole))).await? {
            Written::Done(applied) => Written::Done(ObjectRef::of(&applied)),
            Written::Stale => Written::Stale,
        })
    }

    /// Asks for a comparison.
    pub(crate) async fn refresh(&self, on: &ObjectRef, hard: bool) -> Result<Written<()>, DriveError> {
        self.narrow("refresh", on, &body::refresh(on, hard)).await
    }

    /// Starts a sync.
    pub(crate) async fn sync(
        &self,
        on: &ObjectRef,
        source: &serde_json::Value,
        rollout: &str,
    ) -> Result<Written<()>, DriveError> {
        self.narrow("sync", on, &body::sync(on, source, rollout)).await
    }

    /// Stops the operation in flight.
    pub(crate) async fn terminate(&self, on: &ObjectRef) -> Result<Written<()>, DriveError> {
        self.narrow("terminate the operation of", on, &body::terminate(on)).await
    }

    /// Marks an Application for its Remove step.
    pub(crate) async fn prepare_remove(
        &self,
        application: &Application,
        on: &ObjectRef,
        rollout: &str,
    ) -> Result<Written<()>, DriveError> {
        self.narrow("prepare the removal of", on, &body::prepare_remove(application, on, rollout)).await
    }

    /// Takes the marks off again.
    pub(crate) async fn withdraw_remove(
        &self,
        application: &Application,
        on: &ObjectRef,
        enabled: bool,
    ) -> Result<Written<()>, DriveError> {
        self.narrow("withdraw the removal of", on, &body::withdraw_remove(application, on, enabled)).await
    }

    /// Deletes exactly this Application.
    pub(crate) async fn delete_application(&self, on: &ObjectRef) -> Result<Written<()>, DriveError> {
        let act = format!("delete Application {}", on.name);
        delete(&self.applications(), &on.name, act, &on.uid, Some(&on.resource_version)).await
    }

    /// Rewrites `delete-rollout` alone, on an Application in deletion.
    pub(crate) async fn claim_remove(&self, on: &ObjectRef, rollout: &str) -> Result<Written<()>, DriveError> {
        let patch = body::annotations(on, &[(annotation::DELETE_ROLLOUT, Some(rollout.to_owned()))]);
        self.narrow("take over the removal of", on, &patch).await
    }

    /// Writes the ownership annotations and nothing else.
    pub(crate) async fn annotate_ownership(
        &self,
        on: &ObjectRef,
        ownership: &Ownership,
    ) -> Result<Written<()>, DriveError> {
        self.narrow("annotate", on, &body::ownership(on, ownership)).await
    }

    /// The same, and takes `orphaned-from` off.
    pub(crate) async fn adopt(&self, on: &ObjectRef, ownership: &Ownership) -> Result<Written<()>, DriveError> {
        let mut patch = body::ownership(on, ownership);
        patch["metadata"]["annotations"][annotation::ORPHANED_FROM] = serde_json::Value::Null;
        self.narrow("adopt", on, &patch).await
    }

    /// Marks an Application as left by this runtime.
    pub(crate) async fn orphan(&self, on: &ObjectRef, runtime_uid: &str) -> Result<Written<()>, DriveError> {
        let patch = body::annotations(on, &[(annotation::ORPHANED_FROM, Some(runtime_uid.to_owned()))]);
        self.narrow("orphan", on, &patch).await
    }

    /// Sets `syncPolicy.automated.enabled` alone; the Application as it reads back.
    pub(crate) async fn automate(&self, on: &ObjectRef, enabled: bool) -> Result<Written<Application>, DriveError> {
        let act = format!("switch automated sync of Application {}", on.name);
        merge(&self.applications(), &on.name, act, &body::automate(on, enabled)).await
    }

    async fn narrow(&self, what: &str, on: &ObjectRef, patch: &serde_json::Value) -> Result<Written<()>, DriveError> {
        let act = format!("{what} Application {}", on.name);
        merge(&self.applications(), &on.name, act, patch).await.map(Written::forget)
    }
}
