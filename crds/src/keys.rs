//! Labels, annotations, finalizers and field managers: every key the operator reads or writes, once.

/// API group of both kinds.
pub const GROUP: &str = "operator.aicr.run";

/// Labels.
pub mod label {
    /// Who manages an object; [`MANAGED_BY_VALUE`] on all that the operator writes.
    pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
    /// The value of [`MANAGED_BY`] on our objects.
    pub const MANAGED_BY_VALUE: &str = "aicr-operator";
    /// What a ConfigMap in the operator namespace is: `plan`, `snapshot`, `assessment` or `runs`.
    pub const ROLE: &str = "operator.aicr.run/role";
    /// Schema of a plan ConfigMap.
    pub const SCHEMA_VERSION: &str = "operator.aicr.run/schema-version";
    /// Stage of an AICR Job.
    pub const STAGE: &str = "operator.aicr.run/stage";
    /// Hash of a Job's inputs, its first 32 hex digits.
    pub const INPUT: &str = "operator.aicr.run/input";
    /// Run ID of a Job.
    pub const RUN: &str = "operator.aicr.run/run";
    /// Which attempt at its inputs a Job is, from 1.
    pub const ATTEMPT: &str = "operator.aicr.run/attempt";
    /// Terminal outcome of a rollout; set once.
    pub const OUTCOME: &str = "operator.aicr.run/outcome";
    /// AICR's own run ID, on what its launchers make.
    pub const AICR_RUN_ID: &str = "aicr.run/run-id";
}

/// Annotations.
pub mod annotation {
    /// Token on the runtime: another attempt at the current target; a value acts once.
    pub const RETRY: &str = "operator.aicr.run/retry";
    /// Token on the runtime: a new snapshot; a value acts once.
    pub const RESNAPSHOT: &str = "operator.aicr.run/resnapshot";
    /// JSON list of `{user, at}` on the runtime: who changed its spec, stamped by the mutating webhook.
    pub const SPEC_CHANGED_BY: &str = "operator.aicr.run/spec-changed-by";
    /// Plan digest, on a plan ConfigMap and on an Application.
    pub const PLAN_DIGEST: &str = "operator.aicr.run/plan-digest";
    /// UID of the runtime that owns an Application.
    pub const RUNTIME_UID: &str = "operator.aicr.run/runtime-uid";
    /// Release that an Application is.
    pub const RELEASE: &str = "operator.aicr.run/release";
    /// AICR component that a release belongs to.
    pub const COMPONENT: &str = "operator.aicr.run/component";
    /// Comma-separated releases that a release depends on.
    pub const DEPENDS_ON: &str = "operator.aicr.run/depends-on";
    /// Place of a release in its plan, from 0.
    pub const ORDER: &str = "operator.aicr.run/order";
    /// Version of the chart archive.
    pub const CHART_VERSION: &str = "operator.aicr.run/chart-version";
    /// What counts as the chart's identity in the plan's digest.
    pub const CHART_CONTENT: &str = "operator.aicr.run/chart-content";
    /// `true` where the release is a readiness gate.
    pub const READINESS_GATE: &str = "operator.aicr.run/readiness-gate";
    /// Fingerprint of source and destination as written.
    pub const FINGERPRINT: &str = "operator.aicr.run/fingerprint";
    /// Rollout that wrote an Application last.
    pub const ROLLOUT: &str = "operator.aicr.run/rollout";
    /// UID of the runtime whose deletion orphaned an Application.
    pub const ORPHANED_FROM: &str = "operator.aicr.run/orphaned-from";
    /// Rollout whose approved Remove step deletes an Application.
    pub const DELETE_ROLLOUT: &str = "operator.aicr.run/delete-rollout";
    /// Evidence reference of a validated success.
    pub const EVIDENCE: &str = "operator.aicr.run/evidence";
    /// When a rollout ended, RFC 3339.
    pub const FINISHED_AT: &str = "operator.aicr.run/finished-at";
    /// Retry token that was seen, and spent, while a rollout was unfinished.
    pub const RETRY_SPENT: &str = "operator.aicr.run/retry-spent";
    /// JSON map of release to `{uid, ready}`: what a rollout did, kept outside status.
    pub const WRITTEN: &str = "operator.aicr.run/written";
    /// JSON on a snapshot: what it saw of its triggers.
    pub const SNAPSHOT_RECORD: &str = "operator.aicr.run/snapshot-record";
    /// JSON list of `{input, spec, plan}` on a snapshot: which plans were resolved from it, newest last.
    pub const RESOLVED: &str = "operator.aicr.run/resolved";
    /// Expiry of the token in the repo-creds Secret, RFC 3339.
    pub const TOKEN_EXPIRES_AT: &str = "operator.aicr.run/token-expires-at";
    /// Argo CD's request for a comparison: `normal` or `hard`; Argo CD takes it off.
    pub const ARGO_REFRESH: &str = "argocd.argoproj.io/refresh";
    /// With `true` Argo CD leaves an Application alone.
    pub const ARGO_SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
}

/// Finalizers.
pub mod finalizer {
    /// On the ClusterRuntime: its deletion policy is still to run.
    pub const CLEANUP: &str = "operator.aicr.run/cleanup";
    /// The three names that make Argo CD delete a release's resources with its Application
    /// (`pkg/apis/application/v1alpha1/application_defaults.go`); its hook finalizers do not.
    pub const ARGO_CASCADE: [&str; 3] = [
        "resources-finalizer.argocd.argoproj.io",
        "resources-finalizer.argocd.argoproj.io/foreground",
        "resources-finalizer.argocd.argoproj.io/background",
    ];
}

/// Field managers.
pub mod manager {
    /// Server-side apply of whole objects.
    pub const APPLY: &str = "aicr-operator";
    /// Narrow merge and JSON patches.
    pub const PATCH: &str = "aicr-operator-patch";
}

/// Values of the `role` label.
pub mod role {
    /// A plan.
    pub const PLAN: &str = "plan";
    /// A snapshot.
    pub const SNAPSHOT: &str = "snapshot";
    /// An upgrade-check report.
    pub const ASSESSMENT: &str = "assessment";
    /// What is remembered of failed AICR runs.
    pub const RUNS: &str = "runs";
}
