//! The demo's rollout: waited for, approved, followed.

use std::process::Command;
use std::time::Duration;

use aicr_lab::product::{APPROVER, APPROVERS};
use aicr_lab::wait::{self, Seen};
use aicr_lab::{Lab, command};

use crate::binaries;
use crate::error::XtaskError;

/// Discovery, recipe, render, mirror, plan and assessment, with their images pulled.
const UNTIL_THERE: Duration = Duration::from_mins(15);
/// Releases that the sample's recipe has at least.
const RELEASES: usize = 15;
/// Every release applied and ready.
const UNTIL_DONE: Duration = Duration::from_mins(30);

/// Waits for a rollout and returns its name.
pub(crate) fn wait_for_one(lab: &Lab) -> Result<String, XtaskError> {
    let mut shown = String::new();
    let name = wait::until("a rollout", UNTIL_THERE, || {
        let now = runtime(lab);
        if now != shown {
            eprintln!("demo: {now}");
            shown = now;
        }
        let names = lab.kubectl(&["get", "runtimerollouts", "-o", "jsonpath={.items[*].metadata.name}"]);
        match names.as_deref().map(|names| names.split_whitespace().next()) {
            Ok(Some(name)) => Seen::Ready(name.to_owned()),
            Ok(None) => Seen::NotYet(runtime(lab)),
            Err(error) => Seen::NotYet(error.to_string()),
        }
    })?;
    eprintln!("demo: rollout {name}");
    Ok(name)
}

/// Approves as the sample approver, with the plugin as a person would.
pub(crate) fn approve(lab: &Lab, name: &str) -> Result<(), XtaskError> {
    let kubeconfig = lab.user_kubeconfig(APPROVER, &[APPROVERS])?;
    let mut plugin = Command::new(binaries::binary("kubectl-aicr")?);
    plugin.args(["approve", name, "--yes", "--reason", "the demo, run with --yes"]).env("KUBECONFIG", kubeconfig);
    command::shown(&mut plugin).map_err(XtaskError::command("approve the rollout"))
}

/// Shows each change of phase and step until the rollout has ended.
pub(crate) fn follow(lab: &Lab, name: &str) -> Result<(), XtaskError> {
    let path = "jsonpath={.status.phase} {.status.step}";
    let mut shown = String::new();
    wait::until(&format!("the end of {name}"), UNTIL_DONE, || {
        let seen = match lab.kubectl(&["get", "runtimerollout", name, "-o", path]) {
            Ok(seen) => seen,
            Err(error) => return Seen::NotYet(error.to_string()),
        };
        if seen != shown {
            eprintln!("demo: {name}: {seen}");
            shown.clone_from(&seen);
        }
        match seen.split_whitespace().next() {
            Some("Succeeded") => Seen::Ready(()),
            Some("Failed" | "Expired" | "Revoked" | "Superseded" | "Orphaned") => Seen::Never(seen),
            Some(_) | None => Seen::NotYet(seen),
        }
    })?;
    Ok(())
}

/// Shows what is there now, and fails unless every release is in place.
pub(crate) fn show(lab: &Lab) -> Result<(), XtaskError> {
    eprintln!("{}", lab.kubectl(&["get", "applications", "--namespace", "argocd"])?);
    eprintln!("{}", lab.kubectl(&["get", "pods", "--all-namespaces"])?);
    let path = "jsonpath={range .items[*]}{.metadata.name} {.status.sync.status} {.status.health.status}{\"\\n\"}{end}";
    let states = lab.kubectl(&["get", "applications", "--namespace", "argocd", "-o", path])?;
    let good = states.lines().filter(|line| line.ends_with(" Synced Healthy")).count();
    let all = states.lines().count();
    eprintln!("demo: {good} of {all} releases are Synced and Healthy");
    if good == all && good >= RELEASES {
        Ok(())
    } else {
        Err(XtaskError::Stages { stages: vec!["releases in place".to_owned()] })
    }
}

/// Prints the three commands to go on with.
pub(crate) fn tell_how_to_go_on(lab: &Lab, name: &str) -> Result<(), XtaskError> {
    let kubeconfig = lab.user_kubeconfig(APPROVER, &[APPROVERS])?;
    eprintln!("\nThe rollout waits for approval. Go on with:");
    eprintln!(
        "export KUBECONFIG={} PATH={}:{}:$PATH",
        kubeconfig.display(),
        binaries::folder().display(),
        lab.layout().bin().display()
    );
    eprintln!("kubectl aicr describe {name}");
    eprintln!("kubectl aicr approve {name} --reason 'I have read it'");
    Ok(())
}

/// What the runtime says of itself, for whoever waits.
fn runtime(lab: &Lab) -> String {
    let path = "jsonpath={range .items[*].status.conditions[*]}{.type}={.status}({.reason}) {end}";
    lab.kubectl(&["get", "clusterruntimes", "-o", path]).unwrap_or_else(|error| error.to_string())
}
