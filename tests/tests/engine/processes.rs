//! The operator's own program, for what only its log and its metrics tell.

use std::path::PathBuf;

use aicr_lab::product::Product;
use aicr_tests::engine::ecr::Ecr;
use aicr_tests::engine::operator::ENGINE_NAMESPACE;
use aicr_tests::engine::plans::Which;
use aicr_tests::engine::process::{Process, Registry};
use aicr_tests::engine::story::End;
use aicr_tests::engine::wire::{Crash, Wire};
use aicr_tests::engine::{BOUND, Engine};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

const EXPIRY: &str = "aicr_operator_registry_token_expiry_timestamp_seconds";
const REFRESH: &str = "aicr_operator_registry_token_refresh_timestamp_seconds";
/// The Secret that Argo CD reads.
const SECRET: &str = "aicr-registry";

/// A log in the folder of this machine's temporary files.
struct Log(PathBuf);

impl Log {
    fn of(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("{name}-{}.log", std::process::id())))
    }

    /// Its lines with these words.
    fn lines(&self, words: &str) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// With the provider aws: each fetch that fails is a line of the log and is tried again; the leader's gauges say when it was
/// fetched and expires, and a standby's stay 0.
pub(crate) fn a_token_is_refreshed_by_the_leader_alone_and_each_failure_is_logged(engine: &Engine) {
    engine.clear();
    let product = Product::from_env().unwrap();
    engine.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET, "namespace": ENGINE_NAMESPACE },
    }));
    let (ecr, log, silent) = (Ecr::that_refuses(), Log::of("leader"), Log::of("standby"));
    let start = |name: &str, log: &Log| {
        Process::replica(&product, &engine.kubeconfig, &log.0, name, Registry::Ecr(ecr.address))
    };
    let leader = start("leader", &log);
    let failures = || log.lines("no registry token; it is tried again");
    engine.poll("a refusal, and another", BOUND, || (failures().len() > 1).then_some(()));
    assert_eq!([EXPIRY, REFRESH].map(|series| leader.metric(series)), [Some(0.0); 2], "0 until known");
    let standby = start("standby", &silent);
    engine.poll("another replica", BOUND, || standby.metric(EXPIRY));
    ecr.answers();
    let expiry = engine.poll("a token", BOUND, || leader.metric(EXPIRY).filter(|at| *at > 0.0));
    let refreshed = leader.metric(REFRESH).unwrap();
    assert!((43_100.0..43_300.0).contains(&(expiry - refreshed)), "twelve hours: {refreshed} to {expiry}");
    assert_eq!(failures().len(), ecr.refused(), "each failure is logged: {:?}", failures());
    for (number, line) in failures().iter().enumerate() {
        assert!(line.contains("AccessDenied") && line.contains(&format!("\"failures\":{}", number + 1)), "{line}");
    }
    assert_eq!([EXPIRY, REFRESH].map(|series| standby.metric(series)), [Some(0.0); 2], "only the leader refreshes");
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(engine.client.clone(), ENGINE_NAMESPACE);
    let kept = engine.wait(secrets.get(SECRET)).unwrap();
    assert!(kept.metadata.annotations.unwrap().contains_key("operator.aicr.run/token-expires-at"));
    engine.wait(secrets.delete(SECRET, &DeleteParams::default())).unwrap();
}

/// The operator is told nothing of Applications: the runtime stays Terminating, its log says why, and the right alone is
/// enough.
pub(crate) fn an_orphaning_that_cannot_list_applications_waits_and_only_the_log_says_so(engine: &Engine) {
    engine.clear();
    engine.runtime(&[Which::A.plan(), Which::B.plan()]);
    let operator = engine.operator(Wire::new(Crash::Never));
    assert_eq!(engine.run(&operator, &Which::A.plan(), BOUND), End::Settled);
    drop(operator);
    let all = json!(["*"]);
    let others = ["", "operator.aicr.run", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io", "batch"];
    granted(
        engine,
        "blind",
        &json!([
            { "apiGroups": others, "resources": all, "verbs": all },
            { "apiGroups": ["admissionregistration.k8s.io", "authorization.k8s.io"], "resources": all, "verbs": all },
            { "apiGroups": ["argoproj.io"], "resources": ["appprojects"], "verbs": all },
            { "apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["create", "patch", "delete"] },
        ]),
    );
    let log = Log::of("blind");
    let process = Process::start(&Product::from_env().unwrap(), &engine.user("blind"), &log.0);
    let runtimes: Api<aicr_crds::ClusterRuntime> = Api::all(engine.client.clone());
    engine.wait(runtimes.delete(aicr_crds::runtime::NAME, &DeleteParams::default())).unwrap();
    let told = || log.lines("watch failed and is begun again");
    engine.poll("the log to say so", BOUND, || (told().len() > 1).then_some(()));
    let named = |line: &String| line.contains("pplications") && line.to_lowercase().contains("forbidden");
    assert!(told().iter().any(named), "{:?}", told());
    let waits = |runtime: &aicr_crds::ClusterRuntime| runtime.metadata.finalizers.iter().flatten().next().is_some();
    assert!(engine.sight.runtime().is_some_and(|runtime| waits(&runtime)), "it stays Terminating");
    granted(
        engine,
        "seeing",
        &json!([
            { "apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["get", "list", "watch"] },
        ]),
    );
    engine.until("the runtime to be gone", BOUND * 2, |sight| sight.runtime().is_none().then_some(()));
    let marked = |annotations: Option<&std::collections::BTreeMap<String, String>>| {
        annotations.is_some_and(|all| all.contains_key("operator.aicr.run/orphaned-from"))
    };
    assert!(engine.sight.applications().iter().all(|one| marked(one.metadata.annotations.as_ref())));
    drop(process);
}

/// Gives that user these rights.
fn granted(engine: &Engine, name: &str, rules: &Value) {
    let group = "rbac.authorization.k8s.io";
    engine.apply(&json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules,
    }));
    engine.apply(&json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": "blind" }],
    }));
}
