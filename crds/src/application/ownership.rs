//! The annotations that say whose an Application is, and that, with its spec, are enough to rebuild its release.

use std::collections::BTreeMap;

use super::Application;
use crate::{
    digest::Digest,
    keys::annotation,
    plan::{Archive, ChartContent, PlanRelease, ReleaseContent},
};

/// What the ownership annotations say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// UID of the owning runtime.
    pub runtime_uid: String,
    /// Digest of the plan that wrote it.
    pub plan_digest: Digest,
    /// Rollout that wrote it last.
    pub rollout: String,
    /// Release.
    pub release: String,
    /// Component.
    pub component: String,
    /// Releases it depends on.
    pub depends_on: Vec<String>,
    /// Place in the plan, from 0.
    pub order: usize,
    /// Version of the chart archive.
    pub chart_version: String,
    /// Identity of the chart.
    pub chart_content: Digest,
    /// Whether it is a readiness gate.
    pub readiness_gate: bool,
    /// Fingerprint as written.
    pub fingerprint: Digest,
}

/// Which annotation is absent or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Application {application}: annotation {key} is absent or unreadable")]
pub struct OwnershipError {
    /// The Application.
    pub application: String,
    /// The annotation.
    pub key: &'static str,
}

impl Ownership {
    /// What a rollout writes for one release of its target plan.
    pub fn of(release: PlanRelease<'_>, plan: Digest, runtime_uid: &str, rollout: &str, fingerprint: Digest) -> Self {
        Self {
            runtime_uid: runtime_uid.to_owned(),
            plan_digest: plan,
            rollout: rollout.to_owned(),
            release: release.content.id.clone(),
            component: release.content.component.clone(),
            depends_on: release.content.depends_on.clone(),
            order: release.order,
            chart_version: release.archive.version.clone(),
            chart_content: release.content.chart.content,
            readiness_gate: release.content.readiness_gate,
            fingerprint,
        }
    }

    /// Reads them; names the first that is absent or damaged.
    pub fn read(application: &Application) -> Result<Self, OwnershipError> {
        let said = &application.annotations;
        let missing = |key| OwnershipError { application: application.name().to_owned(), key };
        let text = |value: &Option<String>, key| value.clone().ok_or_else(|| missing(key));
        let digest = |value: Option<Digest>, key| value.ok_or_else(|| missing(key));
        let depends_on = text(&said.depends_on, annotation::DEPENDS_ON)?;
        let order = text(&said.order, annotation::ORDER)?;
        let readiness_gate = text(&said.readiness_gate, annotation::READINESS_GATE)?;
        Ok(Self {
            runtime_uid: text(&said.runtime_uid, annotation::RUNTIME_UID)?,
            plan_digest: digest(said.plan_digest, annotation::PLAN_DIGEST)?,
            rollout: text(&said.rollout, annotation::ROLLOUT)?,
            release: text(&said.release, annotation::RELEASE)?,
            component: text(&said.component, annotation::COMPONENT)?,
            depends_on: depends_on.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            order: order.parse().map_err(|_| missing(annotation::ORDER))?,
            chart_version: text(&said.chart_version, annotation::CHART_VERSION)?,
            chart_content: digest(said.chart_content, annotation::CHART_CONTENT)?,
            readiness_gate: readiness_gate.parse().map_err(|_| missing(annotation::READINESS_GATE))?,
            fingerprint: digest(said.fingerprint, annotation::FINGERPRINT)?,
        })
    }

    /// The annotations as they are written.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        [
            (annotation::RUNTIME_UID, self.runtime_uid.clone()),
            (annotation::PLAN_DIGEST, self.plan_digest.to_string()),
            (annotation::ROLLOUT, self.rollout.clone()),
            (annotation::RELEASE, self.release.clone()),
            (annotation::COMPONENT, self.component.clone()),
            (annotation::DEPENDS_ON, self.depends_on.join(",")),
            (annotation::ORDER, self.order.to_string()),
            (annotation::CHART_VERSION, self.chart_version.clone()),
            (annotation::CHART_CONTENT, self.chart_content.to_string()),
            (annotation::READINESS_GATE, self.readiness_gate.to_string()),
            (annotation::FINGERPRINT, self.fingerprint.to_string()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }

