//! Live objects of the release whose step is in flight, asked for when Argo CD has nothing left to say against it.
//!
//! What is read, and so what the operator's rights are for: `DaemonSets` of the release's namespaces with their pods and
//! revisions, Deployments and `StatefulSets` there, the custom resources of the gate table, and, when something hangs in
//! deletion, webhook configurations and their Services. Other kinds are not looked at.

mod customs;
mod listed;
mod managed;
mod sets;
mod stuck;
mod subject;
mod workloads;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use aicr_decide::{facts::Live, seen::World};
use kube::{Api, Client, core::DynamicObject};

use self::{
    listed::Lists,
    managed::{Managed, managed, of_own_crds},
    subject::{Question, Subject},
};
use super::{
    asked::asked,
    trouble::{Reading, Troubles},
};
use crate::error::{DriveError, chain};

/// How long an answer is good; a gate that does not pass yet is looked at every 5 s.
const GOOD: Duration = Duration::from_secs(4);
/// How long one look may take, with all its calls.
const LOOK_LIMIT: Duration = Duration::from_secs(20);
/// Custom resources of one release that are read.
const CUSTOMS: usize = 50;

/// Looks at live objects, and remembers the answer for a moment.
pub(super) struct LiveReader {
    client: Client,
    /// Names of the CRDs in the gate table.
    table: BTreeSet<String>,
    last: Option<(Subject, Instant, Live)>,
}

impl LiveReader {
    /// A reader of custom resources with these CRDs.
    pub(super) fn new(client: &Client, table: &BTreeSet<String>) -> Self {
        Self { client: client.clone(), table: table.clone(), last: None }
    }

    /// Live objects of the release in question; what could not be read stands against its readiness.
    pub(super) async fn look(&mut self, world: &World, troubles: &mut Troubles) -> Live {
        self.look_at(Subject::find(world), troubles).await
    }

    async fn look_at(&mut self, subject: Option<Subject>, troubles: &mut Troubles) -> Live {
        let Some(subject) = subject else {
            self.last = None;
            troubles.read(Reading::Live, None);
            return Live::default();
        };
        if let Some((of, at, live)) = &self.last
            && *of == subject
            && at.elapsed() < GOOD
        {
            return live.clone();
        }
        let answer = tokio::time::timeout(LOOK_LIMIT, self.ask(&subject)).await.unwrap_or_else(|_| {
            let act = format!("look at the live objects of {}", subject.application.name());
            Err(DriveError::Timeout { act, seconds: LOOK_LIMIT.as_secs() })
        });
        let live = answered(subject.question, answer, troubles);
        self.last = Some((subject, Instant::now(), live.clone()));
        live
    }

    async fn ask(&self, subject: &Subject) -> Result<Live, DriveError> {
        let managed = managed(&self.client, &subject.application).await?;
        match subject.question {
            Question::Health => self.health(&managed).await,
            Question::Gate => self.gate(subject, &managed).await,
            Question::Deletion => self.deletion(&managed).await,
        }
    }

