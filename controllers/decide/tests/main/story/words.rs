//! The words of scripts that need more than a line: what Argo CD, Jobs and live objects say.

use aicr_crds::{keys::annotation, reason::Reason};
use aicr_decide::{
    facts::{CustomSeen, DaemonSetSeen, Report},
    resolve::{Class, Failure, JobPhase, Stage},
};
use serde_json::json;

use super::{Story, argo};

/// `argo gpu-operator health Progressing`, `argo gpu-operator fails MESSAGE`.
pub(super) fn argo_says(story: &mut Story, rest: &str) {
    let mut words = rest.splitn(3, ' ');
    let (name, what, more) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
    let now = story.now;
    let application = story.applications.get_mut(name).unwrap();
    match what {
        "settles" => argo::settles(application, now),
        "health" => {
            argo::settles(application, now);
            argo::health(application, more);
        }
        "fails" => argo::fails(application, now, more),
        // `says ComparisonError 401 Unauthorized`
        "says" => {
            let (kind, message) = more.split_once(' ').unwrap();
            application["status"]["conditions"] = json!([{"type": kind, "message": message}]);
        }
        "drifts" => {
            application["status"]["sync"]["status"] = json!("OutOfSync");
            application["status"]["resources"] =
                json!([{"kind": "Deployment", "namespace": "gpu", "name": more, "status": "OutOfSync"}]);
        }
        // `runs older content MESSAGE`
        "runs" => argo::runs_older(application, now, more.trim_start_matches("older content ")),
        "waits" => argo::waits(application, now, more),
        "answers" => {
            argo::compared(application);
            application["status"]["reconciledAt"] = json!(now);
        }
        // Its stale list of finalizers, written over the one that the operator had marked.
        "erases" => {
            let rollout = story.unfinished().metadata.name.clone();
            let metadata = &mut story.applications.get_mut(name).unwrap()["metadata"];
            metadata["annotations"][annotation::DELETE_ROLLOUT] = json!(rollout);
            metadata["finalizers"] = json!(["post-delete-finalizer.argocd.argoproj.io"]);
        }
        "deleted" => {
            story.applications.remove(name);
            return;
        }
        _ => panic!("Argo CD does not {what}"),
    }
    story.touched(name);
}

/// `live daemonset gpu/driver 1/3 [pod ...]`, `live custom ClusterPolicy/policy notReady`, `live outdated ...`, `live none`.
pub(super) fn live(story: &mut Story, rest: &str) {
    let (what, more) = rest.split_once(' ').unwrap_or((rest, ""));
    let live = &mut story.facts.live;
    match what {
        "none" => *live = aicr_decide::facts::Live::default(),
        "daemonset" => {
            let mut words = more.splitn(3, ' ');
            let (name, counts) = (words.next().unwrap(), words.next().unwrap());
            let (updated, desired) = counts.split_once('/').unwrap();
            let desired = desired.parse().unwrap();
            live.daemon_sets = vec![DaemonSetSeen {
                name: name.into(),
                desired,
                updated: updated.parse().unwrap(),
                ready: desired,
                pods: words.next().map(str::to_owned).into_iter().collect(),
            }];
        }
        "custom" => {
            let (name, state) = more.split_once(' ').unwrap();
            let name = name.replace('/', " ");
            live.customs = vec![CustomSeen { name, state: Some(state.into()), ..CustomSeen::default() }];
        }
        "outdated" => live.outdated = vec![more.into()],
        "unhealthy" => live.unhealthy = vec![more.into()],
        "stuck" => live.stuck = vec![more.into()],
        _ => panic!("no such live object: {rest}"),
    }
}

/// `job validation succeeds [EVIDENCE]`, `job snapshot succeeds`, `job validation exits 8 CHECK`, `job snapshot waits WHY`, `job assessment deleted`.
pub(super) fn job(story: &mut Story, rest: &str) {
    let mut words = rest.splitn(3, ' ');
    let (stage, what, more) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
    let stage = Stage::parse(stage).unwrap();
    if what == "deleted" {
        return story.jobs.retain(|job| job.stage != stage);
    }
    let now = story.now;
    let job = story.jobs.iter_mut().filter(|job| job.stage == stage).max_by_key(|job| job.attempt).unwrap();
    let name = job.name.clone();
    let report = &mut story.facts.validation.reports;
    job.phase = match what {
        "waits" => JobPhase::Active(Some(more.into())),
        "succeeds" => {
            if stage == Stage::Validation {
                let evidence = (!more.is_empty()).then(|| more.to_owned());
                report.insert(name, Report { failed: vec![], evidence });
            }
            JobPhase::Succeeded { message: String::new(), output: Some("snapshot".into()), refused: None, at: now }
        }
        "exits" => {
            let (code, text) = more.split_once(' ').unwrap();
            let exit: i32 = code.parse().unwrap();
            if exit == 8 && !text.starts_with('[') {
                let evidence = Some("registry.test/aicr/evidence@sha256:1".to_owned());
                report.insert(name, Report { failed: vec![text.into()], evidence });
            }
            let (class, reason) = match exit {
                2 => (Class::Never, Reason::AICRInvalidRequest),
                3 => (Class::Never, Reason::AICRNotFound),
                6 => (Class::Transient, Reason::AICRInternal),
                _ => (Class::Bounded, Reason::AICRInternal),
            };
            JobPhase::Failed { failure: Failure { exit: Some(exit), text: text.into(), class, reason }, at: now }
        }
        _ => panic!("a Job does not {what}"),
    };
}

/// `note gpu-operator plan-digest nonsense`: an ownership annotation edited by hand.
pub(super) fn note(story: &mut Story, rest: &str) {
    let mut words = rest.splitn(3, ' ');
    let (name, key, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let key = format!("{}/{key}", aicr_crds::keys::GROUP);
    assert!(key != annotation::RETRY);
    story.applications.get_mut(name).unwrap()["metadata"]["annotations"][key] = json!(value);
    story.touched(name);
}
