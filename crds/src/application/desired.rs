//! An Application as the operator writes it: always whole, only the keys it owns, never `status` or `operation`.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::{Value, json};

use super::{
    AutomatedSync, IN_CLUSTER, Ownership, Source,
    fingerprint::{fingerprint, policy},
};
use crate::{
    digest::{CanonicalError, Digest},
    keys::label,
    plan::{PlanRelease, ReleaseContent},
};

/// Where Applications and charts live; the same for every release of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Argo CD's namespace.
    pub namespace: String,
    /// AppProject.
    pub project: String,
    /// Registry and prefix, without scheme and without a slash at the end: `host:5000/aicr/lab`.
    pub repository: String,
}

/// The desired Application of one release.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Object name, which is the release's.
    pub name: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Ownership annotations.
    pub ownership: Ownership,
    source: Source,
    destination: String,
    project: String,
    automated: AutomatedSync,
}

impl Desired {
    /// The Application of `release` under `plan`, as `rollout` of the runtime `runtime_uid` writes it.
    pub fn new(
        engine: &Engine,
        release: PlanRelease<'_>,
        plan: Digest,
        runtime_uid: &str,
        rollout: &str,
    ) -> Result<Self, CanonicalError> {
        let print = release.fingerprint(engine)?;
        Ok(Self {
            name: release.content.id.clone(),
            namespace: engine.namespace.clone(),
            ownership: Ownership::of(release, plan, runtime_uid, rollout, print),
            source: source(engine, release),
            destination: release.content.namespace.clone(),
            project: engine.project.clone(),
            automated: AutomatedSync::Enabled,
        })
    }

    /// The same with automated sync switched off, for a suspended engine.
    #[must_use]
    pub fn suspended(self) -> Self {
        Self { automated: AutomatedSync::Disabled, ..self }
    }

    /// Fingerprint of its source and destination.
    pub fn fingerprint(&self) -> Digest {
        self.ownership.fingerprint
    }

    /// Digest of every Application's sync policy but for `automated.enabled`.
    pub fn policy() -> Option<Digest> {
        static POLICY: OnceLock<Option<Digest>> = OnceLock::new();
        *POLICY.get_or_init(|| policy(Some(&sync_policy(AutomatedSync::Enabled))))
    }

    /// The source alone, for an explicit sync of the spec's own source.
    pub fn source(&self) -> Value {
        source_body(&self.source)
    }

    /// The apply body; `uid` is that of the object that should exist (an apply to a vanished object would create it).
    pub fn body(&self, uid: Option<&str>) -> Value {
        let labels = BTreeMap::from([(label::MANAGED_BY, label::MANAGED_BY_VALUE)]);
        let mut metadata = json!({
            "name": self.name,
            "namespace": self.namespace,
            "labels": labels,
            "annotations": self.ownership.annotations(),
        });
        if let Some(uid) = uid {
            metadata["uid"] = json!(uid);
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": metadata,
            "spec": {
                "project": self.project,
                "source": source_body(&self.source),
                "destination": destination_body(&self.destination),
                "revisionHistoryLimit": 1,
                "syncPolicy": sync_policy(self.automated),
            },
        })
    }
}

/// One source, native OCI, by digest; values as text, so that nothing is read and written again.
fn source(engine: &Engine, release: PlanRelease<'_>) -> Source {
    let ReleaseContent { id, chart, values, .. } = release.content;
    Source {
        repo_url: format!("oci://{}/{}", engine.repository, chart.repository),
        target_revision: release.archive.digest.to_string(),
        release_name: id.clone(),
        values: values.clone(),
    }
}

fn source_body(source: &Source) -> Value {
    let mut helm = json!({ "releaseName": source.release_name });
    if !source.values.is_empty() {
        helm["values"] = json!(source.values);
    }
    json!({ "repoURL": source.repo_url, "targetRevision": source.target_revision, "path": ".", "helm": helm })
}

fn destination_body(namespace: &str) -> Value {
    json!({ "server": IN_CLUSTER, "namespace": namespace })
}

impl PlanRelease<'_> {
    /// Fingerprint of this release's Application, worked out once for each plan.
    ///
    /// # Errors
    /// Source and destination have no canonical form.
    pub fn fingerprint(&self, engine: &Engine) -> Result<Digest, CanonicalError> {
        self.print.within(&engine.repository, || {
            let source = source_body(&source(engine, *self));
            fingerprint(Some(&source), None, None, Some(&destination_body(&self.content.namespace)))
        })
    }
}