    fn lists(&self) -> Lists<'_> {
        Lists { client: &self.client }
    }

    /// Which resources make it unhealthy.
    async fn health(&self, managed: &[Managed]) -> Result<Live, DriveError> {
        let mut unhealthy: Vec<String> = managed.iter().filter_map(Managed::unhealthy).collect();
        if unhealthy.is_empty() {
            for namespace in namespaces(managed, None) {
                let all = self.lists().workloads(&namespace, managed).await?;
                unhealthy.extend(all.deployments.iter().filter_map(workloads::deployment));
                unhealthy.extend(all.stateful_sets.iter().filter_map(workloads::stateful_set));
                let behind = all.daemon_sets.iter().map(sets::said).filter(sets::is_behind);
                unhealthy.extend(behind.map(|set| {
                    format!("DaemonSet {}: {} of {} nodes ready", set.name, set.ready.min(set.updated), set.desired)
                }));
            }
        }
        Ok(Live { unhealthy, ..Live::default() })
    }

    /// Whether the release's own gate passes.
    async fn gate(&self, subject: &Subject, managed: &[Managed]) -> Result<Live, DriveError> {
        let mut live = Live::default();
        let before = subject.label_before.as_deref();
        // What an operator makes lies where its release does.
        for namespace in namespaces(managed, Some(&subject.application.destination.namespace)) {
            let all = self.lists().workloads(&namespace, managed).await?;
            live.outdated.extend(
                all.deployments.iter().filter_map(|one| workloads::outdated("Deployment", &one.metadata, before)),
            );
            live.outdated.extend(
                all.stateful_sets.iter().filter_map(|one| workloads::outdated("StatefulSet", &one.metadata, before)),
            );
            for set in &all.daemon_sets {
                live.outdated.extend(workloads::outdated("DaemonSet", &set.metadata, before));
                live.daemon_sets.push(self.lists().counted(set).await?);
            }
        }
        for resource in self.table_of(managed) {
            let found = self.get(resource).await?;
            live.outdated
                .extend(found.as_ref().and_then(|found| workloads::outdated(&resource.kind, &found.metadata, before)));
            let seen = found.as_ref().map(|found| (found.metadata.generation.unwrap_or_default(), &found.data));
            live.customs.extend(customs::custom(resource, seen));
        }
        Ok(live)
    }

    /// What holds it in deletion.
    async fn deletion(&self, managed: &[Managed]) -> Result<Live, DriveError> {
        let mut stuck = Vec::new();
        for resource in self.table_of(managed) {
            let found = self.get(resource).await?;
            stuck.extend(found.and_then(|found| stuck::held(&resource.kind, &found.metadata)));
        }
        for namespace in namespaces(managed, None) {
            let all = self.lists().workloads(&namespace, managed).await?;
            stuck.extend(all.deployments.iter().filter_map(|one| stuck::held("Deployment", &one.metadata)));
            stuck.extend(all.stateful_sets.iter().filter_map(|one| stuck::held("StatefulSet", &one.metadata)));
            stuck.extend(all.daemon_sets.iter().filter_map(|one| stuck::held("DaemonSet", &one.metadata)));
        }
        if !stuck.is_empty() {
            stuck.extend(self.lists().absent_guards(managed).await?);
        }
        let own_customs = of_own_crds(managed).map(Managed::shown).collect();
        Ok(Live { stuck, own_customs, ..Live::default() })
    }

    /// Those in the gate table.
    fn table_of<'a>(&'a self, managed: &'a [Managed]) -> impl Iterator<Item = &'a Managed> {
        managed.iter().filter(|one| self.table.contains(&one.crd())).take(CUSTOMS)
    }

    async fn get(&self, one: &Managed) -> Result<Option<DynamicObject>, DriveError> {
        let resource = one.resource();
        let api: Api<DynamicObject> = if one.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &one.namespace, &resource)
        };
        asked(format!("get {}", one.shown()), api.get_opt(&one.name)).await
    }
}

/// What a look came to. Where only words are missing the failure is among them; where readiness is asked about it is
/// trouble, and never taken for ready.
fn answered(question: Question, answer: Result<Live, DriveError>, troubles: &mut Troubles) -> Live {
    let failure = answer.as_ref().err().filter(|_| question == Question::Gate);
    troubles.read(Reading::Live, failure);
    let unread = |error: &DriveError| vec![format!("more cannot be read: {}", chain(error))];
    match (question, answer) {
        (_, Ok(live)) => live,
        (Question::Gate, Err(_)) => Live::default(),
        (Question::Health, Err(error)) => Live { unhealthy: unread(&error), ..Live::default() },
        (Question::Deletion, Err(error)) => Live { stuck: unread(&error), ..Live::default() },
    }
}

/// Where the release's workloads are, and where those of its custom resources may be.
fn namespaces(managed: &[Managed], destination: Option<&str>) -> BTreeSet<String> {
    let workloads = managed.iter().filter(|one| one.group == "apps").map(|one| one.namespace.as_str());
    workloads.chain(destination).filter(|namespace| !namespace.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
