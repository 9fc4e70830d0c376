//! What holds a release in deletion: objects with finalizers, and webhooks whose Service is already gone (B24, B53).

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhookConfiguration,
    WebhookClientConfig,
};
use kube::core::ObjectMeta;

use super::managed::{Managed, shown};

/// An object that is in deletion and still there, with what holds it.
pub(super) fn held(kind: &str, metadata: &ObjectMeta) -> Option<String> {
    metadata.deletion_timestamp.as_ref()?;
    let name =
        shown(kind, metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default());
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let held = if finalizers.is_empty() {
        "in deletion".to_owned()
    } else {
        format!("held by finalizer {}", finalizers.join(", "))
    };
    Some(format!("{name} is {held}"))
}

/// A webhook that refuses writes when its Service does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    /// `ValidatingWebhookConfiguration name`.
    pub(super) configuration: String,
    /// Namespace of its Service.
    pub(super) namespace: String,
    /// Name of its Service.
    pub(super) service: String,
}

impl Guard {
    /// What is said where its Service is not there.
    pub(super) fn absent(&self) -> String {
        let Self { configuration, namespace, service } = self;
        format!("{configuration} refuses every write of it: its Service {namespace}/{service} is missing")
    }
}

/// Webhooks that fail closed on any of these objects' groups.
pub(super) fn guards(
    validating: &[ValidatingWebhookConfiguration],
    mutating: &[MutatingWebhookConfiguration],
    managed: &[Managed],
) -> Vec<Guard> {
    let named = |kind: &str, metadata: &ObjectMeta| shown(kind, "", metadata.name.as_deref().unwrap_or_default());
    let one = validating.iter().flat_map(|whole| {
        let configuration = named("ValidatingWebhookConfiguration", &whole.metadata);
        let hooks = whole.webhooks.iter().flatten();
        hooks.filter_map(move |hook| {
            let closed = is_closed(hook.failure_policy.as_deref()) && concerns(hook.rules.as_deref(), managed);
            service(&hook.client_config).filter(|_| closed).map(|service| guard(&configuration, service))
        })
    });
    let other = mutating.iter().flat_map(|whole| {
        let configuration = named("MutatingWebhookConfiguration", &whole.metadata);
        let hooks = whole.webhooks.iter().flatten();
        hooks.filter_map(move |hook| {
            let closed = is_closed(hook.failure_policy.as_deref()) && concerns(hook.rules.as_deref(), managed);
            service(&hook.client_config).filter(|_| closed).map(|service| guard(&configuration, service))
        })
    });
    let mut all: Vec<Guard> = one.chain(other).collect();
    all.dedup();
    all
}

fn guard(configuration: &str, service: &ServiceReference) -> Guard {
    Guard {
        configuration: configuration.to_owned(),
        namespace: service.namespace.clone(),
        service: service.name.clone(),
    }
}

fn service(config: &WebhookClientConfig) -> Option<&ServiceReference> {
    config.service.as_ref()
}

/// `Fail` is the default.
fn is_closed(policy: Option<&str>) -> bool {
    policy != Some("Ignore")
}

fn concerns(rules: Option<&[RuleWithOperations]>, managed: &[Managed]) -> bool {
    let groups = || rules.into_iter().flatten().flat_map(|rule| rule.api_groups.iter().flatten());
    groups().any(|group| managed.iter().any(|one| group == "*" || *group == one.group))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    /// B24, B53.
    #[test]
    fn an_object_in_deletion_is_named_with_its_finalizers() {
        let metadata = |finalizers: &[&str], deleted: Option<&str>| -> ObjectMeta {
            of(json!({ "namespace": "gpu", "name": "p", "finalizers": finalizers, "deletionTimestamp": deleted }))
        };
        let at = Some("2026-11-29T12:00:00Z");
        assert_eq!(
            held("ClusterPolicy", &metadata(&["a.b/clean", "c"], at)).unwrap(),
            "ClusterPolicy gpu/p is held by finalizer a.b/clean, c"
        );
        assert_eq!(held("Pod", &metadata(&[], at)).unwrap(), "Pod gpu/p is in deletion");
        assert_eq!(held("ClusterPolicy", &metadata(&["a.b/clean"], None)), None);
    }

    #[test]
    fn a_webhook_that_fails_closed_on_the_releases_groups_is_looked_at() {
        let hook = |name: &str, group: &str, policy: &str| {
            json!({ "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy,
                "clientConfig": { "service": { "namespace": "gpu", "name": "gpu-webhook" } },
                "rules": [{ "apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }] })
        };
        let whole = |hooks: Vec<Value>| -> Vec<ValidatingWebhookConfiguration> {
            vec![of(json!({ "metadata": { "name": "gpu" }, "webhooks": hooks }))]
        };
        let managed: Vec<Managed> = of(json!([{ "group": "nvidia.com", "kind": "ClusterPolicy", "name": "p" }]));
        let found = guards(&whole(vec![hook("a", "nvidia.com", "Fail")]), &[], &managed);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].absent(),
            "ValidatingWebhookConfiguration gpu refuses every write of it: its Service gpu/gpu-webhook is missing"
        );
        assert_eq!(guards(&whole(vec![hook("a", "nvidia.com", "Ignore")]), &[], &managed), []);
        assert_eq!(guards(&whole(vec![hook("a", "apps", "Fail")]), &[], &managed), []);
    }
}
