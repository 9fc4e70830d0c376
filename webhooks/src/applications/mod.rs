//! Argo CD's Applications, written by the operator: only its own, where they belong, and removed only in an approved step.

mod operation;
mod ownership;
mod removal;

use std::borrow::Cow;

use aicr_crds::{
    application::{Engine, IN_CLUSTER},
    keys::{annotation, label},
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    fields::{Fields, same},
    known::Known,
    policy::Policy,
    review::{Named, Operation, Review, Text},
    verdict::{Denial, Rule, Verdict},
};

/// What is judged of an Application.
#[derive(Debug, Deserialize)]
pub(crate) struct App<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Fields<'a>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    operation: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    labels: Option<Labels<'a>>,
    #[serde(borrow, default)]
    annotations: Fields<'a>,
    #[serde(borrow, default)]
    finalizers: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    deletion_timestamp: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct Labels<'a> {
    #[serde(borrow, default, rename = "app.kubernetes.io/managed-by")]
    managed_by: Option<Text<'a>>,
}

impl Named for App<'_> {
    fn name(&self) -> Option<&str> {
        self.metadata.name.as_ref().map(Text::as_str)
    }
}

impl<'a> App<'a> {
    fn annotation(&self, key: &str) -> Option<Cow<'a, str>> {
        self.metadata.annotations.text(key).map(Text::into_inner)
    }

    fn has_label(&self) -> bool {
        let managed_by = self.metadata.labels.as_ref().and_then(|labels| labels.managed_by.as_ref());
        managed_by.is_some_and(|value| value.as_str() == label::MANAGED_BY_VALUE)
    }

    /// The label or the owner's UID: one that lost only its label is an edit of ours.
    fn is_ours(&self) -> bool {
        self.has_label() || self.metadata.annotations.get(annotation::RUNTIME_UID).is_some()
    }

    fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// What is done, with the objects that this always has.
#[derive(Clone, Copy)]
enum Act<'r, 'a> {
    Create(&'r App<'a>),
    Update { old: &'r App<'a>, new: &'r App<'a> },
    Delete(&'r App<'a>),
}

impl<'r, 'a> Act<'r, 'a> {
    /// The object as it will be, and as it was.
    fn written(self) -> Option<(&'r App<'a>, Option<&'r App<'a>>)> {
        match self {
            Self::Create(new) => Some((new, None)),
            Self::Update { old, new } => Some((new, Some(old))),
            Self::Delete(_) => None,
        }
    }
}

struct Case<'r, 'a> {
    act: Act<'r, 'a>,
    name: &'r str,
    policy: &'r Policy,
    known: &'r Known,
    now: Timestamp,
}

type Judge = fn(&Case<'_, '_>) -> Result<(), Denial>;

const RULES: [Judge; 5] = [ownership::judge, placement, removal::judge, operation::judge, operation::status];

/// Judges one write.
pub(crate) fn judge<'a>(review: &Review<'a, App<'a>>, policy: &Policy, known: &Known, now: Timestamp) -> Verdict {
    check(review, policy, known, now).map(|()| Vec::new()).into()
}

fn check<'a>(review: &Review<'a, App<'a>>, policy: &Policy, known: &Known, now: Timestamp) -> Result<(), Denial> {
    // Argo CD and people never wait for us: the matchConditions keep them away, and this does once more.
    if !policy.is_operator(&review.user) {
        return Ok(());
    }
    if review.namespace.as_str() != policy.engine.namespace {
        return Err(Rule::Ownership.forbids("the operator writes Applications in the engine's namespace alone"));
    }
    let case = Case { act: act(review)?, name: review.name(), policy, known, now };
    RULES.iter().try_for_each(|rule| rule(&case))
}

fn act<'r, 'a>(review: &'r Review<'a, App<'a>>) -> Result<Act<'r, 'a>, Denial> {
    match (review.operation, &review.old, &review.object) {
        (Operation::Create, _, Some(new)) => Ok(Act::Create(new)),
        (Operation::Update, Some(old), Some(new)) => Ok(Act::Update { old, new }),
        (Operation::Delete, Some(old), _) => Ok(Act::Delete(old)),
        (Operation::Create | Operation::Update | Operation::Delete | Operation::Connect, _, _) => {
            Err(Rule::Readable.forbids("the review lacks the object; the API server's webhook call is broken"))
        }
    }
}

/// Project, destination and source, as far as this write sets them: what somebody else changed must not keep the
/// operator from suspending or orphaning. Project and registry are flags, and in a rolling upgrade the leader's may be
/// others than this replica's: such a refusal is not final.
fn placement(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((new, old)) = case.act.written() else { return Ok(()) };
    let sets = |field: &str| old.is_none_or(|old| !same(old.spec.get(field), new.spec.get(field)));
    let Engine { project, repository, .. } = &case.policy.engine;
    if sets("project") && new.spec.text("project").is_none_or(|text| text.as_str() != project) {
        return Err(Rule::Placement.conflicts(
            "spec.project is not the one that the chart names; try again once every replica has the same flags",
        ));
    }
    if sets("destination") && !is_in_cluster(&new.spec) {
        return Err(Rule::Placement
            .forbids("spec.destination is not this cluster by its server, with a namespace; report this defect"));
    }
    if sets("source") && !is_in_registry(&new.spec, repository) {
        return Err(Rule::Placement.conflicts(
            "spec.source is no chart by digest below the chart's registry prefix; try again once every replica has the same flags",
        ));
    }
    for field in ["sources", "sourceHydrator"] {
        if sets(field) && new.spec.get(field).is_some() {
            return Err(Rule::Placement
                .forbids("an Application of the operator has one source; leave sources and sourceHydrator out"));
        }
    }
    Ok(())
}

fn is_in_cluster(spec: &Fields<'_>) -> bool {
    let Some(destination) = spec.get("destination").and_then(|value| Fields::of(value).ok()) else { return false };
    let text = |name| destination.text(name).map(Text::into_inner).unwrap_or_default();
    text("server") == IN_CLUSTER && text("name").is_empty() && !text("namespace").is_empty()
}

fn is_in_registry(spec: &Fields<'_>, repository: &str) -> bool {
    let Some(source) = spec.get("source").and_then(|value| Fields::of(value).ok()) else { return false };
    let text = |name| source.text(name).map(Text::into_inner).unwrap_or_default();
    let url = text("repoURL");
    let below = url.strip_prefix("oci://").and_then(|url| url.strip_prefix(repository)?.strip_prefix('/'));
    let is_below = below.is_some_and(|path| !path.is_empty() && !path.split('/').any(|part| part == ".."));
    is_below && text("targetRevision").parse::<aicr_crds::Digest>().is_ok()
}

#[cfg(test)]
mod tests;
