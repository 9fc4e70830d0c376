//! Lists of the API server: paged, bounded, and cut down to what belongs to the release.

use std::{convert::identity, fmt::Debug};

use aicr_decide::facts::DaemonSetSeen;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apps::v1::{ControllerRevision, DaemonSet, Deployment, StatefulSet},
    core::v1::Service,
};
use kube::{
    Api, Client, Resource,
    api::ListParams,
    core::{NamespaceResourceScope, Selector},
};
use serde::de::DeserializeOwned;

use super::{
    super::asked::asked,
    managed::Managed,
    sets::{self, place},
    stuck::guards,
};
use crate::error::DriveError;

/// Objects that one page holds.
const PAGE: u32 = 250;
/// Pages that are read of one list: a pod on each of 10,000 nodes, and some that are on their way.
const PAGES: usize = 48;

/// Workloads of a release in one namespace.
pub(super) struct Workloads {
    pub(super) deployments: Vec<Deployment>,
    pub(super) stateful_sets: Vec<StatefulSet>,
    pub(super) daemon_sets: Vec<DaemonSet>,
}

/// Asks for lists.
#[derive(Clone, Copy)]
pub(super) struct Lists<'a> {
    pub(super) client: &'a Client,
}

impl Lists<'_> {
    /// The release's workloads in a namespace, `DaemonSets` that its custom resources own included.
    pub(super) async fn workloads(self, namespace: &str, managed: &[Managed]) -> Result<Workloads, DriveError> {
        let is = |kind: &str, metadata: &kube::core::ObjectMeta| {
            let (namespace, name) = place(metadata);
            managed.iter().any(|one| one.is_workload(kind, namespace, name))
        };
        let has = |kind: &str| managed.iter().any(|one| one.group == "apps" && one.kind == kind);
        let mut all = Workloads { deployments: Vec::new(), stateful_sets: Vec::new(), daemon_sets: Vec::new() };
        if has("Deployment") {
            all.deployments = self.all(namespace, ListParams::default()).await?;
            all.deployments.retain(|one: &Deployment| is("Deployment", &one.metadata));
        }
        if has("StatefulSet") {
            all.stateful_sets = self.all(namespace, ListParams::default()).await?;
            all.stateful_sets.retain(|one: &StatefulSet| is("StatefulSet", &one.metadata));
        }
        all.daemon_sets = self.all(namespace, ListParams::default()).await?;
        all.daemon_sets.retain(|one| sets::is_of(one, managed));
        Ok(all)
    }

    /// A `DaemonSet` with what its pods say, where they are needed.
    pub(super) async fn counted(self, set: &DaemonSet) -> Result<DaemonSetSeen, DriveError> {
        let seen = sets::said(set);
        let on_delete = sets::is_on_delete(set);
        if !on_delete && !sets::is_behind(&seen) {
            return Ok(seen);
        }
        let (namespace, name) = place(&set.metadata);
        let selector = set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
        let selector = Selector::try_from(selector).map_err(|error| DriveError::Content {
            act: format!("read the selector of DaemonSet {namespace}/{name}"),
            problem: error.to_string(),
        })?;
        // The selector never changes and every pod of the set matches it; whose they are is told by their owner.
        let params = ListParams::default().labels_from(&selector);
        let pods =
            pages(&Api::namespaced(self.client.clone(), namespace), namespace, params.clone(), sets::slim).await?;
        let revisions: Vec<ControllerRevision> =
            if on_delete { self.all(namespace, params).await? } else { Vec::new() };
        Ok(sets::counted(set, seen, &revisions, &pods))
    }

    /// Webhooks that refuse the writes of a deletion, since their Service is gone.
    pub(super) async fn absent_guards(self, managed: &[Managed]) -> Result<Vec<String>, DriveError> {
        let validating: Vec<ValidatingWebhookConfiguration> =
            pages(&Api::all(self.client.clone()), "cluster", ListParams::default(), identity).await?;
        let mutating: Vec<MutatingWebhookConfiguration> =
            pages(&Api::all(self.client.clone()), "cluster", ListParams::default(), identity).await?;
        let mut absent = Vec::new();
        for guard in guards(&validating, &mutating, managed) {
            let api: Api<Service> = Api::namespaced(self.client.clone(), &guard.namespace);
            let act = format!("get Service {}/{}", guard.namespace, guard.service);
            if asked(act, api.get_metadata_opt(&guard.service)).await?.is_none() {
                absent.push(guard.absent());
            }
        }
        Ok(absent)
    }

    async fn all<K>(self, namespace: &str, params: ListParams) -> Result<Vec<K>, DriveError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        pages(&Api::namespaced(self.client.clone(), namespace), namespace, params, identity).await
    }
}

/// All pages, each object cut down as it comes.
async fn pages<K>(api: &Api<K>, place: &str, params: ListParams, slim: fn(K) -> K) -> Result<Vec<K>, DriveError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let act = format!("list {} of {place}", K::plural(&()));
    let mut params = params.limit(PAGE);
    let mut all = Vec::new();
    for _ in 0..PAGES {
        let page = asked(act.clone(), api.list(&params)).await?;
        all.extend(page.items.into_iter().map(slim));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            None => return Ok(all),
            Some(token) => params = params.continue_token(&token),
        }
    }
    Err(DriveError::Content { act, problem: format!("more than {} objects", all.len()) })
}
