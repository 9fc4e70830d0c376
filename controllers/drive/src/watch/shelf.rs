//! One watch and its store: pruned before it is stored, told apart from a refusal, and never ended by one bad object.

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use backon::ExponentialBuilder;
use futures::StreamExt as _;
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt as _,
        reflector::{ObjectRef, Store, store::Writer},
        utils::ResetTimerBackoff,
        watcher::{self, Config, Event, ExponentialBackoff, watcher},
    },
};
use serde::de::DeserializeOwned;

use super::Changes;
use crate::error::{self, REFUSALS, said};

/// What is known of a watch as a whole.
#[derive(Debug, Default)]
struct Flags {
    synced: AtomicBool,
    refused: AtomicBool,
    unserved: AtomicBool,
    news: AtomicU64,
}

/// The reading side.
#[derive(Debug)]
pub(crate) struct Shelf<K: Resource<DynamicType = ()> + 'static> {
    store: Store<K>,
    flags: Arc<Flags>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Shelf<K> {
    /// The same view once more.
    pub(crate) fn view(&self) -> Self {
        Self { store: self.store.clone(), flags: Arc::clone(&self.flags) }
    }

    /// Every object, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        self.store.state()
    }

    /// The object of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<K>> {
        self.store.find(|object| object.meta().name.as_deref() == Some(name))
    }

    /// Another number whenever something changed that counts.
    pub(crate) fn news(&self) -> u64 {
        self.flags.news.load(Ordering::Acquire)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Whether the first list is here.
    pub(crate) fn is_synced(&self) -> bool {
        self.flags.synced.load(Ordering::Relaxed)
    }

    /// Whether the API server forbids the watch.
    pub(crate) fn is_refused(&self) -> bool {
        self.flags.refused.load(Ordering::Relaxed)
    }

    /// Whether the API server does not know the kind.
    pub(crate) fn is_unserved(&self) -> bool {
        self.flags.unserved.load(Ordering::Relaxed)
    }

    /// Whether the first list is here, or is refused.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_synced() || self.is_refused()
    }
}

/// The filling side.
pub(crate) struct Feed<K: Resource<DynamicType = ()> + Clone + 'static> {
    name: &'static str,
    api: Api<K>,
    config: Config,
    writer: Writer<K>,
    flags: Arc<Flags>,
    changes: Changes,
    prune: fn(&mut K),
    same: Same<K>,
}

/// Whether an object is like the one before.
type Same<K> = Box<dyn Fn(&K, &K) -> bool + Send + Sync>;

/// A store and what fills it.
pub(crate) fn shelf<K>(name: &'static str, api: Api<K>, config: Config, changes: &Changes) -> (Shelf<K>, Feed<K>)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let writer = Writer::new(());
    let flags = Arc::new(Flags::default());
    let shelf = Shelf { store: writer.as_reader(), flags: Arc::clone(&flags) };
    let feed = Feed {
        name,
        api,
        config,
        writer,
        flags,
        changes: changes.clone(),
        prune: |_| (),
        same: Box::new(|_, _| false),
    };
    (shelf, feed)
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Feed<K> {
    /// The same, dropping from each object what nobody reads.
    pub(crate) fn pruned(self, prune: fn(&mut K)) -> Self {
        Self { prune, ..self }
    }

    /// The same, waking nobody for an object that is like the one it takes the place of.
    pub(crate) fn same_when(self, same: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Self { same: Box::new(same), ..self }
    }

    /// Forgets everything, as when the kind itself goes.
    pub(super) fn clear(&mut self) {
        self.writer.apply_watcher_event(&Event::Init);
        self.writer.apply_watcher_event(&Event::InitDone);
        self.flags.synced.store(false, Ordering::Relaxed);
        self.flags.refused.store(false, Ordering::Relaxed);
        self.flags.unserved.store(false, Ordering::Relaxed);
        self.flags.news.fetch_add(1, Ordering::Release);
        self.changes.tell();
    }

    pub(crate) fn take(&mut self, event: Result<Event<K>, watcher::Error>) {
        match event {
            Ok(event) => self.store(event),
            Err(error) => {
                tracing::warn!(kind = self.name, error = told(&error), "watch failed and is begun again");
                self.flags.refused.store(is_answer(&error, &REFUSALS), Ordering::Relaxed);
                self.flags.unserved.store(is_answer(&error, &[404]), Ordering::Relaxed);
                self.changes.tell();
            }
        }
    }

    fn store(&mut self, event: Event<K>) {
        let prune = self.prune;
        let event = event.modify(|object| {
            object.meta_mut().managed_fields = None;
            prune(object);
        });
        self.flags.refused.store(false, Ordering::Relaxed);
        self.flags.unserved.store(false, Ordering::Relaxed);
        let news = match &event {
            Event::Apply(object) => {
                let before = self.writer.as_reader().get(&ObjectRef::from_obj(object));
                !before.is_some_and(|before| (self.same)(&before, object))
            }
            Event::Delete(_) | Event::InitDone => true,
            Event::Init | Event::InitApply(_) => false,
        };
        self.writer.apply_watcher_event(&event);
        if matches!(event, Event::InitDone) {
            self.flags.synced.store(true, Ordering::Relaxed);
        }
        if news {
            self.flags.news.fetch_add(1, Ordering::Release);
            self.changes.tell();
        }
    }
}

impl<K> Feed<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Tells whether there is any object, from now on.
    pub(super) fn presence(&self) -> Presence {
        let store = self.writer.as_reader();
        Presence { any: Box::new(move || !store.is_empty()), changes: self.changes.listen() }
    }

    /// Watches, without end; a failure is logged and the watch begun again after a while.
    pub(crate) async fn run(&mut self) {
        let stream = watcher(self.api.clone(), self.config.clone()).backoff(pauses());
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            self.take(event);
        }
    }
}