    /// Keys under which an Application does not say what `of` would: it is asked at every look, so nothing is written down.
    pub fn differing(
        application: &Application,
        release: PlanRelease<'_>,
        plan: Digest,
        (runtime_uid, rollout): (&str, &str),
        fingerprint: Digest,
    ) -> Vec<&'static str> {
        let (said, content) = (&application.annotations, release.content);
        let gate = if content.readiness_gate { "true" } else { "false" };
        [
            (annotation::RUNTIME_UID, says(said.runtime_uid.as_ref(), runtime_uid)),
            (annotation::PLAN_DIGEST, said.plan_digest == Some(plan)),
            (annotation::ROLLOUT, says(said.rollout.as_ref(), rollout)),
            (annotation::RELEASE, says(said.release.as_ref(), &content.id)),
            (annotation::COMPONENT, says(said.component.as_ref(), &content.component)),
            (annotation::DEPENDS_ON, said.depends_on.as_ref().is_some_and(|text| lists(text, &content.depends_on))),
            (annotation::ORDER, said.order.as_ref().is_some_and(|text| counts(text, release.order))),
            (annotation::CHART_VERSION, says(said.chart_version.as_ref(), &release.archive.version)),
            (annotation::CHART_CONTENT, said.chart_content == Some(content.chart.content)),
            (annotation::READINESS_GATE, says(said.readiness_gate.as_ref(), gate)),
            (annotation::FINGERPRINT, said.fingerprint == Some(fingerprint)),
        ]
        .into_iter()
        .filter(|(_, same)| !same)
        .map(|(key, _)| key)
        .collect()
    }

    /// The release as the plan had it; chart repository, values and namespace come from the spec.
    ///
    /// `None` where the source does not lie under `repository_prefix` or names no digest.
    pub fn rebuild(&self, application: &Application, repository_prefix: &str) -> Option<(ReleaseContent, Archive)> {
        let below = application.source.repo_url.strip_prefix("oci://")?.strip_prefix(repository_prefix)?;
        let content = ReleaseContent {
            id: self.release.clone(),
            component: self.component.clone(),
            namespace: application.destination.namespace.clone(),
            chart: ChartContent { repository: below.strip_prefix('/')?.to_owned(), content: self.chart_content },
            values: application.source.values.clone(),
            depends_on: self.depends_on.clone(),
            readiness_gate: self.readiness_gate,
        };
        let digest = application.source.target_revision.parse().ok()?;
        Some((
            content,
            Archive { id: self.release.clone(), version: self.chart_version.clone(), digest, crds: Vec::new() },
        ))
    }
}

fn says(said: Option<&String>, wanted: &str) -> bool {
    said.is_some_and(|said| said == wanted)
}

/// Whether a text is this list as it is written.
fn lists(text: &str, wanted: &[String]) -> bool {
    if wanted.is_empty() { text.is_empty() } else { text.split(',').eq(wanted.iter().map(String::as_str)) }
}

/// Whether a text is this number as it is written: without a sign, and without zeros before it.
fn counts(text: &str, wanted: usize) -> bool {
    let plain = text == "0" || !text.starts_with(['+', '0']);
    plain && text.parse() == Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_list_that_is_written_otherwise_is_another() {
        assert!(counts("0", 0) && counts("10", 10));
        for other in ["", "01", "+1", "00", "x"] {
            assert!(!counts(other, 1) && !counts(other, 0), "{other:?}");
        }
        let both = ["a".to_owned(), "b".to_owned()];
        assert!(lists("a,b", &both) && lists("", &[]));
        assert!(!lists("a,b,", &both) && !lists("b,a", &both) && !lists(",", &[]));
    }
}
