//! What a test sees of the cluster, by watches of its own: a wait is a predicate over it, and says what it saw.

use std::sync::Arc;
use std::time::Duration;

use aicr_crds::keys::label;
use aicr_crds::{ClusterRuntime, RuntimeRollout};
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::operator::ENGINE_NAMESPACE;

/// Argo CD's Application.
pub(super) fn application_kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application"))
}

/// What is there now.
#[derive(Clone)]
pub struct Sight {
    applications: Store<DynamicObject>,
    rollouts: Store<RuntimeRollout>,
    runtimes: Store<ClusterRuntime>,
    changes: watch::Receiver<u64>,
}

impl Sight {
    /// Begins to look; the tasks keep it up.
    pub(super) fn begin(client: &Client, tasks: &mut JoinSet<()>) -> Self {
        let (tell, changes) = watch::channel(0);
        let tell = Arc::new(tell);
        let kind = application_kind();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), ENGINE_NAMESPACE, &kind);
        let writer = reflector::store::Writer::new(kind);
        let applications = writer.as_reader();
        follow(api, writer, &tell, tasks);
        let (rollouts, writer) = reflector::store();
        follow(Api::<RuntimeRollout>::all(client.clone()), writer, &tell, tasks);
        let (runtimes, writer) = reflector::store();
        follow(Api::<ClusterRuntime>::all(client.clone()), writer, &tell, tasks);
        Self { applications, rollouts, runtimes, changes }
    }

    /// Tells of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Applications, by name.
    pub fn applications(&self) -> Vec<Arc<DynamicObject>> {
        let mut all = self.applications.state();
        all.sort_by_key(|application| application.name_any());
        all
    }

    /// One Application.
    pub fn application(&self, name: &str) -> Option<Arc<DynamicObject>> {
        self.applications.find(|application| application.metadata.name.as_deref() == Some(name))
    }

    /// Rollouts, oldest first.
    pub fn rollouts(&self) -> Vec<Arc<RuntimeRollout>> {
        let mut all = self.rollouts.state();
        let age = |rollout: &RuntimeRollout| rollout.metadata.creation_timestamp.as_ref().map(|time| time.0);
        all.sort_by_key(|rollout| (age(rollout), rollout.spec.attempt, rollout.name_any()));
        all
    }

    /// The one that is unfinished.
    pub fn unfinished(&self) -> Option<Arc<RuntimeRollout>> {
        self.rollouts.find(|rollout| !rollout.labels().contains_key(label::OUTCOME))
    }

    /// The runtime.
    pub fn runtime(&self) -> Option<Arc<ClusterRuntime>> {
        self.runtimes.state().pop()
    }

    /// The reason of one of its conditions.
    pub fn reason(&self, condition: &str) -> Option<String> {
        let status = self.runtime()?.status.clone()?;
        status.conditions.into_iter().find(|one| one.type_ == condition).map(|one| one.reason)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.runtimes.is_empty() && self.rollouts.is_empty() && self.applications.is_empty()
    }

    /// Waits until the predicate answers.
    pub(super) async fn until<T>(&self, what: &str, bound: Duration, seen: impl Fn(&Self) -> Option<T>) -> T {
        let mut changes = self.changes.clone();
        let wait = async {
            loop {
                changes.mark_unchanged();
                if let Some(answer) = seen(self) {
                    return answer;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let answer = tokio::time::timeout(bound, wait).await;
        answer.unwrap_or_else(|_| panic!("{what}: not within {bound:?}; what is there:\n{}", self.told()))
    }

    /// What is there, in some lines.
    pub fn told(&self) -> String {
        let runtime = self.runtime().and_then(|runtime| runtime.status.clone()).unwrap_or_default();
        let conditions = runtime.conditions.iter().map(|condition| {
            format!("{}={} {}: {}", condition.type_, condition.status, condition.reason, condition.message)
        });
        let rollouts = self.rollouts().into_iter().map(|rollout| {
            let status = rollout.status.clone().unwrap_or_default();
            let (phase, current) = (status.phase, status.current.map(|current| current.release));
            format!("{}: {phase:?} {current:?} {}", rollout.name_any(), status.message.unwrap_or_default())
        });
        let applications = self.applications().into_iter().map(|application| {
            let status = &application.data["status"];
            format!("{}: {} {}", application.name_any(), status["sync"]["status"], status["health"]["status"])
        });
        conditions.chain(rollouts).chain(applications).collect::<Vec<_>>().join("\n")
    }
}

fn follow<K>(api: Api<K>, writer: reflector::store::Writer<K>, tell: &Arc<watch::Sender<u64>>, tasks: &mut JoinSet<()>)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
{
    let tell = Arc::clone(tell);
    let stream = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
    tasks.spawn(async move {
        let told = |_| {
            tell.send_modify(|count| *count += 1);
            std::future::ready(())
        };
        stream.for_each(told).await;
    });
}
