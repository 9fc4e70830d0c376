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
        let missing = |key| OwnershipError { application: application.name().to_owned(), key };
        let text = |key| application.annotation(key).map(str::to_owned).ok_or_else(|| missing(key));
        let digest = |key| text(key)?.parse::<Digest>().map_err(|_| missing(key));
        let depends_on = text(annotation::DEPENDS_ON)?;
        Ok(Self {
            runtime_uid: text(annotation::RUNTIME_UID)?,
            plan_digest: digest(annotation::PLAN_DIGEST)?,
            rollout: text(annotation::ROLLOUT)?,
            release: text(annotation::RELEASE)?,
            component: text(annotation::COMPONENT)?,
            depends_on: depends_on.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            order: text(annotation::ORDER)?.parse().map_err(|_| missing(annotation::ORDER))?,
            chart_version: text(annotation::CHART_VERSION)?,
            chart_content: digest(annotation::CHART_CONTENT)?,
            readiness_gate: text(annotation::READINESS_GATE)?
                .parse()
                .map_err(|_| missing(annotation::READINESS_GATE))?,
            fingerprint: digest(annotation::FINGERPRINT)?,
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
        let content = release.content;
        let says = |key, wanted: &str| application.annotation(key) == Some(wanted);
        let names =
            |key, wanted: Digest| application.annotation(key).and_then(|text| text.parse().ok()) == Some(wanted);
        let depends = application.annotation(annotation::DEPENDS_ON).is_some_and(|text| {
            let all = content.depends_on.iter().map(String::as_str);
            if content.depends_on.is_empty() { text.is_empty() } else { text.split(',').eq(all) }
        });
        [
            (annotation::RUNTIME_UID, says(annotation::RUNTIME_UID, runtime_uid)),
            (annotation::PLAN_DIGEST, names(annotation::PLAN_DIGEST, plan)),
            (annotation::ROLLOUT, says(annotation::ROLLOUT, rollout)),
            (annotation::RELEASE, says(annotation::RELEASE, &content.id)),
            (annotation::COMPONENT, says(annotation::COMPONENT, &content.component)),
            (annotation::DEPENDS_ON, depends),
            (annotation::ORDER, says(annotation::ORDER, &release.order.to_string())),
            (annotation::CHART_VERSION, says(annotation::CHART_VERSION, &release.archive.version)),
            (annotation::CHART_CONTENT, names(annotation::CHART_CONTENT, content.chart.content)),
            (
                annotation::READINESS_GATE,
                says(annotation::READINESS_GATE, if content.readiness_gate { "true" } else { "false" }),
            ),
            (annotation::FINGERPRINT, names(annotation::FINGERPRINT, fingerprint)),
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
