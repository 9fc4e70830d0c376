//! The conditions in the order of the page, each with its reason, age and message; those of a newer operator last.

use aicr_crds::reason::ConditionType;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::seen::Runtime;
use crate::{
    page::Page,
    text::{Tone, clean},
    time::short,
};

/// Characters of a message that one page has room for.
const MESSAGE_LIMIT: usize = 800;

/// The section, which says so where the operator has said nothing.
pub(super) fn write(page: &mut Page, runtime: &Runtime, namespace: &str, now: Timestamp) {
    page.heading("Conditions");
    let all = ordered(&runtime.status.conditions);
    if all.is_empty() {
        let text = format!("none: the operator has not looked at this runtime; kubectl -n {namespace} get pods");
        page.text(2, "", Tone::Waiting, &text);
        return;
    }
    let widest = all.iter().map(|condition| condition.reason.chars().count()).max().unwrap_or_default();
    for condition in all {
        let since = short(now.duration_since(condition.last_transition_time.0));
        let (kind, status, reason) = (&condition.type_, &condition.status, &condition.reason);
        let row = clean(&format!("{kind:15}  {status:7}  {reason:widest$}  {since:>7}  "));
        page.text(2, &row, tone(condition), &message(condition));
    }
}

fn ordered(conditions: &[Condition]) -> Vec<&Condition> {
    let known = |condition: &&Condition| ConditionType::ALL.iter().any(|kind| kind.as_str() == condition.type_);
    let of = |kind: &ConditionType| conditions.iter().find(|condition| condition.type_ == kind.as_str());
    let newer = conditions.iter().filter(|condition| !known(condition));
    ConditionType::ALL.iter().filter_map(of).chain(newer).collect()
}

fn message(condition: &Condition) -> String {
    let text = condition.message.trim();
    if text.is_empty() {
        return "-".to_owned();
    }
    match text.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}... (kubectl describe clusterruntime cluster shows all of it)", &text[..end]),
        None => text.to_owned(),
    }
}

fn tone(condition: &Condition) -> Tone {
    let kind = ConditionType::ALL.iter().find(|kind| kind.as_str() == condition.type_);
    match (kind, condition.status.as_str()) {
        (Some(ConditionType::Stalled), "True") => Tone::Bad,
        (Some(ConditionType::Reconciling | ConditionType::Stalled) | None, _) => Tone::Plain,
        (
            Some(
                ConditionType::Ready
                | ConditionType::Available
                | ConditionType::Resolved
                | ConditionType::EngineAvailable,
            ),
            status,
        ) => {
            if status == "True" {
                Tone::Good
            } else {
                Tone::Waiting
            }
        }
    }
}
