//! The binary as a person runs it, against an API server that answers what we tell it to.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "cli/server.rs"]
mod server;

use std::process::{Command, Output};

use rstest::rstest;
use serde_json::{Value, json};

use server::{Answer, Server, refusal};

const ROLLOUT: &str = "/apis/operator.aicr.run/v1alpha1/runtimerollouts/r";
const ROLLOUTS: &str = "/apis/operator.aicr.run/v1alpha1/runtimerollouts";
const RUNTIME: &str = "/apis/operator.aicr.run/v1alpha1/clusterruntimes/cluster";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

const DENIAL: &str =
    "RuntimeRollout r: you asked for this change, so another approver must approve it [Separation]\nask one of them";

struct Said {
    code: i32,
    out: String,
    err: String,
}

fn run(kubeconfig: &str, args: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-aicr"));
    let Output { status, stdout, stderr } = command.args(args).env("KUBECONFIG", kubeconfig).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

/// An approved rollout that needs no look at its steps, or one that waits for approval.
fn rollout(approval: &Value) -> Value {
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "RuntimeRollout",
        "metadata": { "name": "r", "resourceVersion": "7" },
        "spec": {
            "schemaVersion": "1", "runtime": { "name": "cluster", "uid": "u" }, "kind": "Change", "attempt": 1,
            "selection": "Automatic", "requestedBy": [], "inventory": [], "actionTimeout": "30m",
            "deadline": "2126-07-01T14:10:00Z", "validation": "Disabled", "approval": approval,
            "steps": [{
                "release": "nvsentinel", "operation": "Upgrade", "valuesChanged": false, "crds": [], "warnings": [],
                "approval": { "need": "Required", "reason": "assessed manual" }, "acknowledge": true,
            }],
        },
        "status": { "phase": "AwaitingAcknowledgement", "releases": [{ "release": "nvsentinel", "state": "Ready" }] },
    })
}

fn approval() -> Value {
    json!({
        "reason": "r", "expiresAt": "2126-07-01T12:00:00Z", "approvedAt": "2026-07-01T08:50:00Z",
        "approvedBy": { "username": "bob" },
        "bindingDigest": format!("sha256:{}", "0".repeat(64)),
    })
}

fn server(approval: &Value) -> Server {
    let server = Server::start();
    server.always("POST", WHOAMI, Answer::json(201, &json!({ "status": { "userInfo": { "username": "alice" } } })));
    server.always("GET", ROLLOUT, Answer::json(200, &rollout(approval)));
    server
}

/// Every command that changes something, on a rollout for which it may be sent.
fn change(verb: &str) -> (Server, Vec<&str>) {
    let server = server(&if verb == "approve" { Value::Null } else { approval() });
    (server, vec![verb, "r", "--yes", "--reason", "because"])
}

#[rstest]
fn a_denial_is_its_message_alone(
    #[values("approve", "revoke", "acknowledge")] verb: &str,
    #[values(403, 400)] code: u16,
) {
    let (server, args) = change(verb);
    let text = format!("admission webhook \"rollouts.operator.aicr.run\" denied the request: {DENIAL}");
    server.always("PATCH", ROLLOUT, Answer::json(code, &refusal(code, &text, &[])));
    let said = run(&server.kubeconfig(), &args);
    // approve shows what it asks for before, and a blank line.
    let shown = said.err.rsplit_once("\n\n").filter(|_| verb == "approve").map_or(said.err.as_str(), |(_, last)| last);
    assert_eq!(shown, format!("{DENIAL}\n"));
    assert_eq!((said.code, said.out.as_str(), server.count("PATCH")), (1, "", 1));
}

#[rstest]
#[case::rule(422, &["Invalid value: \"object\": spec is immutable"], "spec is immutable\n")]
#[case::schema(422, &["Too long: may not be more than 1024 bytes"], "RuntimeRollout \"r\" is invalid\n")]
#[case::rbac(403, &[], "RuntimeRollout \"r\" is invalid\n")]
#[case::away(503, &[], "error: RuntimeRollout \"r\" is invalid\n")]
fn what_the_api_server_says_is_shown_without_json(#[case] code: u16, #[case] causes: &[&str], #[case] shown: &str) {
    let (server, args) = change("revoke");
    server.always("PATCH", ROLLOUT, Answer::json(code, &refusal(code, "RuntimeRollout \"r\" is invalid", causes)));
    let said = run(&server.kubeconfig(), &args);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (1, "", shown));
}

