//! Events as objects of `events.k8s.io/v1`; what they say was decided elsewhere.

use aicr_crds::{ClusterRuntime, RuntimeRollout};
use aicr_decide::report::EventNote;
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::Resource;

/// Where Events of cluster-scoped objects lie.
const NAMESPACE: &str = "default";
/// Who reports, as a qualified name.
const CONTROLLER: &str = "operator.aicr.run/aicr-operator";

/// What an Event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About<'a> {
    /// The runtime.
    Runtime(&'a ClusterRuntime),
    /// A rollout.
    Rollout(&'a RuntimeRollout),
    /// An Application of Argo CD's.
    Application {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
        /// Its UID.
        uid: &'a str,
    },
}

impl About<'_> {
    fn reference(self) -> ObjectReference {
        // kubectl describe finds an Event of a cluster-scoped object only by the UID (K43).
        match self {
            Self::Runtime(runtime) => reference(runtime),
            Self::Rollout(rollout) => reference(rollout),
            Self::Application { namespace, name, uid } => ObjectReference {
                api_version: Some("argoproj.io/v1alpha1".to_owned()),
                kind: Some("Application".to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                uid: Some(uid.to_owned()),
                ..ObjectReference::default()
            },
        }
    }

    /// Where its Events lie: beside it, and for cluster-scoped objects in `default`.
    pub(crate) fn namespace(self) -> String {
        match self {
            Self::Runtime(_) | Self::Rollout(_) => NAMESPACE.to_owned(),
            Self::Application { namespace, .. } => namespace.to_owned(),
        }
    }
}

fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: object.meta().name.clone(),
        uid: object.meta().uid.clone(),
        resource_version: object.meta().resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The object of one Event.
pub(crate) fn body(about: &About<'_>, note: &EventNote, instance: &str, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(note.name.clone()),
            namespace: Some(about.namespace()),
            ..ObjectMeta::default()
        },
        action: Some("Reconcile".to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(note.note.clone()),
        reason: Some(note.reason.to_string()),
        regarding: Some(about.reference()),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(instance.chars().take(128).collect()),
        type_: Some(note.reason.event_type().as_str().to_owned()),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use aicr_crds::reason::EventReason;

    use super::*;

    #[test]
    fn an_event_has_what_the_api_server_requires_and_what_describe_looks_for() {
        let runtime: ClusterRuntime = serde_json::from_value(serde_json::json!({
            "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime",
            "metadata": { "name": "cluster", "uid": "u-1" },
            "spec": { "intent": "training", "placement": { "accelerated": { "nodeSelector": { "a": "b" } } } },
        }))
        .unwrap();
        let note = EventNote::new("u-1", EventReason::Stalled, "x", "it stalls");
        let event = body(&About::Runtime(&runtime), &note, &"i".repeat(200), Timestamp::UNIX_EPOCH);
        let regarding = event.regarding.unwrap();
        assert_eq!(regarding.uid.as_deref(), Some("u-1"));
        assert_eq!(regarding.kind.as_deref(), Some("ClusterRuntime"));
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.reporting_instance.unwrap().len(), 128);
        assert!(event.event_time.is_some() && event.action.is_some());
    }
}
