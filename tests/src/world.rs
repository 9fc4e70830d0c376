//! A control plane with both kinds, and a client that waits for each answer.

use std::future::Future;

use aicr_crds::{ClusterRuntime, RuntimeRollout, crd};
use aicr_lab::{Lab, Options};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::{conditions, wait};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Duration, timeout};

use crate::answer::Answer;
use crate::write::{self, Way};

/// Who creates objects here, and applies them again.
const MANAGER: &str = "somebody";
/// The longest that the server may take over anything asked of it here.
const BOUND: Duration = Duration::from_secs(30);

/// One of our kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ClusterRuntime`.
    Runtime,
    /// `RuntimeRollout`.
    Rollout,
}

impl Kind {
    fn of(object: &Value) -> Self {
        match object["kind"].as_str() {
            Some("ClusterRuntime") => Self::Runtime,
            Some("RuntimeRollout") => Self::Rollout,
            Some(_) | None => panic!("{object} is of no kind of ours"),
        }
    }
}

/// A control plane with both kinds. It ends with its value, also when a test panics.
pub struct World {
    client: Client,
    tokio: Runtime,
    lab: Lab,
}

impl World {
    /// Brings up etcd and an API server, and teaches it both kinds.
    pub fn with_both_kinds() -> Self {
        let lab = Lab::up(&Options::control_plane_only()).unwrap_or_else(|error| panic!("{error:?}"));
        let tokio = Runtime::new().unwrap_or_else(|error| panic!("start tokio: {error}"));
        let client = tokio.block_on(client(&lab)).unwrap_or_else(|error| panic!("connect: {error:?}"));
        let world = Self { client, tokio, lab };
        for crd in [crd::cluster_runtime(), crd::runtime_rollout()] {
            world.establish(&crd);
        }
        world
    }

    /// A CRD as the server has it, once it serves the kind.
    pub fn establish(&self, crd: &CustomResourceDefinition) -> CustomResourceDefinition {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = crd.name_any();
        self.wait(async {
            crds.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(crd)).await?;
            wait::await_condition(crds.clone(), &name, conditions::is_crd_established()).await.map_err(kube_error)?;
            crds.get(&name).await
        })
        .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Creates an object.
    pub fn create(&self, object: &Value) -> Answer {
        let params = PatchParams::apply(MANAGER).force();
        let patch = self.wait(self.api(Kind::of(object)).patch(name(object), &params, &Patch::Apply(object)));
        Answer::new(format!("create {}", name(object)), patch)
    }

    /// An object as it is stored.
    pub fn stored(&self, kind: Kind, name: &str) -> Value {
        Answer::new(format!("get {name}"), self.wait(self.api(kind).get(name))).accepted()
    }

    /// Changes a stored object's spec, one way or another.
    pub fn change(&self, kind: Kind, name: &str, way: Way, edit: impl FnOnce(&mut Value)) -> Answer {
        let before = self.stored(kind, name);
        let mut after = before.clone();
        edit(&mut after["spec"]);
        assert_ne!(before, after, "the test changes nothing");
        self.write(kind, name, way, &before, &after)
    }

    fn write(&self, kind: Kind, name: &str, way: Way, before: &Value, after: &Value) -> Answer {
        let api = self.api(kind);
        let plain = PatchParams::default();
        let result = match way {
            Way::Merge => self.wait(api.patch(name, &plain, &Patch::Merge(write::merge_patch(before, after)))),
            Way::JsonPatch => {
                let patch = serde_json::from_value(write::json_patch(before, after));
                let patch = patch.unwrap_or_else(|error| panic!("a JSON patch: {error}"));
                self.wait(api.patch(name, &plain, &Patch::Json::<()>(patch)))
            }
            Way::Apply => {
                let params = PatchParams::apply(MANAGER).force();
                self.wait(api.patch(name, &params, &Patch::Apply(write::applied(after))))
            }
            Way::Replace => {
                let whole = serde_json::from_value(after.clone());
                let whole: DynamicObject = whole.unwrap_or_else(|error| panic!("an object: {error}"));
                self.wait(api.replace(name, &PostParams::default(), &whole))
            }
        };
        Answer::new(format!("{way:?} of {name}"), result)
    }

    /// Writes to the status subresource with a merge patch of the whole object.
    pub fn write_status(&self, kind: Kind, name: &str, body: &Value) -> Answer {
        let api = self.api(kind);
        let result = self.wait(api.patch_status(name, &PatchParams::default(), &Patch::Merge(body)));
        Answer::new(format!("status of {name}"), result)
    }

    /// Makes sure that an object is not there.
    pub fn delete(&self, kind: Kind, name: &str) {
        match self.wait(self.api(kind).delete(name, &DeleteParams::default())) {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("delete {name}: {error}"),
        }
    }

    /// What kubectl prints.
    pub fn kubectl(&self, args: &[&str]) -> String {
        self.lab.kubectl(args).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        let resource = match kind {
            Kind::Runtime => ApiResource::erase::<ClusterRuntime>(&()),
            Kind::Rollout => ApiResource::erase::<RuntimeRollout>(&()),
        };
        Api::all_with(self.client.clone(), &resource)
    }

    fn wait<T>(&self, request: impl Future<Output = T>) -> T {
        let answer = self.tokio.block_on(async { timeout(BOUND, request).await });
        answer.unwrap_or_else(|_| panic!("no answer within {BOUND:?}"))
    }
}

async fn client(lab: &Lab) -> Result<Client, Box<dyn std::error::Error>> {
    let kubeconfig = Kubeconfig::read_from(lab.layout().admin_kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn kube_error(error: wait::Error) -> kube::Error {
    kube::Error::Service(Box::new(error))
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_else(|| panic!("{object} has no name"))
}

/// A status that says one thing.
pub fn status(field: &str, value: impl Into<Value>) -> Value {
    json!({"status": {field: value.into()}})
}
