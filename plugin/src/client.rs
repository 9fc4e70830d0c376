//! The API server: which cluster and user, reading the runtime, its rollouts and their reports, patching a rollout.

use std::{path::Path, time::Duration};

use aicr_crds::{ClusterRuntime, RuntimeRollout, application::Application, keys::label, rollout::Person, runtime};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, ListParams, ObjectList, Patch, PatchParams, PostParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tower::util::MapResponseLayer;

use crate::{
    answer::{self, Answer},
    change::Change,
    warnings,
};

/// Bound of each answer: a person waits for it.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The most groups that a rollout records of a person.
const GROUP_LIMIT: usize = 64;

const FIELD_MANAGER: &str = "kubectl-aicr";

/// Whether the API server stores what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It does.
    Stored,
    /// It judges it, admission included, and stores nothing.
    Judged,
}

/// Why the API server did not do it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// It said no; the text is its message alone.
    #[error("{0}")]
    Denied(String),
    /// The object changed since it was read, or admission has not seen it yet.
    #[error("{0}")]
    Conflict(String),
    /// It could not: not found, not logged in, overloaded.
    #[error("{0}")]
    Answered(String),
    /// It could not be asked.
    #[error("{act} at {server}")]
    Call {
        /// What was being done.
        act: String,
        /// URL of the API server.
        server: String,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
    /// Its answer is in words of another release.
    #[error("{act}: the answer is in words that this plugin does not know; use the plugin of the operator's release")]
    Unreadable {
        /// What was being done.
        act: String,
        /// Which words.
        #[source]
        source: Box<kube::Error>,
    },
    /// The kubeconfig does not lead to a cluster.
    #[error("read the kubeconfig")]
    Kubeconfig(#[from] Box<KubeconfigError>),
}

/// A cluster as a user of it.
pub(crate) struct Cluster {
    client: Client,
    /// Where it is and who asks, as the kubeconfig calls them.
    pub(crate) target: Target,
}

/// Names of the kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Context.
    pub(crate) context: String,
    /// Cluster.
    pub(crate) cluster: String,
    /// URL of the API server.
    pub(crate) server: String,
}

