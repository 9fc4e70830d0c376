//! AICR Jobs with their pods, Events and output; a finished one is read once, from the API server itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aicr_crds::keys::label;
use aicr_decide::{
    facts::Report,
    resolve::{AicrInstall, JobPhase, JobSeen, Stage, launcher_of_agent},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Event, Pod},
};
use kube::{Api, Client, api::ListParams};

use super::{asked::asked, pins::Pins};
use crate::{
    error::DriveError,
    jobs::{
        report,
        seen::{self, Around},
    },
    settings::DriveSettings,
    watch::{Shelf, Watches},
};

/// How soon a Job that waits is looked at again; people are told within half a minute.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// Events of one pod that are read.
const EVENTS: u32 = 50;
/// Agents that are looked at.
const AGENTS: u32 = 100;
/// Events of a namespace that are read for a Job whose pods are gone.
const NAMESPACE_EVENTS: u32 = 500;

/// Every AICR Job, and which of them were not known to have finished before.
pub(crate) struct Jobs {
    pub(crate) all: Vec<JobSeen>,
    pub(crate) finished: Vec<Finished>,
    pub(crate) again: Option<Timestamp>,
    /// What kept one of them from being read whole; the first.
    pub(crate) failure: Option<DriveError>,
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
    aicr: AicrInstall,
    discovery: String,
    /// Registry and prefix below which evidence is pushed.
    repository: String,
    finished: BTreeMap<String, JobSeen>,
    /// Reports of finished validation Jobs, by name.
    reports: BTreeMap<String, Report>,
    pins: Pins,
    /// What was seen against the images of a validation Job's checks, whose pods are gone when it ends.
    unpinned: BTreeMap<String, BTreeSet<String>>,
}

impl Runs {
    pub(super) fn new(client: Client, settings: &DriveSettings) -> Self {
        let discovery = settings.jobs.discovery_namespace.clone();
        let aicr = settings.install.aicr.clone();
        let repository = settings.install.repository.clone();
        Self {
            client,
            aicr,
            discovery,
            repository,
            finished: BTreeMap::new(),
            reports: BTreeMap::new(),
            pins: Pins::new(&settings.validator_images),
            unpinned: BTreeMap::new(),
        }
    }

    /// Reports of finished validation Jobs.
    pub(super) fn reports(&self) -> &BTreeMap<String, Report> {
        &self.reports
    }

    /// The Jobs of our launchers' agents. They carry AICR's labels, not ours, so no watch of ours tells of them.
    pub(super) async fn agents(&self) -> Result<Vec<Job>, DriveError> {
        let params = ListParams::default().labels(label::AICR_RUN_ID).limit(AGENTS);
        let api: Api<Job> = Api::namespaced(self.client.clone(), &self.discovery);
        let mut agents = asked("list the agents' Jobs".to_owned(), api.list(&params)).await?.items;
        agents.retain(|job| launcher_of_agent(place(job).1).is_some());
        Ok(agents)
    }

    /// Every Job as it is now; what fails with one keeps nothing back of the others.
    pub(super) async fn look(&mut self, watches: &Watches, now: Timestamp) -> Jobs {
        let objects: Vec<Arc<Job>> = watches.jobs.iter().flat_map(Shelf::all).collect();
        let pods: Vec<Arc<Pod>> = watches.pods.iter().flat_map(Shelf::all).collect();
        let uids: BTreeSet<&str> = objects.iter().filter_map(|job| job.metadata.uid.as_deref()).collect();
        self.finished.retain(|uid, _| uids.contains(uid.as_str()));
        self.reports.retain(|name, _| self.finished.values().any(|job| job.name == *name));
        let mut jobs = Jobs { all: Vec::new(), finished: Vec::new(), again: None, failure: None };
        self.check_images(&objects, &pods);
        for job in &objects {
            if let Err(error) = self.one(job, &pods, now, &mut jobs).await {
                jobs.all.extend(self.unread(job, now));
                jobs.failure = jobs.failure.or(Some(error));
            }
        }
        jobs.all.sort_by(|one, other| one.name.cmp(&other.name));
        jobs
    }

    async fn one(&mut self, job: &Job, pods: &[Arc<Pod>], now: Timestamp, jobs: &mut Jobs) -> Result<(), DriveError> {
        if is_finished(job) {
            return self.ended(job, now, jobs).await;
        }
        let (seen, waits) = self.active(job, pods, now).await?;
        jobs.all.extend(seen);
        jobs.again = if waits { Some(now + LOOK_AGAIN) } else { jobs.again };
        Ok(())
    }

