//! The launcher's side of the checks: a Job for each, one after the other, under the account that may look at everything.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, LogParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::test;
use crate::failure::{Failure, api_words};
use crate::snapshot::run_id;
use crate::{log, release};

/// Where a check finds what it is to judge.
pub(super) const DOCUMENT: &str = "/data/validation/recipe.json";
/// What a check's verdict begins with in its log.
pub(super) const VERDICT: &str = "VERDICT ";
/// The catalog's time limit of a check, in seconds.
const LIMIT: u64 = 120;
const LOOK: Duration = Duration::from_millis(300);

/// A run of checks.
struct Launch<'a> {
    client: Client,
    namespace: &'a str,
    run: String,
    image: String,
}

/// Runs every check and returns their results; what was made for them is removed again.
pub(super) async fn all(
    client: Client,
    namespace: &str,
    recipe: &Value,
    checks: &[String],
) -> Result<Vec<Value>, Failure> {
    let image = own_image(&client, namespace).await?;
    let launch = Launch { client, namespace, run: run_id()?, image };
    let results = launch.judged(recipe, checks).await;
    launch.clean_up().await;
    results
}

/// The checks' image is the stand-in's own: AICR's are images of their own, of its version.
async fn own_image(client: &Client, namespace: &str) -> Result<String, Failure> {
    let failed = |cause: String| Failure::internal(format!("failed to find the checks' image: {cause}"));
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| failed(error.to_string()))?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = pods.get(name.trim()).await.map_err(|error| failed(api_words(&error)))?;
    let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
    let image = containers.into_iter().next().and_then(|container| container.image);
    image.ok_or_else(|| failed("the launcher's pod has none".to_owned()))
}

impl Launch<'_> {
    async fn judged(&self, recipe: &Value, checks: &[String]) -> Result<Vec<Value>, Failure> {
        if release::oldest() {
            self.make_account().await?;
        } else {
            let accounts: Api<ServiceAccount> = self.api();
            let name = self.account();
            accounts.get(&name).await.map_err(|error| refused("get ServiceAccount", &error))?;
        }
        let document = json!({
            "metadata": {"name": self.document(), "labels": self.labels()}, "data": {"recipe.json": recipe.to_string()},
        });
        self.make::<ConfigMap>(&self.api(), document).await?;
        let mut results = Vec::new();
        for check in checks {
            results.push(self.one(check).await?);
        }
        Ok(results)
    }

    async fn one(&self, check: &str) -> Result<Value, Failure> {
        let name = format!("aicr-{check}-{}", &self.run[self.run.len() - 8..]);
        self.make::<Job>(&self.api(), self.job(&name, check)).await?;
        let jobs: Api<Job> = self.api();
        let ended = self.wait(&jobs, &name).await?;
        let said = self.verdict(&name).await;
        jobs.delete(&name, &DeleteParams::background()).await.map_err(|error| refused("delete Job", &error))?;
        Ok(match (ended.as_deref(), said) {
            (Some("Complete"), _) => test(check, "passed", ""),
            (Some(_), Some(said)) => test(check, "failed", &said),
            (Some(_), None) => test(check, "other", "the check said nothing"),
            (None, _) => test(check, "other", "the check did not end in time"),
        })
    }

    /// `Complete` or `Failed`; `None` after the catalog's limit and half a minute.
    async fn wait(&self, jobs: &Api<Job>, name: &str) -> Result<Option<String>, Failure> {
        let until = Instant::now() + Duration::from_secs(LIMIT + 30);
        while Instant::now() < until {
            let job = jobs.get(name).await.map_err(|error| refused("get Job", &error))?;
            let all = job.status.and_then(|status| status.conditions).unwrap_or_default();
            let ended = |kind: &str| kind == "Complete" || kind == "Failed";
            if let Some(end) = all.into_iter().find(|c| c.status == "True" && ended(&c.type_)) {
                return Ok(Some(end.type_));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(None)
    }

    async fn verdict(&self, job: &str) -> Option<String> {
        let pods: Api<Pod> = self.api();
        let selector = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        let pod = pods.list(&selector).await.ok()?.items.pop()?.metadata.name?;
        let text = pods.logs(&pod, &LogParams::default()).await.ok()?;
        text.lines().find_map(|line| line.strip_prefix(VERDICT)).map(ToOwned::to_owned)
    }

    /// As AICR builds it: without a securityContext, so that only `baseline` lets it in.
    fn job(&self, name: &str, check: &str) -> Value {
        let labels = self.labels();
        let volume = json!({"name": "validation", "configMap": {"name": self.document()}});
        let container = json!({
            "name": "check", "image": self.image, "command": ["aicr", "check"], "args": ["--recipe", DOCUMENT],
            "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}},
            "volumeMounts": [{"name": "validation", "mountPath": "/data/validation"}],
        });
        json!({
            "metadata": {"name": name, "labels": labels, "annotations": {"aicr.run/check": check}},
            "spec": {
                "backoffLimit": 0, "activeDeadlineSeconds": LIMIT, "ttlSecondsAfterFinished": 3600,
                "template": {"metadata": {"labels": labels}, "spec": {
                    "restartPolicy": "Never", "serviceAccountName": self.account(),
                    "tolerations": [{"operator": "Exists"}], "containers": [container], "volumes": [volume],
                }},
            },
        })
    }

    /// The oldest release makes an account for each run, and binds it to everything.
    async fn make_account(&self) -> Result<(), Failure> {
        let name = self.account();
        self.make::<ServiceAccount>(&self.api(), json!({"metadata": {"name": name}})).await?;
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": self.namespace});
        let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        self.make::<ClusterRoleBinding>(&Api::all(self.client.clone()), binding).await
    }

    async fn clean_up(&self) {
        let gone = DeleteParams::default();
        let maps: Api<ConfigMap> = self.api();
        drop(maps.delete(&self.document(), &gone).await);
        if release::oldest() {
            let (accounts, name): (Api<ServiceAccount>, _) = (self.api(), self.account());
            drop(accounts.delete(&name, &gone).await);
            drop(Api::<ClusterRoleBinding>::all(self.client.clone()).delete(&name, &gone).await);
        }
    }

    async fn make<K>(&self, api: &Api<K>, object: Value) -> Result<(), Failure>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
    {
        let kind = K::kind(&());
        let built = serde_json::from_value(object);
        let built: K = built.map_err(|error| Failure::internal(format!("failed to build {kind}: {error}")))?;
        api.create(&PostParams::default(), &built).await.map_err(|error| refused(&format!("create {kind}"), &error))?;
        log::info("created", &[("kind", json!(kind)), ("name", json!(built.meta().name))]);
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    fn account(&self) -> String {
        if release::oldest() { format!("aicr-validator-{}", self.run) } else { "aicr-validator".to_owned() }
    }

    fn document(&self) -> String {
        format!("aicr-validation-{}", self.run)
    }

    fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": "aicr", "aicr.run/run-id": self.run})
    }
}

fn refused(act: &str, error: &kube::Error) -> Failure {
    Failure::internal(format!("failed to {act}: {}", api_words(error)))
}
