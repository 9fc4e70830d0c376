//! What an Application manages, as its status lists it.

use std::collections::BTreeSet;

use aicr_crds::application::Application;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde::Deserialize;

use super::super::asked::asked;
use crate::error::DriveError;

/// One entry of `status.resources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Managed {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    health: Health,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Health {
    status: String,
    message: String,
}

impl Managed {
    /// `Kind name` or `Kind namespace/name`.
    pub(super) fn shown(&self) -> String {
        shown(&self.kind, &self.namespace, &self.name)
    }

    /// The kind as the API server serves it; its plural is made of the kind, as controller-gen does.
    pub(super) fn resource(&self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(&self.group, &self.version, &self.kind))
    }

    /// Name of its CRD, were it a custom resource.
    pub(super) fn crd(&self) -> String {
        format!("{}.{}", self.resource().plural, self.group)
    }

    /// Whether it is this object of the group `apps`.
    pub(super) fn is_workload(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.group == "apps" && self.kind == kind && self.namespace == namespace && self.name == name
    }

    /// Whether it is what this reference names, of an object in that namespace.
    pub(super) fn owns(&self, owner: &OwnerReference, namespace: &str) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let within = self.namespace.is_empty() || self.namespace == namespace;
        within && self.group == group && self.kind == owner.kind && self.name == owner.name
    }

    /// What Argo CD says against its health, where it says it for each resource (A09).
    pub(super) fn unhealthy(&self) -> Option<String> {
        let Health { status, message } = &self.health;
        let words = if message.is_empty() { String::new() } else { format!(": {message}") };
        (!matches!(status.as_str(), "" | "Healthy")).then(|| format!("{}: {status}{words}", self.shown()))
    }
}

/// `Kind name` or `Kind namespace/name`.
pub(super) fn shown(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// Custom resources whose CRDs the release brings as well.
pub(super) fn of_own_crds(all: &[Managed]) -> impl Iterator<Item = &Managed> {
    let is_crd = |one: &&Managed| one.group == "apiextensions.k8s.io" && one.kind == "CustomResourceDefinition";
    let own: BTreeSet<&str> = all.iter().filter(is_crd).map(|one| one.name.as_str()).collect();
    all.iter().filter(move |one| own.contains(one.crd().as_str()))
}

/// Everything that this Application manages; the list is long and seldom needed, so no watch of ours keeps it.
pub(super) async fn managed(client: &Client, application: &Application) -> Result<Vec<Managed>, DriveError> {
    let namespace = application.metadata.namespace.as_deref().unwrap_or_default();
    let resource = ApiResource::erase::<Application>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let act = format!("get Application {}", application.name());
    let found = asked(act.clone(), api.get_opt(application.name())).await?;
    found.map_or(Ok(Vec::new()), |found| of(&found.data, act))
}

fn of(data: &serde_json::Value, act: String) -> Result<Vec<Managed>, DriveError> {
    let list = data.pointer("/status/resources").filter(|list| !list.is_null());
    let read = list.map(Vec::<Managed>::deserialize);
    read.transpose()
        .map(Option::unwrap_or_default)
        .map_err(|error| DriveError::Content { act, problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> serde_json::Value {
        json!({ "status": { "resources": [
            { "group": "nvidia.com", "version": "v1", "kind": "ClusterPolicy", "name": "cluster-policy", "status": "Synced" },
            { "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "gpu", "name": "gpu-operator",
              "status": "Synced", "health": { "status": "Progressing", "message": "waiting for rollout" } },
            { "version": "v1", "kind": "Service", "namespace": "gpu", "name": "x", "health": { "status": "Healthy" } },
        ] } })
    }

    #[test]
    fn what_an_application_manages_is_read_with_its_health_where_argo_cd_says_it() {
        let all = of(&status(), String::new()).unwrap();
        assert_eq!(all[0].shown(), "ClusterPolicy cluster-policy");
        assert_eq!(all[0].crd(), "clusterpolicies.nvidia.com");
        let said: Vec<String> = all.iter().filter_map(Managed::unhealthy).collect();
        assert_eq!(said, ["Deployment gpu/gpu-operator: Progressing: waiting for rollout"]);
        assert_eq!(of(&json!({}), String::new()).unwrap(), []);
        assert!(of(&json!({ "status": { "resources": "x" } }), String::new()).is_err());
    }

    /// B81.
    #[test]
    fn custom_resources_of_a_releases_own_crds_are_told_from_others() {
        let mut all = of(&status(), String::new()).unwrap();
        assert_eq!(of_own_crds(&all).count(), 0, "its CRD is somebody else's");
        let crd = |name: &str| Managed {
            group: "apiextensions.k8s.io".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            name: name.to_owned(),
            ..Managed::default()
        };
        all.extend([crd("nvidiadrivers.nvidia.com"), crd("clusterpolicies.nvidia.com")]);
        let own: Vec<String> = of_own_crds(&all).map(Managed::shown).collect();
        assert_eq!(own, ["ClusterPolicy cluster-policy"]);
    }

    #[test]
    fn an_owner_is_told_by_group_kind_and_name_within_its_namespace() {
        let all = of(&status(), String::new()).unwrap();
        let owner = |version: &str, kind: &str, name: &str| OwnerReference {
            api_version: version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..OwnerReference::default()
        };
        assert!(all[0].owns(&owner("nvidia.com/v1", "ClusterPolicy", "cluster-policy"), "gpu"));
        assert!(!all[0].owns(&owner("nvidia.com/v1", "ClusterPolicy", "another"), "gpu"));
        assert!(!all[1].owns(&owner("apps/v1", "Deployment", "gpu-operator"), "elsewhere"));
    }
}
