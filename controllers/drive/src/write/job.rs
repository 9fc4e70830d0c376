//! AICR Jobs with what belongs to their run: created suspended, completed, then released.

use aicr_crds::keys::label;
use aicr_decide::resolve::{KEPT_SECONDS, launcher_of_agent};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Secret},
};
use kube::{Api, core::ObjectMeta};
use serde_json::json;

use super::{CALL_LIMIT, Writer, Written, bounded, create, delete, merge};
use crate::error::DriveError;

/// A Job, and what to make of its UID.
pub(crate) struct Run<'a> {
    /// The suspended Job.
    pub(crate) job: Job,
    /// The ConfigMaps that it owns.
    pub(crate) owned: &'a (dyn Fn(&str) -> Vec<ConfigMap> + Sync),
    /// The Secret that it owns, if any.
    pub(crate) secret: &'a (dyn Fn(&str) -> Option<Secret> + Sync),
}

/// Whether an object carries our label: what does not is another's, whatever its name.
fn is_ours(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().and_then(|labels| labels.get(label::MANAGED_BY)).map(String::as_str)
        == Some(label::MANAGED_BY_VALUE)
}

/// Something of this name is not ours, and is left alone.
fn foreign<T>(act: String) -> Result<T, DriveError> {
    let problem = "one of this name is there that is not the operator's; delete it, or move it elsewhere";
    Err(DriveError::Content { act, problem: problem.to_owned() })
}

impl Writer {
    /// Makes a Job and what it owns, then lets it run; all of it can be done again after a crash in between.
    pub(crate) async fn run_job(&self, run: Run<'_>) -> Result<Written<()>, DriveError> {
        let namespace = run.job.metadata.namespace.clone().unwrap_or_default();
        let name = run.job.metadata.name.clone().unwrap_or_default();
        let jobs: Api<Job> = self.namespaced(&namespace);
        let job = match create(&jobs, format!("create Job {name}"), &run.job).await? {
            Written::Done(job) => job,
            Written::Stale => match bounded(format!("get Job {name}"), jobs.get(&name)).await? {
                Written::Done(job) => job,
                Written::Stale => return Ok(Written::Stale),
            },
        };
        if !is_ours(&job.metadata) {
            return foreign(format!("create Job {name}"));
        }
        let uid = job.metadata.uid.clone().unwrap_or_default();
        if job.metadata.deletion_timestamp.is_some() {
            return Ok(Written::Stale);
        }
        for map in (run.owned)(&uid) {
            if self.own(&namespace, &map, &uid).await? == Written::Stale {
                return Ok(Written::Stale);
            }
        }
        if let Some(secret) = (run.secret)(&uid) {
            let secrets: Api<Secret> = self.namespaced(&namespace);
            let name = secret.metadata.name.as_deref().unwrap_or_default();
            // One that is there was made for this very Job: nobody may read it, and its name is the attempt's.
            let _ = create(&secrets, format!("create Secret {name}"), &secret).await?;
        }
        if job.spec.as_ref().and_then(|spec| spec.suspend) != Some(true) {
            return Ok(Written::Done(()));
        }
        let release = json!({ "metadata": { "uid": uid }, "spec": { "suspend": false } });
        merge(&jobs, &name, format!("release Job {name}"), &release).await.map(Written::forget)
    }

    /// Creates a ConfigMap of this Job; one that an earlier Job of the name left is removed first.
    async fn own(&self, namespace: &str, map: &ConfigMap, job: &str) -> Result<Written<()>, DriveError> {
        let name = map.metadata.name.clone().unwrap_or_default();
        let maps: Api<ConfigMap> = self.namespaced(namespace);
        if let Written::Done(_) = create(&maps, format!("create ConfigMap {name}"), map).await? {
            return Ok(Written::Done(()));
        }
        let Written::Done(there) = bounded(format!("get ConfigMap {name}"), maps.get(&name)).await? else {
            return Ok(Written::Stale);
        };
        if !is_ours(&there.metadata) {
            return foreign(format!("create ConfigMap {name}"));
        }
        let owners = there.metadata.owner_references.unwrap_or_default();
        if owners.iter().any(|owner| owner.uid == job) {
            return Ok(Written::Done(()));
        }
        let uid = there.metadata.uid.unwrap_or_default();
        let _ = delete(&maps, &name, format!("delete ConfigMap {name}"), &uid, None).await?;
        Ok(Written::Stale)
    }

    /// Lets a failed Job of a stalled stage outlive the usual TTL.
    pub(crate) async fn keep_job(&self, job: &Job) -> Result<Written<()>, DriveError> {
        let metadata = &job.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let jobs: Api<Job> = self.namespaced(metadata.namespace.as_deref().unwrap_or_default());
        let longer =
            json!({ "metadata": { "uid": metadata.uid }, "spec": { "ttlSecondsAfterFinished": KEPT_SECONDS } });
        merge(&jobs, name, format!("keep Job {name}"), &longer).await.map(Written::forget)
    }

    /// Deletes an agent's Job that a killed launcher left; never one that is not named after a launcher of ours.
    pub(crate) async fn delete_agent(&self, job: &Job) -> Result<Written<()>, DriveError> {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        if launcher_of_agent(name).is_none() {
            return foreign(format!("delete Job {name}"));
        }
        self.delete_job(job).await
    }

    /// Deletes a Job and what it owns.
    pub(crate) async fn delete_job(&self, job: &Job) -> Result<Written<()>, DriveError> {
        let metadata = &job.metadata;
        let (name, uid) = (metadata.name.as_deref().unwrap_or_default(), metadata.uid.as_deref().unwrap_or_default());
        let jobs: Api<Job> = self.namespaced(metadata.namespace.as_deref().unwrap_or_default());
        tracing::debug!(job = name, limit = CALL_LIMIT.as_secs(), "deleting a Job");
        delete(&jobs, name, format!("delete Job {name}"), uid, None).await
    }
}
