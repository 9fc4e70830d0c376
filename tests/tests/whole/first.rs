//! The first plan, from inputs to `Succeeded`, with the operator killed and all status lost on the way.

use aicr_tests::Stage;
use aicr_tests::caller::{ROLLOUT, RUNTIME};
use aicr_tests::stage::OPERATOR;
use serde_json::{Value, json};

/// How many releases the h100-eks-ubuntu-training-kubeflow recipe has at least.
const RELEASES: usize = 15;

fn only_rollout(stage: &Stage) -> Value {
    let rollouts = stage.list(&["get", "runtimerollouts"]);
    assert_eq!(rollouts.len(), 1, "{rollouts:?}");
    rollouts.into_iter().next().unwrap()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Finds a resolved plan; leaves a rollout that awaits approval.
pub(crate) fn inputs_become_a_plan_and_a_rollout_that_waits(stage: &Stage) {
    let message = stage.until_reason("Stalled", "AwaitingApproval", 10);
    let rollout = only_rollout(stage);
    assert!(message.contains(&format!("kubectl aicr approve {}", name(&rollout))), "{message}");
    let steps = rollout["spec"]["steps"].as_array().unwrap();
    assert!(steps.len() >= RELEASES, "{} steps", steps.len());
    assert!(steps.iter().all(|step| step["operation"] == "Install" && step["approval"]["need"] == "Required"));
    assert!(stage.list(&["get", "applications", "-n", "argocd"]).is_empty());
    let runtime = stage.json(&["get", "clusterruntime", "cluster"]);
    assert_eq!(runtime["status"]["aicr"]["version"], "1.0.0", "as AICR records it");
    assert_eq!(
        runtime["status"]["discovery"]["criteria"],
        json!({"service": "eks", "accelerator": "h100", "os": "ubuntu"})
    );
    assert_eq!(runtime["status"]["candidatePlanDigest"], rollout["spec"]["targetPlanDigest"]);
    assert_eq!(
        stage.condition("Ready"),
        ("False".into(), "RollingOut".into(), format!("rollout {} awaiting approval", name(&rollout)))
    );
}

pub(crate) fn the_report_of_a_waiting_rollout_reads_as_the_page(stage: &Stage) {
    let rollout = only_rollout(stage);
    let said = stage.approver(&["describe", &name(&rollout)]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in ["AwaitingApproval", "gpu-operator", "Install", "Required"] {
        assert!(said.out.contains(words), "{words} is missing in\n{}", said.out);
    }
    let described = stage.kubectl(&["describe", "clusterruntime", "cluster"]);
    assert!(described.contains("RolloutCreated"), "{described}");
    let listed = stage.kubectl(&["get", "runtimerollouts"]);
    assert!(listed.contains("AwaitingApproval") && listed.contains("Required"), "{listed}");
}

/// Leaves the first plan rolled out.
pub(crate) fn the_approved_rollout_survives_a_kill_and_the_loss_of_all_status(stage: &Stage) {
    let rollout = name(&only_rollout(stage));
    println!("figure: resident before the first step {} KiB", stage.resident_kib());
    let requests = asked(stage);
    stage.approve(&rollout);
    until_step(stage, &rollout, 4);
    stage.kill_the_operator();
    until_step(stage, &rollout, 7);
    let account = stage.caller(Some(OPERATOR));
    for (kind, object) in [(RUNTIME, "cluster"), (ROLLOUT, rollout.as_str())] {
        account.patch_status(kind, object, &json!({"status": null})).unwrap();
    }
    let lost = stage.audit("admin").into_iter().filter(|entry| {
        entry["objectRef"]["subresource"] == "status" && entry["impersonatedUser"]["username"] == OPERATOR
    });
    assert!(lost.count() >= 2, "the administrator took both statuses away");
    stage.until_phase(&rollout, "Succeeded", 15);
    let end = stage.rollout(&rollout);
    let (steps, releases) = (end["spec"]["steps"].as_array().unwrap(), end["status"]["releases"].as_array().unwrap());
    assert_eq!(releases.len(), steps.len());
    assert!(releases.iter().all(|release| release["state"] == "Ready"), "{releases:?}");
    let all = format!("{0}/{0}", steps.len());
    assert_eq!((&end["status"]["step"], &end["status"]["message"]), (&json!(all), &json!("every step is ready")));
    figures(stage, requests, steps.len());
}

/// Requests of the operator so far, but for the lease, which two replicas look at by the clock.
fn asked(stage: &Stage) -> usize {
    stage.audit(OPERATOR).iter().filter(|entry| entry["objectRef"]["resource"] != "leases").count()
}

/// What the closing note states; bounds only where a design page gives one.
fn figures(stage: &Stage, requests: usize, steps: usize) {
    let resident = stage.resident_kib();
    println!("figure: resident after the first rollout {resident} KiB");
    let made = asked(stage) - requests;
    println!("figure: {made} requests for {steps} steps, with a restart");
    let manifest: Value =
        serde_json::from_str(&stage.lab.crane(&["manifest", &stage.pushed.operator]).unwrap()).unwrap();
    let size: u64 = manifest["layers"].as_array().unwrap().iter().filter_map(|layer| layer["size"].as_u64()).sum();
    println!("figure: image {size} bytes, compressed");
    assert!(size < 30_000_000, "under 30 MB: {size}");
    let mut waits = stage.reaction_milliseconds();
    waits.sort_unstable();
    println!("figure: from Argo CD's last write on a ready release to the next create, ms: {waits:?}");
    assert!(resident < 60 * 1024, "{resident} KiB");
}

fn until_step(stage: &Stage, rollout: &str, at_least: usize) {
    stage.until(&format!("step {at_least}"), 10, || {
        let status = stage.rollout(rollout)["status"].clone();
        let step =
            status["step"].as_str().and_then(|step| step.split_once('/')).and_then(|(step, _)| step.parse().ok());
        if step >= Some(at_least) && status["current"]["release"].is_string() {
            Ok(())
        } else {
            Err(status.to_string())
        }
    });
}

pub(crate) fn every_release_was_written_once_and_is_healthy(stage: &Stage) {
    let applications = stage.list(&["get", "applications", "-n", "argocd"]);
    assert!(applications.len() >= RELEASES);
    for application in &applications {
        let status = &application["status"];
        assert_eq!(
            (&status["sync"]["status"], &status["health"]["status"]),
            (&json!("Synced"), &json!("Healthy")),
            "{}",
            name(application)
        );
        assert!(application["metadata"]["finalizers"].is_null(), "{}", name(application));
    }
    let writes = stage.desired_writes();
    assert_eq!(writes.len(), applications.len(), "{writes:?}");
    assert!(writes.values().all(|count| *count == 1), "a release was written twice: {writes:?}");
    let pods = stage.list(&["get", "pods", "-n", "gpu-operator"]);
    assert!(pods.iter().any(|pod| pod["status"]["phase"] == "Running"), "real pods run");
}

/// B10: every whole write of a full rollout, as the API server saw it.
pub(crate) fn no_apply_holds_what_argo_cd_owns(stage: &Stage) {
    let mut seen = 0;
    for entry in stage.audit(OPERATOR) {
        let uri = entry["requestURI"].as_str().unwrap_or_default();
        let whole = uri.contains("fieldManager=aicr-operator") && !uri.contains("aicr-operator-patch");
        if entry["objectRef"]["resource"] != "applications" || !whole {
            continue;
        }
        assert!(entry["requestObject"]["spec"].is_object(), "the audit log holds bodies: {entry}");
        seen += 1;
        for absent in
            ["/status", "/operation", "/metadata/finalizers", "/metadata/annotations/argocd.argoproj.io~1refresh"]
        {
            assert!(entry["requestObject"].pointer(absent).is_none(), "{absent}: {entry}");
        }
    }
    assert!(seen >= RELEASES, "{seen} applies");
}

/// B93 on real parts: another snapshot, other Jobs, another time; the same plan, and nothing further happens.
pub(crate) fn a_new_snapshot_gives_the_same_plan(stage: &Stage) {
    let status = || stage.json(&["get", "clusterruntime", "cluster"])["status"].clone();
    let (before, rollouts) = (status(), stage.list(&["get", "runtimerollouts"]).len());
    stage.kubectl(&["annotate", "clusterruntime", "cluster", "operator.aicr.run/resnapshot=again", "--overwrite"]);
    stage.until("another snapshot, resolved", 5, || {
        let now = status();
        let other = now["discovery"]["snapshot"]["configMap"] != before["discovery"]["snapshot"]["configMap"];
        let idle = stage.condition("Reconciling").1 != "Resolving";
        if other && idle { Ok(()) } else { Err(now.to_string()) }
    });
    assert_eq!(status()["candidatePlanDigest"], before["candidatePlanDigest"]);
    assert_eq!(stage.list(&["get", "runtimerollouts"]).len(), rollouts);
}

pub(crate) fn the_end_is_told_once(stage: &Stage) {
    let rollout = only_rollout(stage);
    assert_eq!(rollout["metadata"]["labels"]["operator.aicr.run/outcome"], "Succeeded");
    let told: Vec<_> =
        stage.events(&name(&rollout)).into_iter().filter(|(reason, _)| reason == "RolloutSucceeded").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    // The replica that leads now wrote the end; the one before was killed on the way.
    let counted = stage.metric("aicr_operator_rollout_outcomes_total{outcome=\"Succeeded\"}");
    assert!((counted - 1.0).abs() < f64::EPSILON, "{counted}");
    stage.until_reason("Ready", "ValidationDisabled", 2);
    assert_eq!(stage.condition("Available").1, "Healthy");
    assert_eq!(stage.condition("Stalled").1, "Progressing");
    let runtime = stage.json(&["get", "clusterruntime", "cluster"]);
    assert_eq!(runtime["status"]["activePlanDigest"], rollout["spec"]["targetPlanDigest"]);
    assert_eq!(runtime["status"]["rollout"], Value::Null);
}

/// What both replicas have logged since the one before was killed.
pub(crate) fn the_log_names_what_it_is_about_and_holds_no_secret(stage: &Stage) {
    let rollout = only_rollout(stage);
    let uid = stage.json(&["get", "clusterruntime", "cluster"])["metadata"]["uid"].clone();
    let about = ["-n", "aicr-system", "-l", "app.kubernetes.io/name=aicr-operator", "--tail=-1"];
    let log = stage.kubectl(&[&["logs"], about.as_slice()].concat());
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_it: Vec<&Value> = lines.iter().filter(|line| line["rollout"] == rollout["metadata"]["name"]).collect();
    assert!(of_it.len() > RELEASES, "{} lines about the rollout", of_it.len());
    for line in of_it {
        assert_eq!(line["runtime"], uid, "{line}");
        assert_eq!(line["plan"], rollout["spec"]["targetPlanDigest"], "{line}");
    }
    for line in lines.iter().filter(|line| line["job"].is_string()) {
        assert!(line["run"].is_string() && line["runtime"] == uid, "{line}");
    }
    let secret = |field: &str| {
        let template = format!("go-template={{{{index .data \"{field}\" | base64decode}}}}");
        stage.kubectl(&["get", "secret", "aicr-registry", "-n", "argocd", "-o", &template])
    };
    // One of nfd's values, which every write of it holds.
    for never in [secret("password").trim(), "enableNodeFeatureApi"] {
        assert!(!never.is_empty() && !log.contains(never), "the log holds {never:?}");
    }
}

/// B39: a login of Argo CD's own below our prefix, seen by whoever may list Secrets; it is gone again.
pub(crate) fn a_second_login_of_argo_cd_is_named_until_it_is_gone(stage: &Stage) {
    let applications = stage.list(&["get", "applications", "-n", "argocd"]);
    let url = applications[0]["spec"]["source"]["repoURL"].as_str().unwrap();
    // A neighbour of the charts, so that Argo CD's own work is not disturbed.
    let url = format!("{}/nobodys-chart", url.strip_prefix("oci://").unwrap().rsplit_once('/').unwrap().0);
    let administrator = stage.administrator();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "old-login", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "repository"},
        },
        "stringData": {"type": "oci", "url": url, "username": "old", "password": "the-old-password"},
    });
    administrator.send(&["create"], &secret).passed();
    let page = administrator.aicr(&["status"]).passed();
    assert!(page.contains(&format!("repository Secret argocd/old-login has its own login for {url}")), "{page}");
    assert!(!page.contains("the-old-password"), "{page}");
    stage.kubectl(&["delete", "secret", "old-login", "-n", "argocd"]);
    let page = administrator.aicr(&["status"]).passed();
    assert!(!page.contains("Warnings"), "{page}");
}
