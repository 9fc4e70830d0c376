//! `DaemonSets`: on how many nodes the present revision runs, counted by owner and revision hash and never by labels.

use std::collections::BTreeSet;

use aicr_decide::facts::DaemonSetSeen;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{ContainerStatus, Pod, PodSpec},
};
use kube::core::ObjectMeta;

use super::managed::Managed;

/// Label with the hash of a revision, on the revision and on its pods.
const HASH: &str = "controller-revision-hash";
/// Pods that are named of one set.
const NAMED: usize = 5;

/// Whether it belongs to the release: managed by its Application, or made by one of the objects that are.
pub(super) fn is_of(set: &DaemonSet, managed: &[Managed]) -> bool {
    let (namespace, name) = place(&set.metadata);
    let owners = set.metadata.owner_references.iter().flatten();
    managed.iter().any(|one| one.is_workload("DaemonSet", namespace, name))
        || owners.into_iter().any(|owner| managed.iter().any(|one| one.owns(owner, namespace)))
}

/// Whether its pods are replaced only when somebody deletes them; then only they tell what runs (A54).
pub(super) fn is_on_delete(set: &DaemonSet) -> bool {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete")
}

/// What its status says; of a generation that its controller has not seen, nothing is taken over.
pub(super) fn said(set: &DaemonSet) -> DaemonSetSeen {
    let (namespace, name) = place(&set.metadata);
    let status = set.status.clone().unwrap_or_default();
    let current = status.observed_generation.unwrap_or_default() >= set.metadata.generation.unwrap_or_default();
    let desired = i64::from(status.desired_number_scheduled);
    DaemonSetSeen {
        name: format!("{namespace}/{name}"),
        desired: if current { desired } else { desired.max(1) },
        updated: if current { i64::from(status.updated_number_scheduled.unwrap_or_default()) } else { 0 },
        ready: i64::from(status.number_ready),
        pods: Vec::new(),
    }
}

/// Whether there is anything to tell of its pods.
pub(super) fn is_behind(seen: &DaemonSetSeen) -> bool {
    seen.updated < seen.desired || seen.ready < seen.desired
}

/// Only what is read of a pod: there may be one on each of thousands of nodes.
pub(super) fn slim(pod: Pod) -> Pod {
    let ObjectMeta { name, labels, owner_references, deletion_timestamp, .. } = pod.metadata;
    let metadata = ObjectMeta { name, labels, owner_references, deletion_timestamp, ..ObjectMeta::default() };
    let node_name = pod.spec.and_then(|spec| spec.node_name);
    Pod { metadata, spec: Some(PodSpec { node_name, ..PodSpec::default() }), status: pod.status }
}

/// The same with what its pods say. Of the two counts of an `OnDelete` set the smaller one: either may lag.
pub(super) fn counted(
    set: &DaemonSet,
    seen: DaemonSetSeen,
    revisions: &[ControllerRevision],
    pods: &[Pod],
) -> DaemonSetSeen {
    let mine: Vec<&Pod> = pods.iter().filter(|pod| is_owned(&pod.metadata, set)).collect();
    let updated = if is_on_delete(set) { seen.updated.min(present(set, revisions, &mine)) } else { seen.updated };
    let unready = mine.iter().filter_map(|pod| unready(pod)).take(NAMED).collect();
    DaemonSetSeen { updated, pods: unready, ..seen }
}

/// Nodes with a pod of the newest revision.
fn present(set: &DaemonSet, revisions: &[ControllerRevision], mine: &[&Pod]) -> i64 {
    let own = revisions.iter().filter(|revision| is_owned(&revision.metadata, set));
    let newest = own.max_by_key(|revision| revision.revision);
    let Some(hash) = newest.and_then(|revision| hash(&revision.metadata)) else { return 0 };
    let nodes: BTreeSet<&str> = mine
        .iter()
        .filter(|pod| hash_is(&pod.metadata, hash) && pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref())
        .collect();
    i64::try_from(nodes.len()).unwrap_or(i64::MAX)
}

fn hash(metadata: &ObjectMeta) -> Option<&str> {
    metadata.labels.as_ref()?.get(HASH).map(String::as_str)
}

fn hash_is(metadata: &ObjectMeta, wanted: &str) -> bool {
    hash(metadata) == Some(wanted)
}

