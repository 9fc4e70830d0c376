//! Every watch: its selector, and the store that it fills.

mod engine;
mod kinds;
mod nodes;
mod rollouts;
mod shelf;
#[cfg(test)]
mod told;

use std::{collections::BTreeSet, sync::Arc};

use aicr_crds::{ClusterRuntime, RuntimeRollout, application::Application, keys::label, runtime};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher::Config,
};
use tokio::sync::watch;

pub(crate) use engine::EngineFeeds;
pub(crate) use kinds::{
    Content, Document, Project, REPORT_KEY, RUNS_KEY, ResolvedEntry, SNAPSHOT_KEY, SnapshotDocument,
};
pub(crate) use nodes::Node;
pub use rollouts::Rollouts;
pub(crate) use shelf::{Feed, Shelf, shelf};

use crate::settings::DriveSettings;

/// The CRD whose presence says that Argo CD is installed.
pub(crate) const APPLICATION_CRD: &str = "applications.argoproj.io";
/// Objects that one page of a list holds.
const PAGE: u32 = 50;

/// A CRD, of which only the presence counts.
pub(crate) type Crd = PartialObjectMeta<CustomResourceDefinition>;

/// A Secret, of which only the metadata is ever read: the token stays where it is.
pub(crate) type RepoCreds = PartialObjectMeta<Secret>;

/// Counts what the stores were told; whoever waits for something looks again after each.
#[derive(Clone, Debug)]
pub(crate) struct Changes(Arc<watch::Sender<u64>>);

impl Changes {
    /// Nothing was told yet.
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Says that there is something new to look at.
    pub(crate) fn tell(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A listener that has seen everything so far.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// All stores.
#[derive(Debug)]
pub(crate) struct Watches {
    pub(crate) runtimes: Shelf<DeserializeGuard<ClusterRuntime>>,
    pub(crate) rollouts: Shelf<DeserializeGuard<RuntimeRollout>>,
    pub(crate) documents: Shelf<Document>,
    pub(crate) nodes: Shelf<Node>,
    pub(crate) jobs: Vec<Shelf<Job>>,
    pub(crate) pods: Vec<Shelf<Pod>>,
    pub(crate) crds: Shelf<Crd>,
    pub(crate) applications: Shelf<Application>,
    pub(crate) projects: Shelf<Project>,
    /// Argo CD's credentials for our registry, where the operator fetches them; apart from the rest, since a refusal
    /// is an answer too.
    pub(crate) repo_creds: Option<Shelf<RepoCreds>>,
    pub(crate) changes: Changes,
}

/// What fills the stores, to be run for as long as they are used.
pub(crate) struct Feeds {
    runtimes: Feed<DeserializeGuard<ClusterRuntime>>,
    rollouts: Feed<DeserializeGuard<RuntimeRollout>>,
    documents: Feed<Document>,
    nodes: Feed<Node>,
    jobs: Vec<Feed<Job>>,
    pods: Vec<Feed<Pod>>,
    engine: EngineFeeds,
    repo_creds: Option<Feed<RepoCreds>>,
}

fn config() -> Config {
    Config::default().page_size(PAGE)
}

/// Selects the one object of this name.
pub(crate) fn named(name: &str) -> Config {
    config().fields(&format!("metadata.name={name}"))
}

fn ours() -> Config {
    config().labels(&format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_VALUE))
}

impl Watches {
    /// The stores, empty, and what fills them.
    pub(crate) fn new(client: &Client, settings: &DriveSettings) -> (Self, Feeds) {
        let changes = Changes::new();
        let all = || Api::all(client.clone());
        let engine = &settings.decide.engine;
        let asked = |config: Config| config.timeout(settings.watch_seconds);
        let (runtimes, runtimes_feed) = shelf("ClusterRuntime", all(), asked(named(runtime::NAME)), &changes);
        let (rollouts, rollouts_feed) = shelf("RuntimeRollout", Api::all(client.clone()), asked(config()), &changes);
        let documents = Api::namespaced(client.clone(), &settings.namespace);
        let roles = asked(config()).labels(&format!("{} in (plan,snapshot,assessment,runs)", label::ROLE));
        let (documents, documents_feed) = shelf("ConfigMap", documents, roles, &changes);
        let (nodes, nodes_feed) = shelf("Node", Api::all(client.clone()), asked(config()), &changes);
        let (crds, crds_feed) =
            shelf("CustomResourceDefinition", Api::all(client.clone()), asked(named(APPLICATION_CRD)), &changes);
        let in_engine = Api::namespaced(client.clone(), &engine.namespace);
        let (applications, applications_feed) = shelf("Application", in_engine, asked(ours()), &changes);
        let in_engine = Api::namespaced(client.clone(), &engine.namespace);
        let (projects, projects_feed) = shelf("AppProject", in_engine, asked(named(&engine.project)), &changes);
        let (jobs, jobs_feeds) = in_each(client, &settings.job_namespaces(), "Job", &asked(ours()), &changes);
        let pods = asked(config()).labels("job-name");
        let (pods, pods_feeds) = in_each(client, &settings.job_namespaces(), "Pod", &pods, &changes);
        let (repo_creds, repo_creds_feed) = settings
            .tokens
            .as_ref()
            .map(|tokens| {
                let in_engine = Api::namespaced(client.clone(), &engine.namespace);
                shelf("Secret", in_engine, asked(named(&tokens.secret)), &changes)
            })
            .unzip();
        let feeds = Feeds {
            repo_creds: repo_creds_feed,
            runtimes: runtimes_feed,
            rollouts: rollouts_feed,
            documents: documents_feed,
            nodes: nodes_feed.same_when(nodes::unless_it_concerns(&runtimes)),
            jobs: jobs_feeds.into_iter().map(|feed| feed.pruned(kinds::prune_job)).collect(),
            pods: pods_feeds.into_iter().map(|feed| feed.pruned(kinds::prune_pod)).collect(),
            engine: EngineFeeds::new(crds_feed, applications_feed, projects_feed),
        };
        let watches = Self {
            runtimes,
            rollouts,
            documents,
            nodes,
            jobs,
            pods,
            crds,
            applications,
            projects,
            repo_creds,
            changes,
        };
        (watches, feeds)
    }