/// Pauses between the attempts of a failed watch. kube's own grow to half a minute, for which a leader that is back would go by
/// an old view.
fn pauses() -> ResetTimerBackoff<ExponentialBackoff> {
    let growing = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times();
    ResetTimerBackoff::new(growing.into(), Duration::from_mins(2))
}

/// Waits for a store to be empty or not.
pub(super) struct Presence {
    any: Box<dyn Fn() -> bool + Send>,
    changes: tokio::sync::watch::Receiver<u64>,
}

impl Presence {
    /// Returns once there is any object, or none.
    pub(super) async fn is(&mut self, present: bool) {
        while (self.any)() != present {
            if self.changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// The failure in few words.
fn told(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error) => format!("list: {}", said(error)),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            format!("watch: {}", said(error))
        }
        watcher::Error::WatchError(status) => format!("watch: {} {}", status.code, status.reason),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn is_answer(error: &watcher::Error, codes: &[u16]) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error::is_answer(error, codes),
        watcher::Error::WatchError(status) => codes.contains(&status.code),
        watcher::Error::NoResourceVersion => false,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, core::Status};

    use super::*;

    fn client() -> Client {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
        });
        Client::new(service, "default")
    }

    fn map(name: &str, value: &str) -> ConfigMap {
        let data = [("key".to_owned(), value.to_owned())].into();
        let metadata = kube::core::ObjectMeta {
            name: Some(name.to_owned()),
            managed_fields: Some(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry::default()]),
            ..kube::core::ObjectMeta::default()
        };
        ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
    }

    #[tokio::test]
    async fn what_nobody_reads_is_dropped_before_it_is_stored() {
        let (shelf, feed) = shelf("ConfigMap", Api::<ConfigMap>::all(client()), Config::default(), &Changes::new());
        let mut feed = feed.pruned(|map| map.data = None);
        feed.take(Ok(Event::Apply(map("a", "1"))));
        let stored = shelf.get("a").unwrap();
        assert_eq!(stored.metadata.managed_fields, None);
        assert_eq!(stored.data, None);
    }

    #[tokio::test]
    async fn an_object_like_the_one_before_wakes_nobody() {
        let changes = Changes::new();
        let (_, feed) = shelf("ConfigMap", Api::<ConfigMap>::all(client()), Config::default(), &changes);
        let mut feed = feed.same_when(|one, other| one.data == other.data);
        feed.take(Ok(Event::Apply(map("a", "1"))));
        let mut listener = changes.listen();
        feed.take(Ok(Event::Apply(map("a", "1"))));
        assert!(!listener.has_changed().unwrap());
        feed.take(Ok(Event::Apply(map("a", "2"))));
        assert!(listener.has_changed().unwrap());
        listener.mark_unchanged();
    }

    #[tokio::test]
    async fn a_refused_watch_is_answered_and_not_synced_until_it_is_allowed() {
        let (shelf, mut feed) = shelf("ConfigMap", Api::<ConfigMap>::all(client()), Config::default(), &Changes::new());
        let forbidden = Status { code: 403, ..Status::failure("no", "Forbidden") };
        feed.take(Err(watcher::Error::InitialListFailed(kube::Error::Api(Box::new(forbidden)))));
        assert!(shelf.is_refused() && shelf.is_answered() && !shelf.is_synced());
        feed.take(Ok(Event::Init));
        feed.take(Ok(Event::InitDone));
        assert!(!shelf.is_refused() && shelf.is_synced());
        feed.clear();
        assert!(!shelf.is_answered() && shelf.is_empty());
    }

    #[tokio::test]
    async fn a_kind_that_is_not_served_is_told_from_one_that_is_refused() {
        let (shelf, mut feed) = shelf("ConfigMap", Api::<ConfigMap>::all(client()), Config::default(), &Changes::new());
        let unknown = Status { code: 404, ..Status::failure("no", "NotFound") };
        feed.take(Err(watcher::Error::InitialListFailed(kube::Error::Api(Box::new(unknown)))));
        assert!(shelf.is_unserved() && !shelf.is_refused() && !shelf.is_answered());
        feed.take(Ok(Event::Init));
        assert!(!shelf.is_unserved());
    }

    #[tokio::test]
    async fn who_else_owns_fields_of_a_spec_is_still_known_when_managed_fields_are_dropped() {
        use aicr_crds::application::Application;
        let (shelf, mut feed) =
            shelf("Application", Api::namespaced(client(), "argocd"), Config::default(), &Changes::new());
        let entry = |manager: &str| {
            serde_json::json!({ "manager": manager, "operation": "Update", "apiVersion": "argoproj.io/v1alpha1",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:source": {} } } })
        };
        let object: Application = serde_json::from_value(serde_json::json!({
            "metadata": { "name": "gpu", "namespace": "argocd", "managedFields": [entry("kubectl-edit"), entry("aicr-operator")] },
            "spec": {},
        }))
        .unwrap();
        feed.take(Ok(Event::Apply(object)));
        let stored = shelf.get("gpu").unwrap();
        assert_eq!(stored.metadata.managed_fields, None);
        assert_eq!(stored.managers, ["kubectl-edit"]);
    }
}