fn is_owned(metadata: &ObjectMeta, set: &DaemonSet) -> bool {
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    !uid.is_empty() && metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// `pod x on node n1: Init:CrashLoopBackOff`, for one that is not ready.
fn unready(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    if ready {
        return None;
    }
    let waits = |statuses: Option<&Vec<ContainerStatus>>| statuses.into_iter().flatten().find_map(waiting);
    let why = status
        .and_then(|status| waits(status.init_container_statuses.as_ref()).map(|why| format!("Init:{why}")))
        .or_else(|| status.and_then(|status| waits(status.container_statuses.as_ref())))
        .or_else(|| status.and_then(|status| status.reason.clone().or_else(|| status.phase.clone())))
        .unwrap_or_else(|| "Unknown".to_owned());
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("none");
    Some(format!("pod {} on node {node}: {why}", pod.metadata.name.as_deref().unwrap_or_default()))
}

/// Why a container does not run: it waits, or ended badly.
fn waiting(status: &ContainerStatus) -> Option<String> {
    let state = status.state.as_ref()?;
    let waits = state.waiting.as_ref().and_then(|waiting| waiting.reason.clone());
    let ended = state.terminated.as_ref().filter(|end| end.exit_code != 0);
    waits.filter(|why| why != "PodInitializing").or_else(|| ended.map(|end| format!("exit code {}", end.exit_code)))
}

pub(super) fn place(metadata: &ObjectMeta) -> (&str, &str) {
    (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn driver(status: &Value) -> DaemonSet {
        of(json!({
            "metadata": { "namespace": "gpu", "name": "driver", "uid": "u-set", "generation": 3,
                "ownerReferences": [{ "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "p", "uid": "u-p" }] },
            "spec": { "selector": { "matchLabels": { "app": "driver" } }, "updateStrategy": { "type": "OnDelete" },
                "template": {} },
            "status": status,
        }))
    }

    fn settled() -> Value {
        json!({ "observedGeneration": 3, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
            "numberMisscheduled": 0, "numberReady": 3, "updatedNumberScheduled": 3 })
    }

    fn revision(number: i64, hash: &str, owner: &str) -> ControllerRevision {
        of(json!({ "revision": number, "metadata": { "name": format!("driver-{hash}"),
            "labels": { HASH: hash }, "ownerReferences": [owner_of(owner)] } }))
    }

    fn owner_of(uid: &str) -> Value {
        json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "driver", "uid": uid, "controller": true })
    }

    fn pod(name: &str, hash: &str, owner: &str, status: &Value) -> Pod {
        of(json!({ "metadata": { "name": name, "labels": { HASH: hash }, "ownerReferences": [owner_of(owner)] },
            "spec": { "nodeName": format!("node-{name}"), "containers": [] }, "status": status }))
    }

    fn ready() -> Value {
        json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] })
    }

    /// B72: three desired, three ready, and one of the present revision; the pods are told by their owner.
    #[test]
    fn an_on_delete_set_is_counted_by_owner_and_revision_hash() {
        let set = driver(&settled());
        let revisions = [revision(1, "old", "u-set"), revision(2, "new", "u-set"), revision(9, "else", "u-other")];
        let pods = [
            pod("a", "new", "u-set", &ready()),
            pod("b", "old", "u-set", &ready()),
            pod("c", "old", "u-set", &ready()),
            pod("d", "new", "u-other", &ready()),
        ];
        let pods: Vec<Pod> = pods.into_iter().map(slim).collect();
        let seen = counted(&set, said(&set), &revisions, &pods);
        assert_eq!((seen.desired, seen.updated, seen.ready), (3, 1, 3));
        assert!(is_behind(&seen) && seen.pods.is_empty());
        assert_eq!(counted(&set, said(&set), &[], &pods).updated, 0, "no revision is known");
    }

    /// B74: node and state of what does not run.
    #[test]
    fn a_pod_that_does_not_run_is_named_with_its_node_and_why() {
        let set = driver(&settled());
        let crash = json!({ "phase": "Pending", "initContainerStatuses": [{ "name": "i", "image": "", "imageID": "",
            "ready": false, "restartCount": 4, "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] });
        let pods = [pod("a", "new", "u-set", &crash), pod("b", "new", "u-set", &json!({ "phase": "Pending" }))];
        let seen = counted(&set, said(&set), &[revision(2, "new", "u-set")], &pods);
        assert_eq!(seen.pods, ["pod a on node node-a: Init:CrashLoopBackOff", "pod b on node node-b: Pending"]);
    }

    #[test]
    fn a_generation_that_its_controller_has_not_seen_counts_as_not_updated() {
        let mut status = settled();
        status["observedGeneration"] = json!(2);
        assert_eq!(said(&driver(&status)).updated, 0);
        let fresh = said(&driver(&Value::Null));
        assert!(is_behind(&fresh), "a set without status is not ready");
    }

    #[test]
    fn a_set_belongs_to_the_release_by_its_place_or_by_its_owner() {
        let policy: Managed =
            of(json!({ "group": "nvidia.com", "version": "v1", "kind": "ClusterPolicy", "name": "p" }));
        let own: Managed =
            of(json!({ "group": "apps", "version": "v1", "kind": "DaemonSet", "namespace": "gpu", "name": "driver" }));
        let other: Managed = of(json!({ "group": "nvidia.com", "kind": "ClusterPolicy", "name": "q" }));
        let set = driver(&settled());
        assert!(is_of(&set, &[policy]) && is_of(&set, &[own]) && !is_of(&set, &[other]));
    }
}
