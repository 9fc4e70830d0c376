//! What the certificates look at: the authority's Secret and the two webhook configurations, each by name.

use aicr_certs::Stored;
use aicr_decide::rollout::ObjectRef;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig},
    core::v1::Secret,
};
use kube::{Api, Client};

use super::CertificateSettings;
use crate::watch::{Changes, Feed, Shelf, named, shelf};

/// The stores.
pub(super) struct Seen {
    secret: Shelf<Secret>,
    mutating: Shelf<MutatingWebhookConfiguration>,
    validating: Shelf<ValidatingWebhookConfiguration>,
    pub(super) changes: Changes,
}

/// What fills them.
pub(super) struct SeenFeeds {
    secret: Feed<Secret>,
    mutating: Feed<MutatingWebhookConfiguration>,
    validating: Feed<ValidatingWebhookConfiguration>,
}

/// Both, empty.
pub(super) fn watches(client: &Client, settings: &CertificateSettings) -> (Seen, SeenFeeds) {
    let changes = Changes::new();
    let secrets = Api::namespaced(client.clone(), &settings.namespace);
    let (secret, secret_feed) = shelf("Secret", secrets, named(&settings.secret), &changes);
    let by_name = named(&settings.configuration);
    let (mutating, mutating_feed) =
        shelf("MutatingWebhookConfiguration", Api::all(client.clone()), by_name.clone(), &changes);
    let (validating, validating_feed) =
        shelf("ValidatingWebhookConfiguration", Api::all(client.clone()), by_name, &changes);
    let feeds = SeenFeeds { secret: secret_feed, mutating: mutating_feed, validating: validating_feed };
    (Seen { secret, mutating, validating, changes }, feeds)
}

impl SeenFeeds {
    /// Watches, without end.
    pub(super) async fn run(mut self) {
        tokio::join!(self.secret.run(), self.mutating.run(), self.validating.run());
    }
}

/// The name of each webhook entry, with the bundle that it carries.
pub(super) type Entries = Vec<(String, Vec<u8>)>;

fn entry(name: &str, config: &WebhookClientConfig) -> (String, Vec<u8>) {
    (name.to_owned(), config.ca_bundle.as_ref().map(|bundle| bundle.0.clone()).unwrap_or_default())
}

impl Seen {
    /// The Secret's entries; nothing where there is no Secret, or none was seen yet.
    pub(super) fn stored(&self) -> Option<Stored> {
        let secret = self.secret.all().into_iter().next()?;
        let data = secret.data.as_ref();
        Some(Stored::read(|name| data.and_then(|data| data.get(name)).map(|value| value.0.as_slice())))
    }

    /// Whether the Secret has been looked for.
    pub(super) fn is_synced(&self) -> bool {
        self.secret.is_synced()
    }

    /// The Secret as it was looked at.
    pub(super) fn secret_ref(&self) -> Option<ObjectRef> {
        let secret = self.secret.all().into_iter().next()?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let metadata = &secret.metadata;
        Some(ObjectRef {
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
        })
    }

    /// The bundle of every entry of both configurations, once both have been looked for.
    pub(super) fn bundles(&self) -> Option<Vec<Vec<u8>>> {
        let synced = self.mutating.is_synced() && self.validating.is_synced();
        let all = || self.mutating().into_iter().chain(self.validating()).map(|(_, bundle)| bundle).collect();
        synced.then(all)
    }

    /// The entries of the mutating configuration.
    pub(super) fn mutating(&self) -> Entries {
        let all = self.mutating.all();
        let webhooks = all.iter().flat_map(|one| one.webhooks.iter().flatten());
        webhooks.map(|webhook| entry(&webhook.name, &webhook.client_config)).collect()
    }

    /// The entries of the validating configuration.
    pub(super) fn validating(&self) -> Entries {
        let all = self.validating.all();
        let webhooks = all.iter().flat_map(|one| one.webhooks.iter().flatten());
        webhooks.map(|webhook| entry(&webhook.name, &webhook.client_config)).collect()
    }
}
