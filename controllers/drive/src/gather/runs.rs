//! AICR Jobs with their pods, Events and output; a finished one is read once, from the API server itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aicr_decide::resolve::{JobPhase, JobSeen};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Event, Pod},
};
use kube::{Api, Client, api::ListParams};

use crate::{
    error::DriveError,
    jobs::seen::{self, Around},
    watch::{Shelf, Watches},
    write::CALL_LIMIT,
};

/// How soon a Job that waits is looked at again; people are told within half a minute.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// Events of one pod that are read.
const EVENTS: u32 = 50;
/// Events of a namespace that are read for a Job whose pods are gone.
const NAMESPACE_EVENTS: u32 = 500;

/// Every AICR Job, and which of them were not known to have finished before.
pub(crate) struct Jobs {
    pub(crate) all: Vec<JobSeen>,
    pub(crate) finished: Vec<Finished>,
    pub(crate) again: Option<Timestamp>,
}

/// A Job when it is first seen finished.
pub(crate) struct Finished {
    pub(crate) seen: JobSeen,
    /// How long it ran.
    pub(crate) took: Option<SignedDuration>,
    /// When it ended.
    pub(crate) at: Timestamp,
}

/// Looks at Jobs.
pub(super) struct Runs {
    client: Client,
    finished: BTreeMap<String, JobSeen>,
}

impl Runs {
    pub(super) fn new(client: Client) -> Self {
        Self { client, finished: BTreeMap::new() }
    }

    /// Every Job as it is now.
    pub(super) async fn look(&mut self, watches: &Watches, now: Timestamp) -> Result<Jobs, DriveError> {
        let objects: Vec<Arc<Job>> = watches.jobs.iter().flat_map(Shelf::all).collect();
        let pods: Vec<Arc<Pod>> = watches.pods.iter().flat_map(Shelf::all).collect();
        let uids: BTreeSet<&str> = objects.iter().filter_map(|job| job.metadata.uid.as_deref()).collect();
        self.finished.retain(|uid, _| uids.contains(uid.as_str()));
        let mut jobs = Jobs { all: Vec::new(), finished: Vec::new(), again: None };
        for job in &objects {
            if is_finished(job) {
                self.ended(job, now, &mut jobs).await?;
            } else {
                let (seen, waits) = self.active(job, &pods, now).await?;
                jobs.all.extend(seen);
                jobs.again = if waits { Some(now + LOOK_AGAIN) } else { jobs.again };
            }
        }
        jobs.all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(jobs)
    }

    /// What it was is final, and the watch on pods may lag behind the one on Jobs: so the pods are asked for, once.
    async fn ended(&mut self, job: &Job, now: Timestamp, jobs: &mut Jobs) -> Result<(), DriveError> {
        let uid = job.metadata.uid.clone().unwrap_or_default();
        if let Some(seen) = self.finished.get(&uid) {
            jobs.all.push(seen.clone());
            return Ok(());
        }
        let (namespace, name) = place(job);
        let params = ListParams::default().labels(&format!("job-name={name}"));
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pods = asked(format!("list the pods of Job {name}"), pods.list(&params)).await?.items;
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let output = asked(format!("get ConfigMap {name}"), maps.get_opt(name)).await?;
        // The deadline takes the pods along; only Events tell then whether the run had ever begun.
        let events = if pods.is_empty() { self.events(namespace, name).await? } else { Vec::new() };
        let Some(seen) = seen::job(job, Around { pods: &pods, events: &events, output: output.as_ref(), now }) else {
            return Ok(());
        };
        self.finished.insert(uid, seen.clone());
        jobs.all.push(seen.clone());
        let at = match &seen.phase {
            JobPhase::Succeeded { at, .. } | JobPhase::Failed { at, .. } => *at,
            JobPhase::Suspended | JobPhase::Active(_) => return Ok(()),
        };
        let started = job.status.as_ref().and_then(|status| status.start_time.as_ref());
        jobs.finished.push(Finished { took: started.map(|start| at.duration_since(start.0)), at, seen });
        Ok(())
    }

    async fn events(&self, namespace: &str, job: &str) -> Result<Vec<Event>, DriveError> {
        let params = ListParams::default().limit(NAMESPACE_EVENTS);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        Ok(asked(format!("list the Events of Job {job}"), api.list(&params)).await?.items)
    }

    /// One that runs or waits; and whether it waits.
    async fn active(
        &self,
        job: &Job,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Result<(Option<JobSeen>, bool), DriveError> {
        let (namespace, name) = place(job);
        let mine = |pod: &&Arc<Pod>| {
            let named = pod.metadata.labels.as_ref().and_then(|labels| labels.get("job-name"));
            pod.metadata.namespace.as_deref() == Some(namespace) && named.map(String::as_str) == Some(name)
        };
        let pods: Vec<Pod> = pods.iter().filter(mine).map(|pod| Pod::clone(pod)).collect();
        let suspended = job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true);
        let waits = !suspended && !pods.iter().any(has_started);
        let mut events = Vec::new();
        if waits {
            let uids = pods.iter().map(|pod| &pod.metadata).chain([&job.metadata]).filter_map(|one| one.uid.as_deref());
            for uid in uids {
                let params = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(EVENTS);
                let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
                events.extend(asked(format!("list the Events of Job {name}"), api.list(&params)).await?.items);
            }
        }
        Ok((seen::job(job, Around { pods: &pods, events: &events, output: None, now }), waits))
    }
}

fn place(job: &Job) -> (&str, &str) {
    let metadata = &job.metadata;
    (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}

fn has_started(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Running" | "Succeeded" | "Failed"))
}

/// `Complete` or `Failed`, not what precedes them (K35).
fn is_finished(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.status == "True" && matches!(condition.type_.as_str(), "Complete" | "Failed"))
}

async fn asked<T>(act: String, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, DriveError> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Err(_) => Err(DriveError::Timeout { act, seconds: CALL_LIMIT.as_secs() }),
        Ok(answer) => answer.map_err(|source| DriveError::Api { act, source: Box::new(source) }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_has_finished_when_it_is_complete_or_failed_and_not_just_before() {
        let job = |kind: &str, status: &str| -> Job {
            serde_json::from_value(json!({ "status": { "conditions": [{ "type": kind, "status": status }] } })).unwrap()
        };
        assert!(is_finished(&job("Complete", "True")));
        assert!(is_finished(&job("Failed", "True")));
        assert!(!is_finished(&job("SuccessCriteriaMet", "True")));
        assert!(!is_finished(&job("FailureTarget", "True")));
        assert!(!is_finished(&job("Suspended", "False")));
    }
}