impl Cluster {
    /// Connects as the kubeconfig says: this file, or `$KUBECONFIG`, or the one at home; this context, or its current one.
    pub(crate) async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, ClientError> {
        let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from).map_err(Box::new)?;
        let mut target = target(&read, context);
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let mut config = Config::from_custom_kubeconfig(read, &options).await.map_err(Box::new)?;
        target.server = config.cluster_url.to_string();
        config.read_timeout = Some(READ_TIMEOUT);
        // A person can ask again; a write must not be sent fifteen times behind their back.
        config.default_retry = false;
        let built = ClientBuilder::try_from(config);
        let built = built.map_err(|source| failed("connect to the API server", &target.server, source))?;
        let client = built.with_layer(&MapResponseLayer::new(warnings::show)).build();
        Ok(Self { client, target })
    }

    /// The rollout of this name.
    pub(crate) async fn rollout(&self, name: &str) -> Result<RuntimeRollout, ClientError> {
        let api = Api::<RuntimeRollout>::all(self.client.clone());
        api.get(name).await.map_err(|source| self.failed(&format!("read rollout {name}"), source))
    }

    /// Every rollout, in whatever words a newer operator wrote it.
    pub(crate) async fn rollouts(&self) -> Result<Vec<DynamicObject>, ClientError> {
        let resource = ApiResource::erase::<RuntimeRollout>(&());
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        let listed = api.list(&ListParams::default()).await;
        Ok(listed.map_err(|source| self.failed("list the rollouts", source))?.items)
    }

    /// The one runtime, if it is there.
    pub(crate) async fn runtime(&self) -> Result<Option<DynamicObject>, ClientError> {
        let resource = ApiResource::erase::<ClusterRuntime>(&());
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        let found = api.get_opt(runtime::NAME).await;
        found.map_err(|source| self.failed("read the ClusterRuntime", source))
    }

    /// Patches the rollout of this name; the answer is the object as it now is, or would be.
    pub(crate) async fn patch(
        &self,
        name: &str,
        change: &Change,
        effect: Effect,
    ) -> Result<RuntimeRollout, ClientError> {
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            dry_run: effect == Effect::Judged,
            ..PatchParams::default()
        };
        let api = Api::<RuntimeRollout>::all(self.client.clone());
        let patched = api.patch(name, &params, &Patch::Merge(change.body())).await;
        patched.map_err(|source| self.failed(&format!("patch rollout {name}"), source))
    }

    /// The ConfigMap of this name, if it is there.
    pub(crate) async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<ConfigMap>, ClientError> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        api.get_opt(name).await.map_err(|source| self.failed(&format!("read ConfigMap {namespace}/{name}"), source))
    }

    /// The operator's Applications of all namespaces; none where the person may not list them or Argo CD is not there.
    pub(crate) async fn applications(&self) -> Result<Vec<Application>, ClientError> {
        let api = Api::<Application>::all(self.client.clone());
        let ours = format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_VALUE);
        self.allowed("list the Applications", api.list(&ListParams::default().labels(&ours)).await)
    }

    /// The Secrets of a namespace that `labels` selects; none where the person may not list them.
    pub(crate) async fn secrets(&self, namespace: &str, labels: &str) -> Result<Vec<Secret>, ClientError> {
        let api = Api::<Secret>::namespaced(self.client.clone(), namespace);
        let act = format!("list the Secrets of {namespace}");
        self.allowed(&act, api.list(&ListParams::default().labels(labels)).await)
    }

    /// What was listed; nothing where it is not the person's to see, or not there.
    fn allowed<K: Clone>(&self, act: &str, listed: kube::Result<ObjectList<K>>) -> Result<Vec<K>, ClientError> {
        match listed {
            Ok(list) => Ok(list.items),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(Vec::new()),
            Err(source) => Err(self.failed(act, source)),
        }
    }

    /// Who asks, as the API server sees them: what `kubectl auth whoami` prints.
    pub(crate) async fn whoami(&self) -> Result<Person, ClientError> {
        let api = Api::<SelfSubjectReview>::all(self.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.map_err(|source| self.failed("ask the API server who you are", source))?;
        let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
        let groups = user.groups.unwrap_or_default().into_iter().take(GROUP_LIMIT).collect();
        Ok(Person { username: user.username.unwrap_or_default(), groups })
    }

    fn failed(&self, act: &str, source: kube::Error) -> ClientError {
        failed(act, &self.target.server, source)
    }
}

fn target(kubeconfig: &Kubeconfig, context: Option<&str>) -> Target {
    let context = context.or(kubeconfig.current_context.as_deref()).unwrap_or_default();
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| context.cluster.clone());
    Target { context: context.to_owned(), cluster: cluster.unwrap_or_default(), server: String::new() }
}

fn failed(act: &str, server: &str, source: kube::Error) -> ClientError {
    let act = act.to_owned();
    if let kube::Error::Api(status) = &source {
        match answer::read(status) {
            Answer::Denied(text) => ClientError::Denied(text),
            Answer::Conflict(text) => ClientError::Conflict(text),
            Answer::Other(text) => ClientError::Answered(text),
        }
    } else if matches!(source, kube::Error::SerdeError(_)) {
        ClientError::Unreadable { act, source: Box::new(source) }
    } else {
        ClientError::Call { act, server: server.to_owned(), source: Box::new(source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_named_as_the_kubeconfig_names_it() {
        let text = "{apiVersion: v1, kind: Config, current-context: one, contexts: [{name: one, context: {cluster: a, user: u}}, {name: two, context: {cluster: b, user: u}}]}";
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let names = |context| {
            let target = target(&kubeconfig, context);
            (target.context, target.cluster)
        };
        assert_eq!(names(None), ("one".into(), "a".into()));
        assert_eq!(names(Some("two")), ("two".into(), "b".into()));
    }
}
