//! The authority's Secret and the bundle in the webhook configurations.

use aicr_certs::{Bundle, Stored};
use aicr_crds::keys::manager;
use aicr_decide::rollout::ObjectRef;
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::Secret,
    },
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Written, body, bounded, merge};
use crate::error::DriveError;

/// Carries out the writes that the authority needs.
#[derive(Clone)]
pub(crate) struct AuthorityWriter {
    client: Client,
    namespace: String,
}

impl AuthorityWriter {
    /// A writer for the Secret of this namespace.
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    /// Stores the authority's entries in the Secret as it was looked at; other entries stay.
    pub(crate) async fn store(&self, on: &ObjectRef, stored: &Stored) -> Result<Written<()>, DriveError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        // The patch is no act's text: it holds a key.
        merge(&api, &on.name, format!("store the authority in Secret {}", on.name), &entries(on, stored))
            .await
            .map(Written::forget)
    }

    /// Writes the bundle into these entries of the mutating configuration.
    pub(crate) async fn publish_mutating(
        &self,
        name: &str,
        webhooks: &[&str],
        bundle: &Bundle,
    ) -> Result<Written<()>, DriveError> {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        publish(&api, name, "MutatingWebhookConfiguration", webhooks, bundle).await
    }

    /// Writes the bundle into these entries of the validating configuration.
    pub(crate) async fn publish_validating(
        &self,
        name: &str,
        webhooks: &[&str],
        bundle: &Bundle,
    ) -> Result<Written<()>, DriveError> {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        publish(&api, name, "ValidatingWebhookConfiguration", webhooks, bundle).await
    }
}

/// Never an apply: a Helm upgrade that drops an entry would then fail.
async fn publish<K>(
    api: &Api<K>,
    name: &str,
    kind: &str,
    webhooks: &[&str],
    bundle: &Bundle,
) -> Result<Written<()>, DriveError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let params = PatchParams { field_manager: Some(manager::PATCH.to_owned()), ..PatchParams::default() };
    let patch = Patch::Strategic(trust(webhooks, bundle));
    bounded(format!("write the caBundle of {kind} {name}"), api.patch(name, &params, &patch)).await.map(Written::forget)
}

fn trust(webhooks: &[&str], bundle: &Bundle) -> Value {
    let bundle = bundle.base64();
    let entries: Vec<Value> =
        webhooks.iter().map(|name| json!({ "name": name, "clientConfig": { "caBundle": bundle } })).collect();
    json!({ "webhooks": entries })
}

fn entries(on: &ObjectRef, stored: &Stored) -> Value {
    let data: Map<String, Value> = stored
        .entries()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value.map(|bytes| ByteString(bytes.to_vec())))))
        .collect();
    json!({ "metadata": body::guard(on), "data": data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_patched_as_it_was_looked_at_and_an_absent_entry_is_taken_away() {
        let on = ObjectRef { name: "ca".to_owned(), uid: "u".to_owned(), resource_version: "7".to_owned() };
        let stored = Stored::read(|name| (name == aicr_certs::KEY).then_some(b"k".as_slice()));
        let patch = entries(&on, &stored);
        assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "7" }));
        assert_eq!(patch["data"], json!({ "ca.crt": null, "ca.key": "aw==", "ca-previous.crt": null }));
    }
}
