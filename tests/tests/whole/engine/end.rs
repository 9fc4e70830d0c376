//! Ends that people bring about: revoked and expired in the middle of a step, which is seen to its end.

use aicr_tests::Stage;
use serde_json::json;

use super::{CONTROLLER, FIRST, SECOND, argo_cd_goes_on, changed, in_its_first_step, retried, until_in_flight, writes};

/// Revoked with a step in flight; what was begun is finished, nothing else starts; a retry takes it from there.
pub(crate) fn a_revoked_rollout_ends_after_its_step_in_flight(stage: &Stage) {
    let name = in_its_first_step(stage, 5);
    let before = writes(stage, SECOND);
    stage.approver(&["revoke", &name, "--reason", "a job has no checkpoint"]).passed();
    assert!(stage.rollout(&name)["metadata"]["labels"]["operator.aicr.run/outcome"].is_null(), "its step is in flight");
    argo_cd_goes_on(stage);
    stage.until_phase(&name, "Revoked", 5);
    let message = stage.until_reason("Stalled", "RolloutRevoked", 1);
    assert!(message.contains("a job has no checkpoint"), "{message}");
    assert_eq!(writes(stage, SECOND), before, "nothing starts any more");
    let again = retried(stage, "after-the-revocation");
    let steps = stage.rollout(&again)["spec"]["steps"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 2, "what its predecessor wrote is looked at again: {steps}");
    stage.approve(&again);
    stage.until_phase(&again, "Succeeded", 5);
}

/// An approval that expires with a step in flight.
pub(crate) fn an_expired_approval_starts_no_further_step(stage: &Stage) {
    let name = changed(stage, 6);
    let before = writes(stage, SECOND);
    stage.lab.stop_part(CONTROLLER).unwrap();
    stage.approver(&["approve", &name, "--yes", "--reason", "a short window", "--expires", "15s"]).passed();
    until_in_flight(stage, &name, FIRST);
    let expiry = stage.rollout(&name)["spec"]["approval"]["expiresAt"].as_str().unwrap().to_owned();
    let expiry: jiff::Timestamp = expiry.parse().unwrap();
    stage.until("the approval to have expired", 1, || {
        let now = jiff::Timestamp::now();
        if now > expiry { Ok(()) } else { Err(format!("{now}, until {expiry}")) }
    });
    argo_cd_goes_on(stage);
    stage.until_phase(&name, "Expired", 5);
    stage.until_reason("Stalled", "RolloutExpired", 1);
    assert_eq!(writes(stage, SECOND), before, "nothing starts any more");
    assert_eq!(stage.rollout(&name)["status"]["releases"][0]["state"], json!("Ready"), "what was begun was finished");
    let again = retried(stage, "after-the-expiry");
    stage.approve(&again);
    stage.until_phase(&again, "Succeeded", 5);
}
