//! The annotations of an Application that mean something, read once: decisions ask for them all the time.

use std::collections::BTreeMap;

use crate::{digest::Digest, keys::annotation};

/// What the annotations say, as texts; a digest that cannot be read is as if absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// UID of the owning runtime.
    pub runtime_uid: Option<String>,
    /// Digest of the plan that wrote it.
    pub plan_digest: Option<Digest>,
    /// Rollout that wrote it last.
    pub rollout: Option<String>,
    /// Release.
    pub release: Option<String>,
    /// Component.
    pub component: Option<String>,
    /// Releases it depends on, comma-separated.
    pub depends_on: Option<String>,
    /// Place in the plan, from 0.
    pub order: Option<String>,
    /// Version of the chart archive.
    pub chart_version: Option<String>,
    /// Identity of the chart.
    pub chart_content: Option<Digest>,
    /// Whether it is a readiness gate.
    pub readiness_gate: Option<String>,
    /// Fingerprint as written.
    pub fingerprint: Option<Digest>,
    /// UID of the runtime whose deletion orphaned it.
    pub orphaned_from: Option<String>,
    /// Rollout whose approved Remove step deletes it.
    pub delete_rollout: Option<String>,
    /// The comparison that Argo CD is asked for.
    pub refresh: Option<String>,
    /// Whether Argo CD leaves it alone.
    pub skip_reconcile: Option<String>,
}

impl Annotations {
    /// Reads them; what means nothing here is dropped.
    pub(super) fn read(all: BTreeMap<String, String>) -> Self {
        let mut read = Self::default();
        for (key, value) in all {
            read.set(&key, Some(value));
        }
        read
    }

    /// Sets one, or takes it off, by its key.
    pub fn set(&mut self, key: &str, value: Option<String>) {
        let digest = |value: Option<String>| value.and_then(|text| text.parse::<Digest>().ok());
        match key {
            annotation::RUNTIME_UID => self.runtime_uid = value,
            annotation::PLAN_DIGEST => self.plan_digest = digest(value),
            annotation::ROLLOUT => self.rollout = value,
            annotation::RELEASE => self.release = value,
            annotation::COMPONENT => self.component = value,
            annotation::DEPENDS_ON => self.depends_on = value,
            annotation::ORDER => self.order = value,
            annotation::CHART_VERSION => self.chart_version = value,
            annotation::CHART_CONTENT => self.chart_content = digest(value),
            annotation::READINESS_GATE => self.readiness_gate = value,
            annotation::FINGERPRINT => self.fingerprint = digest(value),
            annotation::ORPHANED_FROM => self.orphaned_from = value,
            annotation::DELETE_ROLLOUT => self.delete_rollout = value,
            annotation::ARGO_REFRESH => self.refresh = value,
            annotation::ARGO_SKIP_RECONCILE => self.skip_reconcile = value,
            _ => {}
        }
    }
}