#[rstest]
fn a_conflict_is_tried_again(#[values("approve", "revoke", "acknowledge")] verb: &str) {
    let (server, args) = change(verb);
    let unseen = "admission webhook \"w\" denied the request: RuntimeRollout r: not seen yet; try again [Approval]";
    server.once("PATCH", ROLLOUT, Answer::json(409, &refusal(409, unseen, &[])));
    server.once("PATCH", ROLLOUT, Answer::json(409, &refusal(409, "the object has been modified", &[])));
    server.always("PATCH", ROLLOUT, Answer::json(200, &rollout(&approval())));
    let said = run(&server.kubeconfig(), &args);
    assert_eq!((said.code, server.count("PATCH")), (0, 3), "{}", said.err);
}

#[test]
fn a_conflict_that_stays_ends_with_its_message() {
    let (server, args) = change("revoke");
    let unseen = "admission webhook \"w\" denied the request: RuntimeRollout r: not seen yet; try again [Approval]";
    server.always("PATCH", ROLLOUT, Answer::json(409, &refusal(409, unseen, &[])));
    let said = run(&server.kubeconfig(), &args);
    assert_eq!((said.code, said.err.as_str()), (1, "RuntimeRollout r: not seen yet; try again [Approval]\n"));
    assert!((3..50).contains(&server.count("PATCH")), "{}", server.count("PATCH"));
}

#[rstest]
fn a_dry_run_is_the_servers_and_is_said_to_be_one(#[values("approve", "revoke", "acknowledge")] verb: &str) {
    let (server, mut args) = change(verb);
    args.retain(|arg| *arg != "--yes");
    args.push("--dry-run=server");
    server.always("PATCH", ROLLOUT, Answer::json(200, &rollout(&approval())));
    let said = run(&server.kubeconfig(), &args);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.ends_with(" (server dry run)\n"), "{}", said.out);
    assert!(server.queries("PATCH").iter().all(|query| query.contains("dryRun=All")), "{:?}", server.queries("PATCH"));
}

#[test]
fn a_change_that_is_meant_is_no_dry_run() {
    let (server, args) = change("revoke");
    server.always("PATCH", ROLLOUT, Answer::json(200, &rollout(&approval())));
    assert_eq!(run(&server.kubeconfig(), &args).code, 0);
    assert!(server.queries("PATCH").iter().all(|query| !query.contains("dryRun")), "{:?}", server.queries("PATCH"));
}

#[test]
fn a_warning_is_shown_as_kubectl_shows_it() {
    let (server, args) = change("revoke");
    let warned = Answer::json(200, &rollout(&approval())).with("Warning: 299 - \"you did it yourself\"");
    server.always("PATCH", ROLLOUT, warned);
    let said = run(&server.kubeconfig(), &args);
    assert_eq!((said.code, said.err.as_str()), (0, "Warning: you did it yourself\n"));
}

#[rstest]
#[case::describe(&["describe", "r"])]
#[case::approve(&["approve", "r", "--yes", "--reason", "because"])]
#[case::revoke(&["revoke", "r", "--reason", "because"])]
#[case::acknowledge(&["acknowledge", "r", "--reason", "because"])]
fn a_rollout_that_is_not_there_is_named(#[case] args: &[&str]) {
    let server = Server::start();
    server.always("POST", WHOAMI, Answer::json(201, &json!({ "status": { "userInfo": { "username": "alice" } } })));
    let text = "runtimerollouts.operator.aicr.run \"r\" not found";
    server.always("GET", ROLLOUT, Answer::json(404, &refusal(404, text, &[])));
    let said = run(&server.kubeconfig(), args);
    assert_eq!((said.code, said.out.as_str(), said.err), (1, "", format!("error: {text}\n")));
}

#[rstest]
#[case::status(&["status"])]
#[case::describe(&["describe", "r"])]
#[case::approve(&["approve", "r", "--yes", "--reason", "because"])]
#[case::revoke(&["revoke", "r", "--reason", "because"])]
#[case::acknowledge(&["acknowledge", "r", "--reason", "because"])]
fn an_api_server_that_is_away_and_a_missing_kubeconfig_are_one_line(#[case] args: &[&str]) {
    let said = run(&Server::nobody(), args);
    assert_eq!((said.code, said.out.as_str(), said.err.lines().count()), (1, "", 1), "{}", said.err);
    assert!(said.err.starts_with("error: ") && said.err.contains("at http://127.0.0.1:"), "{}", said.err);
    assert!(said.err.contains("refused") && !said.err.contains("Error {"), "{}", said.err);
    let said = run("there/is/none", args);
    assert_eq!((said.code, said.out.as_str(), said.err.lines().count()), (1, "", 1), "{}", said.err);
    assert!(said.err.starts_with("error: read the kubeconfig: "), "{}", said.err);
    assert!(said.err.contains("No such file") && !said.err.contains("Error {"), "{}", said.err);
}

