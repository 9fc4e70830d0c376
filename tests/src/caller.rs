//! A client of the API server for what needs many requests, or bodies that kubectl does not send.

use std::future::Future;
use std::path::Path;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Duration, timeout};

use crate::Stage;

/// The longest that one request may take: the API server itself gives a webhook five seconds.
const BOUND: Duration = Duration::from_secs(20);

/// Somebody who asks the API server in a row.
pub struct Caller {
    client: Client,
    tokio: Runtime,
}

impl Stage {
    /// The administrator, acting as an account where one is named.
    pub fn caller(&self, account: Option<&str>) -> Caller {
        let tokio = Runtime::new().unwrap_or_else(|error| panic!("start tokio: {error}"));
        let path = self.lab.layout().admin_kubeconfig();
        let client = tokio.block_on(client(&path, account)).unwrap_or_else(|error| panic!("connect: {error:?}"));
        Caller { client, tokio }
    }
}

impl Caller {
    /// A merge patch of an object; `api` names kind and place, as in `("argoproj.io/v1alpha1", "Application", Some("argocd"))`.
    ///
    /// # Errors
    /// What the API server said.
    pub fn patch(&self, api: Place<'_>, name: &str, params: &PatchParams, patch: &Value) -> Result<Value, kube::Error> {
        self.wait(self.api(api).patch(name, params, &Patch::Merge(patch))).map(value)
    }

    /// A merge patch of an object's status.
    ///
    /// # Errors
    /// What the API server said.
    pub fn patch_status(&self, api: Place<'_>, name: &str, patch: &Value) -> Result<Value, kube::Error> {
        self.wait(self.api(api).patch_status(name, &PatchParams::default(), &Patch::Merge(patch))).map(value)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// What the API server said.
    pub fn create(&self, api: Place<'_>, params: &PostParams, object: &Value) -> Result<Value, kube::Error> {
        let object = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("an object: {error}"));
        self.wait(self.api(api).create(params, &object)).map(value)
    }

    /// Whether somebody may do something, as the API server's authorizer says.
    pub fn may(&self, user: &str, groups: &[&str], attributes: &Value) -> bool {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
            "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
        });
        let place = ("authorization.k8s.io/v1", "SubjectAccessReview", None);
        let answer = self.create(place, &PostParams::default(), &review);
        let answer = answer.unwrap_or_else(|error| panic!("{attributes}: {error}"));
        answer["status"]["allowed"].as_bool().unwrap_or_default()
    }

    fn api(&self, (version, kind, namespace): Place<'_>) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let plural = if kind.ends_with('y') { kind.replace('y', "ies") } else { format!("{kind}s") };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
            kind: kind.to_owned(),
            plural: plural.to_lowercase(),
        };
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn wait<T>(&self, request: impl Future<Output = T>) -> T {
        let answer = self.tokio.block_on(async { timeout(BOUND, request).await });
        answer.unwrap_or_else(|_| panic!("no answer within {BOUND:?}"))
    }
}

/// Our rollouts.
pub const ROLLOUT: Place<'_> = ("operator.aicr.run/v1alpha1", "RuntimeRollout", None);
/// Our runtime.
pub const RUNTIME: Place<'_> = ("operator.aicr.run/v1alpha1", "ClusterRuntime", None);

/// An API version, a kind, and a namespace where it has one.
pub type Place<'a> = (&'a str, &'a str, Option<&'a str>);

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

async fn client(path: &Path, account: Option<&str>) -> Result<Client, Box<dyn std::error::Error>> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.impersonate = account.map(str::to_owned);
    Ok(Client::try_from(config)?)
}
