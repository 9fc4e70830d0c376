//! Nodes, reduced to labels, operating system and architecture; what many of them share is held once.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use aicr_crds::{ClusterRuntime, runtime::NAME};
use aicr_decide::resolve::{NodeLabels, labels_of_interest};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ClusterResourceScope, DeserializeGuard, Resource};
use serde::{Deserialize, Deserializer, de};

use super::{Shelf, kinds::slice_of};

slice_of!(Node, ClusterResourceScope, "", "v1", "Node", "nodes");

/// A node, reduced to what placement and snapshots look at; its metadata holds name, UID and version alone.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "wire::Node<'_>")]
pub(crate) struct Node {
    pub(crate) metadata: ObjectMeta,
    labels: Labels,
    os_image: Arc<str>,
    architecture: Arc<str>,
}

impl Node {
    /// Labels.
    pub(crate) fn labels(&self) -> &dyn NodeLabels {
        &self.labels
    }

    /// Operating system, as the kubelet reports it.
    pub(crate) fn os_image(&self) -> &str {
        &self.os_image
    }

    /// Architecture, as the kubelet reports it.
    pub(crate) fn architecture(&self) -> &str {
        &self.architecture
    }

    fn is_like(&self, other: &Self) -> bool {
        self.os_image == other.os_image && self.architecture == other.architecture && self.labels == other.labels
    }

    fn differs_in(&self, other: &Self, keys: &BTreeSet<&str>) -> bool {
        self.os_image != other.os_image
            || self.architecture != other.architecture
            || keys.iter().any(|key| self.labels.value(key) != other.labels.value(key))
    }
}

/// Whether a node's change concerns nothing: a kubelet reports every few minutes, and most labels are others'.
pub(super) fn unless_it_concerns(
    runtimes: &Shelf<DeserializeGuard<ClusterRuntime>>,
) -> impl Fn(&Node, &Node) -> bool + Send + Sync + 'static {
    let runtimes = runtimes.view();
    move |before, after| {
        let known = runtimes.get(NAME);
        match known.as_ref().and_then(|guard| guard.0.as_ref().ok()) {
            Some(runtime) => !before.differs_in(after, &labels_of_interest(&runtime.spec.placement)),
            // A runtime that comes later may ask for whatever is on it now.
            None => before.is_like(after),
        }
    }
}

/// Labels, each `key=value` (neither half can hold a `=`), in order of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
struct Labels(Box<[Arc<str>]>);

impl NodeLabels for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|label| halves(label).0.cmp(key)).ok()?;
        Some(halves(&self.0[place]).1)
    }
}

fn halves(label: &str) -> (&str, &str) {
    label.split_once('=').unwrap_or((label, ""))
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Labels;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("labels")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut labels = Vec::with_capacity(map.size_hint().unwrap_or(128));
        let mut whole = String::new();
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((key, value)) = map.next_entry::<Text<'_>, Text<'_>>()? {
            whole.clear();
            whole.extend([&key.0, "=", &value.0]);
            labels.push(pool.one(&whole));
        }
        labels.sort_unstable_by(|one, other| halves(one).0.cmp(halves(other).0));
        Ok(Labels(labels.into_boxed_slice()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }
}

/// A text that is borrowed where it can be.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

static POOL: LazyLock<Mutex<Pool>> = LazyLock::new(Mutex::default);

/// Texts that are held once.
#[derive(Default)]
struct Pool {
    texts: HashSet<Arc<str>>,
    sweep_at: usize,
}

impl Pool {
    /// The smallest number of texts at which a sweep is worth its while.
    const FLOOR: usize = 1024;

    /// This text, as it is held already, or from now on.
    fn one(&mut self, text: &str) -> Arc<str> {
        if let Some(held) = self.texts.get(text) {
            return Arc::clone(held);
        }
        // Nodes come and go, and with them labels that only they have.
        if self.texts.len() >= self.sweep_at {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = (self.texts.len() * 2).max(Self::FLOOR);
        }
        let held: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&held));
        held
    }
}

mod wire {
    //! A node as the API server sends it, as far as it is read.

    use super::{Arc, Deserialize, Labels, ObjectMeta, POOL, PoisonError, Text};

    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Metadata {
        name: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        labels: Labels,
    }

    #[derive(Deserialize)]
    pub(super) struct Node<'a> {
        #[serde(default)]
        metadata: Metadata,
        #[serde(borrow, default)]
        status: Status<'a>,
    }

    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status<'a> {
        #[serde(borrow, default)]
        node_info: Info<'a>,
    }

    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Info<'a> {
        #[serde(borrow)]
        os_image: Option<Text<'a>>,
        #[serde(borrow)]
        architecture: Option<Text<'a>>,
    }

    impl From<Node<'_>> for super::Node {
        fn from(node: Node<'_>) -> Self {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            let mut one = |text: Option<Text<'_>>| -> Arc<str> { pool.one(text.as_ref().map_or("", |text| &text.0)) };
            let Metadata { name, uid, resource_version, labels } = node.metadata;
            Self {
                metadata: ObjectMeta { name, uid, resource_version, ..ObjectMeta::default() },
                labels,
                os_image: one(node.status.node_info.os_image),
                architecture: one(node.status.node_info.architecture),
            }
        }
    }
}

#[cfg(test)]
#[path = "nodes/tests.rs"]
mod tests;