#[test]
fn a_cluster_without_the_operator_is_named_as_such() {
    let said = run(&Server::start().kubeconfig(), &["status"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("is the operator installed in this cluster?"), "{}", said.err);
}

/// A server with a runtime of these conditions, and no rollout.
fn with_runtime(conditions: &Value) -> Server {
    let server = Server::start();
    let runtime = json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime", "metadata": { "name": "cluster" },
        "spec": {}, "status": { "conditions": conditions },
    });
    let list = json!({ "apiVersion": "operator.aicr.run/v1alpha1", "kind": "RuntimeRolloutList", "items": [] });
    server.always("GET", ROLLOUTS, Answer::json(200, &list));
    server.always("GET", RUNTIME, Answer::json(200, &runtime));
    server
}

fn status(conditions: &Value, args: &[&str]) -> Said {
    let all: Vec<_> = ["status"].iter().chain(args).copied().collect();
    run(&with_runtime(conditions).kubeconfig(), &all)
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "m",
        "lastTransitionTime": "2026-07-01T08:10:00Z",
    })
}

#[rstest]
#[case::ready(&[condition("Ready", "True", "RolledOut")], 0)]
#[case::working(&[condition("Ready", "False", "RollingOut")], 3)]
#[case::unseen(&[], 3)]
#[case::stalled(&[condition("Ready", "False", "RollingOut"), condition("Stalled", "True", "RolloutFailed")], 4)]
#[case::newer(&[condition("Ready", "True", "RolledOut"), condition("Stalled", "True", "Newer")], 4)]
fn status_says_who_is_to_act_by_its_exit_code_when_asked(#[case] conditions: &[Value], #[case] code: i32) {
    let conditions = json!(conditions);
    let asked = status(&conditions, &["--exit-code"]);
    assert_eq!((asked.code, asked.err.as_str()), (code, ""), "{}", asked.out);
    assert_eq!(status(&conditions, &[]).code, 0, "a page that was shown is no failure");
    let document: Value = serde_json::from_str(&status(&conditions, &["-o", "json"]).out).unwrap();
    assert_eq!(document["runtime"]["metadata"]["name"], "cluster");
}

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/applications";
const SECRETS: &str = "/api/v1/namespaces/argocd/secrets";

/// A ready runtime with one Application; the Secrets of Argo CD's namespace are answered so.
fn with_secrets(answer: &Answer) -> Said {
    let server = with_runtime(&json!([condition("Ready", "True", "RolledOut")]));
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": { "name": "gpu-operator", "namespace": "argocd" },
        "spec": {
            "project": "aicr", "source": { "repoURL": "oci://h:5000/aicr/charts/gpu-operator" }, "destination": {},
        },
    });
    let applications =
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationList", "items": [application] });
    server.always("GET", APPLICATIONS, Answer::json(200, &applications));
    server.always("GET", SECRETS, answer.clone());
    run(&server.kubeconfig(), &["status", "--exit-code"])
}

#[test]
fn b39_a_second_login_of_argo_cd_is_named_until_it_is_gone() {
    let list = |items: Value| Answer::json(200, &json!({ "apiVersion": "v1", "kind": "SecretList", "items": items }));
    // url: h:5000/aicr/charts/gpu-operator
    let url = "aDo1MDAwL2FpY3IvY2hhcnRzL2dwdS1vcGVyYXRvcg==";
    let secret = json!({ "metadata": { "name": "old-login", "namespace": "argocd" }, "data": { "url": url, "password": "c2VjcmV0" } });
    let said = with_secrets(&list(json!([secret])));
    assert!(said.out.contains("repository Secret argocd/old-login has its own login for h:5000/aicr/"), "{}", said.out);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "a warning asks nobody to act");
    assert!(!said.out.contains("secret\n") && !said.out.contains("c2VjcmV0"), "{}", said.out);
    assert!(!with_secrets(&list(json!([]))).out.contains("Warnings"));
}

#[test]
fn logins_that_are_not_ones_to_see_are_no_failure() {
    let said = with_secrets(&Answer::json(403, &refusal(403, "secrets is forbidden", &[])));
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(!said.out.contains("Warnings"), "{}", said.out);
    let said = with_secrets(&Answer::json(503, &refusal(503, "etcd is away", &[])));
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("logins were not looked at: etcd is away"), "{}", said.out);
}

#[test]
fn completion_needs_no_cluster_and_help_tells_the_exit_codes() {
    let said = run("there/is/none", &["completion", "bash"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("kubectl-aicr") && said.out.contains("acknowledge"), "{}", said.out);
    for args in [["help", "status"], ["status", "--help"]] {
        let said = run("there/is/none", &args);
        assert!(said.code == 0 && said.out.contains("4  status --exit-code"), "{}", said.out);
    }
}
