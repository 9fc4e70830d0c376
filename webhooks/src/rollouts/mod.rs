//! RuntimeRollouts: ten rules, in the order of `design/admission.md`; the first that refuses answers.

mod acknowledgement;
mod approval;
mod approvers;
mod consent;
mod creation;
mod deletion;
mod immutability;
mod operator_fields;
mod revocation;
mod separation;
mod stamp;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::consent::Added;
use crate::{
    fields::Fields,
    known::Known,
    policy::Policy,
    review::{Named, Operation, Review, Text},
    verdict::{Denial, Rule, Verdict, Warning},
};

/// The three that people may add.
const CONSENT: [&str; 3] = [APPROVAL, REVOCATION, ACKNOWLEDGEMENTS];
const APPROVAL: &str = "approval";
const REVOCATION: &str = "revocation";
const ACKNOWLEDGEMENTS: &str = "acknowledgements";

const MISSING: &str = "the review lacks the object; the API server's webhook call is broken";

/// A rule: silent, or the refusal.
type Judge = fn(&Case<'_, '_>) -> Result<(), Denial>;

const RULES: [Judge; 10] = [
    creation::judge,
    immutability::judge,
    stamp::judge,
    approvers::judge,
    separation::judge,
    approval::judge,
    revocation::judge,
    acknowledgement::judge,
    operator_fields::judge,
    deletion::judge,
];

/// What is judged of a RuntimeRollout.
#[derive(Debug, Deserialize)]
pub(crate) struct Rollout<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Fields<'a>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    labels: Option<Labels<'a>>,
    #[serde(borrow, default)]
    annotations: Option<Annotations<'a>>,
    #[serde(borrow, default, rename = "ownerReferences")]
    owners: Option<Vec<Unread<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
struct Labels<'a> {
    #[serde(borrow, default, rename = "operator.aicr.run/outcome")]
    outcome: Option<Text<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
struct Annotations<'a> {
    #[serde(borrow, default, rename = "operator.aicr.run/evidence")]
    evidence: Option<Text<'a>>,
    #[serde(borrow, default, rename = "operator.aicr.run/finished-at")]
    finished_at: Option<Text<'a>>,
    #[serde(borrow, default, rename = "operator.aicr.run/retry-spent")]
    retry_spent: Option<Text<'a>>,
    #[serde(borrow, default, rename = "operator.aicr.run/written")]
    written: Option<Unread<'a>>,
}

/// JSON within JSON: read, it would be copied, and only an acknowledgement needs it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Unread<'a>(#[serde(borrow)] &'a RawValue);

impl PartialEq for Unread<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

#[derive(Debug, Deserialize)]
struct Status<'a> {
    #[serde(borrow, default)]
    phase: Option<Text<'a>>,
}

impl Named for Rollout<'_> {
    fn name(&self) -> Option<&str> {
        self.metadata.name.as_ref().map(Text::as_str)
    }
}

impl Rollout<'_> {
    fn outcome(&self) -> Option<&Text<'_>> {
        self.metadata.labels.as_ref()?.outcome.as_ref()
    }

    fn is_ended(&self) -> bool {
        self.outcome().is_some_and(|outcome| !outcome.as_str().is_empty())
    }

    fn is_validating(&self) -> bool {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_ref());
        phase.is_some_and(|phase| phase.as_str() == "Validating")
    }
}

/// What is done, with the objects that this always has.
enum Act<'r, 'a> {
    Create(&'r Rollout<'a>),
    Update { old: &'r Rollout<'a>, new: &'r Rollout<'a> },
    Delete(&'r Rollout<'a>),
}

/// One review with all that rules read.
struct Case<'r, 'a> {
    act: Act<'r, 'a>,
    added: Added,
    review: &'r Review<'a, Rollout<'a>>,
    policy: &'r Policy,
    known: &'r Known,
    now: Timestamp,
}

impl Case<'_, '_> {
    fn is_operator(&self) -> bool {
        self.policy.is_operator(&self.review.user)
    }

    /// The rollout as stored, and what people add to it; only where they add anything.
    fn consent(&self) -> Option<(&Rollout<'_>, &Added)> {
        match &self.act {
            Act::Update { old, .. } if !self.added.is_empty() => Some((old, &self.added)),
            Act::Update { .. } | Act::Create(_) | Act::Delete(_) => None,
        }
    }
}

/// Judges one write.
pub(crate) fn judge<'a>(review: &Review<'a, Rollout<'a>>, policy: &Policy, known: &Known, now: Timestamp) -> Verdict {
    check(review, policy, known, now).into()
}

fn check<'a>(
    review: &Review<'a, Rollout<'a>>,
    policy: &Policy,
    known: &Known,
    now: Timestamp,
) -> Result<Vec<Warning>, Denial> {
    let act = act(review)?;
    let added = match &act {
        Act::Update { old, new } => Added::between(old, new)?,
        Act::Create(_) | Act::Delete(_) => Added::default(),
    };
    let case = Case { act, added, review, policy, known, now };
    RULES.iter().try_for_each(|rule| rule(&case))?;
    Ok(separation::warning(&case).into_iter().collect())
}

fn act<'r, 'a>(review: &'r Review<'a, Rollout<'a>>) -> Result<Act<'r, 'a>, Denial> {
    match (review.operation, &review.old, &review.object) {
        (Operation::Create, _, Some(new)) => Ok(Act::Create(new)),
        (Operation::Update, Some(old), Some(new)) => Ok(Act::Update { old, new }),
        (Operation::Delete, Some(old), _) => Ok(Act::Delete(old)),
        (Operation::Create | Operation::Update | Operation::Delete | Operation::Connect, _, _) => {
            Err(Rule::Readable.forbids(MISSING))
        }
    }
}

#[cfg(test)]
mod tests;
