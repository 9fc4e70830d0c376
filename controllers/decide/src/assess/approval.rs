//! The approval table: which step waits for a person, and why.

use aicr_crds::rollout::{CrdChange, CrdEffect, Need, Operation, StepApproval, Verdict};

use crate::message::{bounded, listed};

/// How many CRDs a reason names.
const NAMED: usize = 5;

/// What the table looks at.
pub(super) struct Case<'a> {
    /// What the step does.
    pub(super) operation: Operation,
    /// What differs between old and new.
    pub(super) content: Content,
    /// AICR's verdict.
    pub(super) verdict: Option<Verdict>,
    /// CRDs of a new chart.
    pub(super) crds: &'a [CrdChange],
    /// Whether a rollout that did not succeed tried the same, or moved what this takes back.
    pub(super) after_failure: AfterFailure,
}

/// What differs between what is there and what will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The chart, and perhaps the values that AICR gives it.
    Chart,
    /// The chart and the values, where a person has changed the spec and no rollout has carried that yet.
    EditedChart,
    /// The values alone.
    Values,
    /// Nothing: a retry keeps a step for what its predecessor wrote.
    Same,
}

/// How a step stands to rollouts that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// No such rollout.
    None,
    /// The rollout before had this target and did not succeed.
    Retry,
    /// Such a rollout moved the release, and this takes it back.
    TakesBack,
}

/// The table of `design/rules.md` section 3 and of "Approving a rollout".
pub(super) fn approval(case: &Case<'_>) -> StepApproval {
    let (need, reason) = match case.operation {
        Operation::Verify => return given(Need::NotRequired, "runs a readiness gate again"),
        Operation::Install => (Need::Required, "installs a release".to_owned()),
        Operation::Remove => (Need::Required, "removes a release".to_owned()),
        Operation::Adopt => (Need::Required, "takes over a release".to_owned()),
        Operation::Upgrade => upgrade(case),
    };
    match (need, case.after_failure) {
        (Need::Required, _) | (Need::NotRequired, AfterFailure::None) => given(need, &reason),
        (Need::NotRequired, AfterFailure::Retry) => given(Need::Required, "retries a rollout that did not succeed"),
        (Need::NotRequired, AfterFailure::TakesBack) => {
            given(Need::Required, "takes back a release that an unsuccessful rollout moved")
        }
    }
}

fn upgrade(case: &Case<'_>) -> (Need, String) {
    match case.content {
        Content::Chart | Content::EditedChart => {}
        Content::Values => return (Need::Required, "Unknown: new values, which AICR does not assess".to_owned()),
        Content::Same => return (Need::NotRequired, "the content is there already".to_owned()),
    }
    if !case.crds.is_empty() {
        return (Need::Required, crds(case.crds));
    }
    match case.verdict {
        // What a person set rides along with a new chart; nobody would look at it.
        Some(Verdict::Safe) if case.content == Content::EditedChart => {
            (Need::Required, "Unknown: new values of an edited spec, which AICR does not assess".to_owned())
        }
        Some(Verdict::Safe) => (Need::NotRequired, "AICR assesses it safe, and no chart owns CRDs".to_owned()),
        Some(verdict @ (Verdict::Manual | Verdict::Unknown | Verdict::Unversioned | Verdict::Blocked)) => {
            (Need::Required, format!("AICR assesses it {verdict}"))
        }
        None => (Need::Required, "AICR gives no verdict".to_owned()),
    }
}

fn crds(crds: &[CrdChange]) -> String {
    let named = |effect: CrdEffect| -> Vec<&str> {
        crds.iter().filter(|crd| crd.change == effect).map(|crd| crd.name.as_str()).collect()
    };
    let mut parts = Vec::new();
    for (effect, words) in [(CrdEffect::Added, "adds"), (CrdEffect::Changed, "changes"), (CrdEffect::Dropped, "drops")]
    {
        let touched = named(effect);
        if !touched.is_empty() {
            parts.push(format!("{words} CRDs {}", listed(&touched, NAMED)));
        }
    }
    let losses =
        if named(CrdEffect::Dropped).is_empty() { "" } else { "; dropped CRDs take their custom resources with them" };
    format!("{}{losses}", parts.join(", "))
}

fn given(need: Need, reason: &str) -> StepApproval {
    StepApproval { need, reason: bounded(reason, 512) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn crd(change: CrdEffect) -> Vec<CrdChange> {
        vec![CrdChange { name: "clusterpolicies.nvidia.com".into(), change }]
    }

    #[rstest]
    #[case::install(Operation::Install, Content::Chart, None, &[], AfterFailure::None, Need::Required, "installs")]
    #[case::safe(Operation::Upgrade, Content::Chart, Some(Verdict::Safe), &[], AfterFailure::None, Need::NotRequired, "safe")]
    #[case::safe_and_edited(Operation::Upgrade, Content::EditedChart, Some(Verdict::Safe), &[], AfterFailure::None, Need::Required, "Unknown: new values of an edited spec")]
    #[case::manual(Operation::Upgrade, Content::Chart, Some(Verdict::Manual), &[], AfterFailure::None, Need::Required, "manual")]
    #[case::unknown(Operation::Upgrade, Content::Chart, Some(Verdict::Unknown), &[], AfterFailure::None, Need::Required, "unknown")]
    #[case::unversioned(Operation::Upgrade, Content::Chart, Some(Verdict::Unversioned), &[], AfterFailure::None, Need::Required, "unversioned")]
    #[case::no_verdict(Operation::Upgrade, Content::Chart, None, &[], AfterFailure::None, Need::Required, "no verdict")]
    #[case::values(Operation::Upgrade, Content::Values, None, &[], AfterFailure::None, Need::Required, "Unknown")]
    #[case::safe_with_crds(Operation::Upgrade, Content::Chart, Some(Verdict::Safe), &crd(CrdEffect::Changed), AfterFailure::None, Need::Required, "changes CRDs clusterpolicies")]
    #[case::drops(Operation::Upgrade, Content::Chart, Some(Verdict::Safe), &crd(CrdEffect::Dropped), AfterFailure::None, Need::Required, "take their custom resources with them")]
    #[case::remove(Operation::Remove, Content::Chart, None, &[], AfterFailure::None, Need::Required, "removes")]
    #[case::adopt(Operation::Adopt, Content::Same, None, &[], AfterFailure::None, Need::Required, "takes over")]
    #[case::retry(Operation::Upgrade, Content::Chart, Some(Verdict::Safe), &[], AfterFailure::Retry, Need::Required, "retries")]
    #[case::takes_back(Operation::Upgrade, Content::Chart, Some(Verdict::Safe), &[], AfterFailure::TakesBack, Need::Required, "takes back")]
    #[case::same_again(Operation::Upgrade, Content::Same, None, &[], AfterFailure::Retry, Need::Required, "retries")]
    #[case::verify(Operation::Verify, Content::Same, None, &[], AfterFailure::Retry, Need::NotRequired, "gate")]
    fn each_row_of_the_table(
        #[case] operation: Operation,
        #[case] content: Content,
        #[case] verdict: Option<Verdict>,
        #[case] crds: &[CrdChange],
        #[case] after_failure: AfterFailure,
        #[case] need: Need,
        #[case] words: &str,
    ) {
        let given = approval(&Case { operation, content, verdict, crds, after_failure });
        assert_eq!(given.need, need);
        assert!(given.reason.contains(words), "{}", given.reason);
    }
}