    /// One that is there, and of which nothing more could be read: it counts as running until it is known how it ended.
    fn unread(&self, job: &Job, now: Timestamp) -> Option<JobSeen> {
        let seen = seen::job(job, Around { pods: &[], events: &[], output: None, aicr: &self.aicr, now })?;
        let phase = match seen.phase {
            JobPhase::Suspended => JobPhase::Suspended,
            JobPhase::Active(_) | JobPhase::Succeeded { .. } | JobPhase::Failed { .. } => JobPhase::Active(None),
        };
        Some(JobSeen { phase, ..seen })
    }

    /// While a validation Job runs, the other pods of its namespace are its checks'.
    fn check_images(&mut self, objects: &[Arc<Job>], pods: &[Arc<Pod>]) {
        let ours: BTreeSet<&str> = objects.iter().map(|job| place(job).1).collect();
        let running = objects.iter().find(|job| is_of(job, Stage::Validation) && !is_finished(job));
        let Some((namespace, name)) = running.map(|job| place(job)) else { return };
        let is_check = |pod: &&Arc<Pod>| {
            let of = pod.metadata.labels.as_ref().and_then(|labels| labels.get("job-name"));
            pod.metadata.namespace.as_deref() == Some(namespace) && of.is_some_and(|of| !ours.contains(of.as_str()))
        };
        let found: BTreeSet<String> = pods.iter().filter(is_check).flat_map(|pod| self.pins.against(pod)).collect();
        if !found.is_empty() {
            self.unpinned.entry(name.to_owned()).or_default().extend(found);
        }
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
        // The deadline takes the pods along, and a launcher its agent: only Events tell then whether a run ever began.
        let hidden = pods.is_empty() || is_launcher(job);
        let events = if hidden { self.events(namespace, name).await? } else { Vec::new() };
        let around = Around { pods: &pods, events: &events, output: output.as_ref(), aicr: &self.aicr, now };
        let Some(seen) = seen::job(job, around) else { return Ok(()) };
        let unpinned = self.unpinned.remove(&seen.name).unwrap_or_default();
        if let Some(report) = report::of(&seen, output.as_ref(), &self.repository, unpinned) {
            self.reports.insert(seen.name.clone(), report);
        }
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
        let own: Vec<Pod> = pods.iter().filter(mine).map(|pod| Pod::clone(pod)).collect();
        let suspended = job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true);
        let waits = !suspended && !own.iter().any(has_started);
        let events = if waits { self.events_of(job, &own).await? } else { Vec::new() };
        let around = Around { pods: &own, events: &events, output: None, aicr: &self.aicr, now };
        let mut seen = seen::job(job, around);
        let launched = !suspended && !waits && is_launcher(job);
        if let Some(JobSeen { phase: phase @ JobPhase::Active(None), .. }) = seen.as_mut().filter(|_| launched) {
            *phase = JobPhase::Active(self.behind(name, pods, now).await?);
        }
        Ok((seen, waits || launched))
    }

    /// What keeps the agent of a running launcher from running.
    async fn behind(&self, launcher: &str, pods: &[Arc<Pod>], now: Timestamp) -> Result<Option<String>, DriveError> {
        let mut agents = self.agents().await?;
        agents.retain(|job| launcher_of_agent(place(job).1).as_deref() == Some(launcher) && !is_finished(job));
        let Some(agent) = agents.first() else { return Ok(None) };
        let name = place(agent).1;
        let mine = pods.iter().filter(|pod| {
            pod.metadata.labels.as_ref().and_then(|labels| labels.get("job-name")).map(String::as_str) == Some(name)
        });
        let mine: Vec<Pod> = mine.map(|pod| Pod::clone(pod)).collect();
        if mine.iter().any(has_started) {
            return Ok(None);
        }
        let events = self.events_of(agent, &mine).await?;
        Ok(seen::agent(agent, Around { pods: &mine, events: &events, output: None, aicr: &self.aicr, now }))
    }

    /// Events of a Job and of its pods.
    async fn events_of(&self, job: &Job, pods: &[Pod]) -> Result<Vec<Event>, DriveError> {
        let (namespace, name) = place(job);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let mut events = Vec::new();
        let uids = pods.iter().map(|pod| &pod.metadata).chain([&job.metadata]).filter_map(|one| one.uid.as_deref());
        for uid in uids {
            let params = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(EVENTS);
            events.extend(asked(format!("list the Events of Job {name}"), api.list(&params)).await?.items);
        }
        Ok(events)
    }
}

fn place(job: &Job) -> (&str, &str) {
    let metadata = &job.metadata;
    (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}

/// Whether it runs AICR's launcher, behind which the Job that matters is hidden.
fn is_launcher(job: &Job) -> bool {
    is_of(job, Stage::Snapshot)
}

fn is_of(job: &Job, stage: Stage) -> bool {
    let label = job.metadata.labels.as_ref().and_then(|labels| labels.get(label::STAGE));
    label.map(String::as_str) == Some(stage.as_str())
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
