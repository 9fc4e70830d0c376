//! The API server: which cluster and user, reading a rollout and its report, patching a rollout.

use std::{path::Path, time::Duration};

use aicr_crds::{RuntimeRollout, rollout::Person};
use k8s_openapi::api::{authentication::v1::SelfSubjectReview, core::v1::ConfigMap};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
    core::Status,
};

use crate::change::Change;

/// Bound of each answer: a person waits for it.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The most groups that a rollout records of a person.
const GROUP_LIMIT: usize = 64;

const FIELD_MANAGER: &str = "kubectl-aicr";

/// Why the API server did not do it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// It said no; the text is its message alone.
    #[error("{0}")]
    Denied(String),
    /// The object changed since it was read.
    #[error("{0}")]
    Conflict(String),
    /// It could not be asked, or its answer not be read.
    #[error("{act}")]
    Call {
        /// What was being done.
        act: String,
        /// Why not.
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
        let client = Client::try_from(config).map_err(|source| failed("connect to the API server", source))?;
        Ok(Self { client, target })
    }

    /// The rollout of this name.
    pub(crate) async fn rollout(&self, name: &str) -> Result<RuntimeRollout, ClientError> {
        let api = Api::<RuntimeRollout>::all(self.client.clone());
        api.get(name).await.map_err(|source| failed(&format!("read rollout {name}"), source))
    }

    /// Patches the rollout of this name; the answer is the object as it now is.
    pub(crate) async fn patch(&self, name: &str, change: &Change) -> Result<RuntimeRollout, ClientError> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let api = Api::<RuntimeRollout>::all(self.client.clone());
        let patched = api.patch(name, &params, &Patch::Merge(change.body())).await;
        patched.map_err(|source| failed(&format!("patch rollout {name}"), source))
    }

    /// The ConfigMap of this name, if it is there.
    pub(crate) async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<ConfigMap>, ClientError> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        api.get_opt(name).await.map_err(|source| failed(&format!("read ConfigMap {namespace}/{name}"), source))
    }

    /// Who asks, as the API server sees them: what `kubectl auth whoami` prints.
    pub(crate) async fn whoami(&self) -> Result<Person, ClientError> {
        let api = Api::<SelfSubjectReview>::all(self.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.map_err(|source| failed("ask the API server who you are", source))?;
        let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
        let groups = user.groups.unwrap_or_default().into_iter().take(GROUP_LIMIT).collect();
        Ok(Person { username: user.username.unwrap_or_default(), groups })
    }
}

fn target(kubeconfig: &Kubeconfig, context: Option<&str>) -> Target {
    let context = context.or(kubeconfig.current_context.as_deref()).unwrap_or_default();
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| context.cluster.clone());
    Target { context: context.to_owned(), cluster: cluster.unwrap_or_default(), server: String::new() }
}

fn failed(act: &str, source: kube::Error) -> ClientError {
    if let kube::Error::Api(status) = &source {
        if status.code == 409 { ClientError::Conflict(message(status)) } else { ClientError::Denied(message(status)) }
    } else {
        ClientError::Call { act: act.to_owned(), source: Box::new(source) }
    }
}

/// The message for the person: what a webhook said, without the API server's words around it.
fn message(status: &Status) -> String {
    // A path that the API server does not serve is answered in plain text, without details.
    if status.code == 404 && status.details.is_none() {
        return "the API server does not serve RuntimeRollouts (operator.aicr.run/v1alpha1); is the operator installed in this cluster?".into();
    }
    let text = status.message.as_str();
    let denied = text.strip_prefix("admission webhook \"").and_then(|rest| rest.split_once("\" denied the request: "));
    match denied {
        Some((_, said)) => said.to_owned(),
        None if text.is_empty() => format!("the API server answered {} {}", status.code, status.reason),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;

    use super::*;

    fn status(code: u16, message: &str) -> Box<Status> {
        Box::new(Status::failure(message, "Forbidden").with_code(code))
    }

    #[test]
    fn a_denial_is_its_message_alone() {
        let text = "admission webhook \"rollouts.operator.aicr.run\" denied the request: you asked for this change\nlet another approve";
        let error = failed("patch rollout r", kube::Error::Api(status(403, text)));
        assert!(matches!(error, ClientError::Denied(said) if said == "you asked for this change\nlet another approve"));
    }

    #[test]
    fn other_refusals_keep_their_words() {
        assert_eq!(
            message(&status(422, "RuntimeRollout \"r\" is invalid: spec")),
            "RuntimeRollout \"r\" is invalid: spec"
        );
        assert_eq!(message(&status(500, "")), "the API server answered 500 Forbidden");
    }

    #[test]
    fn a_conflict_is_told_apart() {
        assert!(matches!(failed("", kube::Error::Api(status(409, "modified"))), ClientError::Conflict(_)));
    }

    #[test]
    fn a_cluster_without_the_operator_is_named_as_such() {
        assert!(message(&status(404, "404 page not found")).contains("is the operator installed"));
        let mut absent = status(404, "runtimerollouts.operator.aicr.run \"r\" not found");
        absent.details = Some(StatusDetails {
            name: "r".into(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        });
        assert_eq!(message(&absent), "runtimerollouts.operator.aicr.run \"r\" not found");
    }

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
