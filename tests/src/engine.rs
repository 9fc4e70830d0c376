//! The whole drive loop on a real API server, with an Argo CD and an approver played by the test.

pub mod audit;
pub mod crashes;
pub mod ecr;
pub mod figures;
mod furniture;
pub mod operator;
pub mod people;
pub mod plans;
pub mod player;
pub mod process;
pub mod sight;
pub mod story;
pub mod wire;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aicr_crds::ClusterRuntime;
use aicr_crds::plan::Plan;
use aicr_drive::DriveSettings;
use aicr_lab::{Lab, Options};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use audit::Audit;
use furniture::{clear, furnish, runtime};
pub use operator::Operator;
use operator::{ENGINE_NAMESPACE, NAMESPACE};
pub use people::Approver;
use player::Player;
pub use sight::Sight;
use wire::Wire;

/// The operator's user name, as the audit log has it.
pub const OPERATOR: &str = "aicr-operator-played";
/// The played Argo CD's.
pub const ARGO_CD: &str = "argocd-played";
/// No RBAC holds these users: rights are another floor's matter.
const ANY_RIGHT: &[&str] = &["system:masters"];
/// The longest that anything here may take.
pub const BOUND: Duration = Duration::from_mins(1);
/// How often something is asked that nobody tells of.
const LOOK: Duration = Duration::from_millis(50);

/// An API server with our kinds and Argo CD's, somebody who plays Argo CD, and somebody who approves.
pub struct Engine {
    /// What is there.
    pub sight: Sight,
    /// Argo CD.
    pub player: Arc<Player>,
    /// What was asked of the API server.
    pub audit: Audit,
    /// The administrator.
    pub client: Client,
    approver: Arc<watch::Sender<Approver>>,
    /// How the operator reaches the API server.
    pub kubeconfig: PathBuf,
    config: Config,
    tasks: JoinSet<()>,
    tokio: Runtime,
    lab: Lab,
}

impl Engine {
    /// Brings up the API server, and everybody but the operator.
    pub fn up() -> Self {
        let lab = Lab::up(&Options::control_plane_only()).unwrap_or_else(|error| panic!("{error:?}"));
        lab.argocd_kinds().unwrap_or_else(|error| panic!("{error:?}"));
        let tokio = Runtime::new().unwrap_or_else(|error| panic!("start tokio: {error}"));
        let files = ["admin-played", ARGO_CD, OPERATOR]
            .map(|user| lab.user_kubeconfig(user, ANY_RIGHT).unwrap_or_else(|error| panic!("{error:?}")));
        let [admin, argo_cd, config] = files.each_ref().map(|file| tokio.block_on(config(file)));
        let [_, _, kubeconfig] = files;
        let inside = tokio.enter();
        let client = |config: Config| Client::try_from(config).unwrap_or_else(|error| panic!("connect: {error}"));
        let (client, argo_cd) = (client(admin), client(argo_cd));
        drop(inside);
        tokio.block_on(furnish(&client)).unwrap_or_else(|error| panic!("furnish: {error}"));
        let (mut tasks, player) = (JoinSet::new(), Arc::new(Player::default()));
        let inside = tokio.enter();
        let sight = Sight::begin(&client, &mut tasks);
        tasks.spawn(Arc::clone(&player).play(argo_cd));
        let (approver, told) = people::approver();
        tasks.spawn(people::approve(client.clone(), sight.clone(), told));
        drop(inside);
        let audit = Audit::new(lab.layout().audit_log());
        Self { sight, player, audit, client, approver, kubeconfig, config, tasks, tokio, lab }
    }