    /// Whether every watch has delivered its first list; Argo CD's only while its CRD is there. Where those of other
    /// namespaces are refused the refusal is an answer too, and where the kind of projects is not known: what is missing is
    /// said then, which no operator does that waits for it.
    pub(crate) fn are_ready(&self) -> bool {
        let own = self.runtimes.is_synced()
            && self.rollouts.is_synced()
            && self.documents.is_synced()
            && self.nodes.is_synced()
            && self.jobs.iter().all(Shelf::is_answered)
            && self.pods.iter().all(Shelf::is_answered)
            && self.crds.is_synced()
            && self.repo_creds.as_ref().is_none_or(Shelf::is_answered);
        let projects = || self.projects.is_answered() || self.projects.is_unserved();
        own && (!self.has_engine() || (self.applications.is_answered() && projects()))
    }

    /// Whether Argo CD's CRD is there.
    pub(crate) fn has_engine(&self) -> bool {
        !self.crds.is_empty()
    }
}

fn in_each<K>(
    client: &Client,
    namespaces: &[String],
    name: &'static str,
    config: &Config,
    changes: &Changes,
) -> (Vec<Shelf<K>>, Vec<Feed<K>>)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + 'static,
{
    let distinct: BTreeSet<&String> = namespaces.iter().collect();
    distinct
        .into_iter()
        .map(|namespace| shelf(name, Api::namespaced(client.clone(), namespace), config.clone(), changes))
        .unzip()
}

impl Feeds {
    /// Runs every watch, without end.
    pub(crate) async fn run(mut self) {
        let jobs = futures::future::join_all(self.jobs.iter_mut().map(Feed::run));
        let pods = futures::future::join_all(self.pods.iter_mut().map(Feed::run));
        let repo_creds = futures::future::join_all(self.repo_creds.iter_mut().map(Feed::run));
        tokio::join!(
            self.runtimes.run(),
            self.rollouts.run(),
            self.documents.run(),
            self.nodes.run(),
            self.engine.run(),
            jobs,
            pods,
            repo_creds,
        );
    }
}
