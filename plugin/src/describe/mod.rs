//! A rollout for a person to decide about, as text and as a document; pure.

mod approval;
mod header;
mod report;
mod steps;

use aicr_crds::{
    RuntimeRollout,
    rollout::{Approval, SCHEMA_VERSION},
};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::report::Assessment;
use crate::{
    client::Target,
    page::Page,
    text::Tone,
    time::{relative, stamp},
    view,
};

/// Everything that `describe` prints.
pub(crate) fn render(rollout: &RuntimeRollout, assessment: &Assessment, now: Timestamp) -> String {
    let mut page = Page::default();
    header::write(&mut page, rollout, now);
    approval::write(&mut page, rollout, now);
    header::times(&mut page, rollout, now);
    steps::write(&mut page, rollout, now);
    report::write(&mut page, assessment);
    page.blank();
    let digest = binding_digest(rollout).unwrap_or_else(|why| why);
    page.field("Binding digest", Tone::Plain, &digest);
    page.finish()
}

/// What `describe -o json` prints: the object, its phase, what an approval must bind, and AICR's report.
pub(crate) fn document(rollout: &RuntimeRollout, assessment: &Assessment) -> Value {
    json!({
        "rollout": rollout,
        "phase": phase(rollout),
        "bindingDigest": binding_digest(rollout).ok(),
        "assessment": assessment.document(),
    })
}

/// What `approve` shows before it asks: where, who, until when, and the steps that wait.
pub(crate) fn request(rollout: &RuntimeRollout, approval: &Approval, target: &Target, now: Timestamp) -> String {
    let waiting: Vec<_> = view::to_approve(rollout);
    let until = approval.expires_at.0;
    let mut page = Page::default();
    page.field("Context", Tone::Plain, &target.context);
    page.field("Cluster", Tone::Plain, &format!("{} ({})", target.cluster, target.server));
    page.field("User", Tone::Plain, &approval.approved_by.username);
    page.field("Transition", Tone::Plain, &header::transition(rollout));
    page.field("Reason", Tone::Plain, &approval.reason);
    page.field("Until", Tone::Plain, &format!("{} ({})", stamp(until), relative(until, now)));
    page.field("Binding digest", Tone::Plain, &approval.binding_digest.to_string());
    page.heading(&format!("Steps to approve ({} of {})", waiting.len(), rollout.spec.steps.len()));
    steps::table(&mut page, rollout, &waiting, now);
    steps::warnings(&mut page, &waiting);
    page.blank();
    page.finish()
}

fn phase(rollout: &RuntimeRollout) -> &'static str {
    view::phase(rollout).map_or("Pending", aicr_crds::rollout::Phase::as_str)
}

/// What an approval binds, or why this plugin cannot say.
fn binding_digest(rollout: &RuntimeRollout) -> Result<String, String> {
    let version = &rollout.spec.schema_version;
    if version != SCHEMA_VERSION {
        return Err(format!("unknown: the rollout has schema {version:?}, written by a newer operator"));
    }
    rollout.spec.binding_digest().map(|digest| digest.to_string()).map_err(|error| format!("unknown: {error}"))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use insta::assert_snapshot;

    use super::*;
    use crate::{approve, fixture};

    fn described(rollout: &RuntimeRollout, assessment: &Assessment) -> String {
        strip_str(&render(rollout, assessment, fixture::now())).to_string()
    }

    #[test]
    fn a_first_install_that_has_not_started() {
        assert_snapshot!(described(&fixture::pending(), &Assessment::None));
    }

    #[test]
    fn an_upgrade_that_waits_for_an_approver() {
        assert_snapshot!(described(&fixture::awaiting_approval(), &fixture::assessment()));
    }

    #[test]
    fn an_upgrade_in_flight() {
        let missing = Assessment::Unavailable("ConfigMap aicr-system/aicr-assessment-1 is gone".into());
        assert_snapshot!(described(&fixture::in_flight(), &missing));
    }

    #[test]
    fn an_upgrade_that_waits_for_an_acknowledgement() {
        assert_snapshot!(described(&fixture::awaiting_acknowledgement(), &Assessment::None));
    }

    #[test]
    fn an_upgrade_that_succeeded() {
        assert_snapshot!(described(&fixture::succeeded(), &fixture::assessment()));
    }

    #[test]
    fn what_is_shown_before_the_question() {
        let rollout = fixture::awaiting_approval();
        let approval =
            approve::prepare(&rollout, fixture::now(), approve::Expiry::Deadline, &fixture::author()).unwrap();
        let target = Target {
            context: "staging".into(),
            cluster: "staging-eu".into(),
            server: "https://staging.example.com/".into(),
        };
        assert_snapshot!(strip_str(&request(&rollout, &approval, &target, fixture::now())).to_string());
    }

    #[test]
    fn a_message_cannot_paint_over_the_page() {
        let mut rollout = fixture::awaiting_approval();
        rollout.status.as_mut().unwrap().message = Some("\x1b[2Jnothing to see\r".into());
        rollout.spec.steps[0].crds[0].name = "\x1b[8mhidden".into();
        let text = described(&rollout, &Assessment::None);
        assert!(text.contains("\u{fffd}[2Jnothing to see\u{fffd}"), "{text}");
        assert!(text.contains("\u{fffd}[8mhidden"), "{text}");
    }

    #[test]
    fn the_document_gives_what_an_approval_by_plain_api_needs() {
        let rollout = fixture::awaiting_approval();
        let document = document(&rollout, &fixture::assessment());
        assert_eq!(document["bindingDigest"], json!(rollout.spec.binding_digest().unwrap()));
        assert_eq!(document["rollout"]["metadata"]["resourceVersion"], "4711");
        assert_eq!(document["phase"], "AwaitingApproval");
        assert_eq!(document["assessment"]["report"]["summary"]["components"], 3);
        assert!(serde_saphyr::to_string(&document).unwrap().contains("bindingDigest: sha256:"));
    }

    #[test]
    fn a_newer_schema_has_no_digest_here() {
        let mut rollout = fixture::awaiting_approval();
        rollout.spec.schema_version = "2".into();
        assert_eq!(document(&rollout, &Assessment::None)["bindingDigest"], Value::Null);
        assert!(described(&rollout, &Assessment::None).contains("unknown: the rollout has schema \"2\""));
    }
}