    /// How somebody reaches the API server whose rights RBAC alone decides.
    pub fn user(&self, name: &str) -> PathBuf {
        self.lab.user_kubeconfig(name, &[]).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Puts any object there.
    pub fn apply(&self, object: &Value) {
        let done = self.wait(furniture::apply(&self.client, object));
        done.unwrap_or_else(|error| panic!("apply {object}: {error}"));
    }

    /// Starts an operator.
    pub fn operator(&self, wire: Arc<Wire>) -> Operator {
        self.operator_with(operator::settings(), wire)
    }

    /// Starts an operator with settings of its own.
    pub fn operator_with(&self, settings: DriveSettings, wire: Arc<Wire>) -> Operator {
        Operator::start(&self.config, settings, wire)
    }

    /// Waits until the predicate answers.
    pub fn until<T>(&self, what: &str, bound: Duration, seen: impl Fn(&Sight) -> Option<T>) -> T {
        self.tokio.block_on(self.sight.until(what, bound, seen))
    }

    /// Waits for something that no watch tells of, and asks again and again.
    pub fn poll<T>(&self, what: &str, bound: Duration, seen: impl Fn() -> Option<T>) -> T {
        let (mut clock, end) = (self.tokio.block_on(async { tokio::time::interval(LOOK) }), Instant::now() + bound);
        loop {
            self.tokio.block_on(clock.tick());
            if let Some(answer) = seen() {
                return answer;
            }
            assert!(Instant::now() < end, "{what}: not within {bound:?}");
        }
    }

    /// The same, where the question is a request.
    pub fn until_async<T, F: Future<Output = Option<T>>>(&self, what: &str, seen: impl Fn() -> F) -> T {
        self.tokio.block_on(async {
            let mut clock = tokio::time::interval(LOOK);
            let wait = async {
                loop {
                    clock.tick().await;
                    if let Some(answer) = seen().await {
                        return answer;
                    }
                }
            };
            let answer = tokio::time::timeout(BOUND, wait).await;
            answer.unwrap_or_else(|_| panic!("{what}: not within {BOUND:?}"))
        })
    }

    /// Waits for one request, or some.
    pub fn wait<T>(&self, request: impl Future<Output = T>) -> T {
        let answer = self.tokio.block_on(async { tokio::time::timeout(BOUND, request).await });
        answer.unwrap_or_else(|_| panic!("no answer within {BOUND:?}"))
    }

    /// Makes the runtime, with these plans stored for it; the first is pinned, and counts as the one that its inputs came to.
    pub fn runtime(&self, plans: &[Plan]) -> ClusterRuntime {
        let first = plans.first().unwrap_or_else(|| panic!("a runtime needs a plan")).digest();
        self.wait(async {
            let runtimes: Api<ClusterRuntime> = Api::all(self.client.clone());
            let made = serde_json::from_value(runtime(&first.to_string()));
            let made = made.unwrap_or_else(|error| panic!("a runtime: {error}"));
            let made = runtimes.create(&PostParams::default(), &made).await?;
            let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
            let uid = made.uid().unwrap_or_default();
            for plan in plans {
                maps.create(&PostParams::default(), &plans::stored(plan.clone(), &uid)).await?;
            }
            let snapshot = serde_json::from_value(plans::snapshot(&made, first));
            maps.create(&PostParams::default(), &snapshot.unwrap_or_else(|error| panic!("a snapshot: {error}")))
                .await?;
            Ok::<_, kube::Error>(made)
        })
        .unwrap_or_else(|error| panic!("make the runtime: {error}"))
    }

    /// Changes the runtime by a merge patch.
    pub fn change_runtime(&self, patch: &Value) {
        let runtimes: Api<ClusterRuntime> = Api::all(self.client.clone());
        let done = self.wait(runtimes.patch(aicr_crds::runtime::NAME, &PatchParams::default(), &Patch::Merge(patch)));
        done.unwrap_or_else(|error| panic!("change the runtime: {error}"));
    }

    /// Pins another plan.
    pub fn pin(&self, digest: aicr_crds::Digest) {
        self.change_runtime(&json!({ "spec": { "selection": { "pinnedPlanDigest": digest } } }));
    }

    /// Changes an Application by a merge patch.
    pub fn change_application(&self, name: &str, patch: &Value) {
        let done = self.wait(self.applications().patch(name, &PatchParams::default(), &Patch::Merge(patch)));
        done.unwrap_or_else(|error| panic!("change {name}: {error}"));
    }

    /// Deletes an Application, as a person would.
    pub fn delete_application(&self, name: &str) {
        let done = self.wait(self.applications().delete(name, &DeleteParams::default()));
        done.unwrap_or_else(|error| panic!("delete {name}: {error}"));
    }

    /// Applications, to be asked for or changed.
    pub fn applications(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), ENGINE_NAMESPACE, &sight::application_kind())
    }

    /// Every Event of ours.
    pub fn events(&self) -> Vec<Event> {
        let api: Api<Event> = Api::all(self.client.clone());
        let all = self.wait(api.list(&ListParams::default()));
        let all = all.unwrap_or_else(|error| panic!("list Events: {error}")).items;
        let ours = |event: &Event| {
            event.reporting_controller.as_deref().is_some_and(|by| by.starts_with(aicr_crds::keys::GROUP))
        };
        all.into_iter().filter(ours).collect()
    }

    /// The approver comes or goes.
    pub fn approver_is(&self, where_: Approver) {
        self.approver.send_replace(where_);
    }

    /// Removes whatever stories left; there must be no operator.
    pub fn clear(&self) {
        self.player.treat_all_well();
        self.approver_is(Approver::There);
        self.wait(clear(&self.client)).unwrap_or_else(|error| panic!("clear: {error}"));
        self.until("an empty cluster", BOUND, |sight| sight.is_empty().then_some(()));
        self.player.take();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

/// How to reach the API server as this file says.
async fn config(file: &Path) -> Config {
    let read = Kubeconfig::read_from(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