fn sync_policy(automated: AutomatedSync) -> Value {
    let enabled = match automated {
        AutomatedSync::Enabled => true,
        AutomatedSync::Disabled | AutomatedSync::Absent => false,
    };
    json!({
        "automated": { "enabled": enabled, "prune": true, "selfHeal": true },
        "retry": { "limit": 5, "backoff": { "duration": "5s", "factor": 2, "maxDuration": "3m" } },
        "syncOptions": ["CreateNamespace=true", "ServerSideApply=true", "PruneLast=true"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        application::Application,
        plan::{Archive, ChartContent, Plan},
    };

    fn plan(values: &str) -> Plan {
        let content = ReleaseContent {
            id: "gpu-operator".into(),
            component: "gpu-operator".into(),
            namespace: "gpu-operator".into(),
            chart: ChartContent { repository: "charts/gpu-operator".into(), content: Digest::of(b"chart") },
            values: values.into(),
            depends_on: vec![],
            readiness_gate: false,
        };
        let archive = Archive {
            id: "gpu-operator".into(),
            version: "v26.7.0".into(),
            digest: Digest::of(b"manifest"),
            crds: vec![],
        };
        Plan::new(vec![content], vec![archive]).unwrap()
    }

    fn desired(plan: &Plan) -> Desired {
        let engine =
            Engine { namespace: "argocd".into(), project: "aicr".into(), repository: "10.0.0.1:5000/aicr".into() };
        Desired::new(&engine, plan.release("gpu-operator").unwrap(), plan.digest(), "uid-1", "rollout-x-1").unwrap()
    }

    /// B10, B11, B38.
    #[test]
    fn the_body_has_one_native_oci_source_by_digest_and_nothing_that_argo_cd_owns() {
        let body = desired(&plan("a: 1\n")).body(None);
        assert_eq!(body["spec"]["source"]["repoURL"], "oci://10.0.0.1:5000/aicr/charts/gpu-operator");
        assert_eq!(body["spec"]["source"]["targetRevision"], Digest::of(b"manifest").to_string());
        assert_eq!(body["spec"]["source"]["path"], ".");
        for absent in [
            "/status",
            "/operation",
            "/metadata/finalizers",
            "/spec/sources",
            "/spec/source/chart",
            "/spec/source/ref",
            "/metadata/annotations/argocd.argoproj.io~1refresh",
        ] {
            assert!(body.pointer(absent).is_none(), "{absent}");
        }
        assert!(!body.to_string().contains("{}"), "no empty stanzas: Argo CD removes them");
    }

    /// B69: server-side apply, since no annotation holds a large object; and Argo CD keeps one revision, since we keep
    /// the plans.
    #[test]
    fn argo_cd_applies_on_the_servers_side_prunes_last_and_keeps_one_revision() {
        let body = desired(&plan("a: 1\n")).body(None);
        assert_eq!(body["spec"]["revisionHistoryLimit"], 1);
        let policy = &body["spec"]["syncPolicy"];
        assert_eq!(policy["syncOptions"], json!(["CreateNamespace=true", "ServerSideApply=true", "PruneLast=true"]));
        assert_eq!(policy["automated"], json!({ "enabled": true, "prune": true, "selfHeal": true }));
        assert_eq!(policy["retry"]["limit"], 5);
    }

    /// What `differing` compares is what `annotations` writes.
    #[test]
    fn each_annotation_that_is_not_as_written_is_named_and_no_other() {
        let plan = plan("a: 1\n");
        let wanted = desired(&plan);
        let release = plan.release("gpu-operator").unwrap();
        let differing = |body: Value| {
            let seen: Application = serde_json::from_value(body).unwrap();
            Ownership::differing(&seen, release, plan.digest(), ("uid-1", "rollout-x-1"), wanted.fingerprint())
        };
        assert!(differing(wanted.body(None)).is_empty());
        let keys: Vec<String> = wanted.ownership.annotations().into_keys().collect();
        for key in &keys {
            let mut body = wanted.body(None);
            body["metadata"]["annotations"][key] = json!("other");
            assert_eq!(differing(body), [key.as_str()]);
        }
        assert_eq!(keys.len(), 11);
    }

    /// What a JSON merge patch makes of it (RFC 7386).
    fn without_nulls(value: &mut Value) {
        if let Value::Object(fields) = value {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
    }

    /// B16: what Argo CD stores of a source, through a JSON merge patch that drops nulls, has the same fingerprint.
    #[test]
    fn values_with_nulls_survive_the_way_through_argo_cd() {
        let plan = plan("a: null\nb:\n  c: null\nd: [null, 1]\n");
        let wanted = desired(&plan);
        let mut stored = wanted.body(Some("uid-app"));
        assert!(stored["spec"]["source"]["helm"]["values"].is_string(), "an object would lose its nulls on the way");
        stored["status"] = serde_json::json!({"sync": {"status": "Synced", "comparedTo": {"source": stored["spec"]["source"], "destination": stored["spec"]["destination"]}}});
        without_nulls(&mut stored);
        let seen: Application = serde_json::from_value(stored).unwrap();
        assert_eq!(seen.fingerprint, wanted.fingerprint());
        assert_eq!(seen.status.compared_to, Some(wanted.fingerprint()));
        assert_eq!(Ownership::read(&seen).unwrap(), wanted.ownership);
    }

    #[test]
    fn a_release_can_be_rebuilt_from_its_application() {
        let plan = plan("a: 1\n");
        let seen: Application = serde_json::from_value(desired(&plan).body(Some("uid-app"))).unwrap();
        let (content, archive) = Ownership::read(&seen).unwrap().rebuild(&seen, "10.0.0.1:5000/aicr").unwrap();
        assert_eq!(Plan::new(vec![content], vec![archive]).unwrap().digest(), plan.digest());
    }
}
