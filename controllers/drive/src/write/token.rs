//! The registry's token in Argo CD's Secret.

use aicr_crds::keys::annotation;
use aicr_decide::rollout::ObjectRef;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    core::{ObjectMeta, PartialObjectMeta},
};
use serde_json::{Value, json};

use super::{Writer, Written, body, merge, status::object_ref};
use crate::{credentials::Token, error::DriveError};

impl Writer {
    /// Writes user, token and expiry into the Secret as it was seen, and nothing that the chart declares. What is
    /// answered is read without its data.
    pub(crate) async fn store_token(&self, secret: &ObjectMeta, token: &Token) -> Result<Written<()>, DriveError> {
        let api: Api<PartialObjectMeta<Secret>> = self.namespaced(&self.engine_namespace);
        let on = object_ref(secret);
        merge(&api, &on.name, format!("write the token into Secret {}", on.name), &patch(&on, token))
            .await
            .map(Written::forget)
    }
}

fn patch(on: &ObjectRef, token: &Token) -> Value {
    let mut patch = body::annotations(on, &[(annotation::TOKEN_EXPIRES_AT, Some(token.expires_at.to_string()))]);
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    patch["data"] = json!({ "username": bytes(&token.user), "password": bytes(token.password()) });
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B28, B39: the Secret of our name alone is written, its own three fields, and only as it was seen.
    #[test]
    fn user_token_and_expiry_are_written_and_nothing_else() {
        let on = ObjectRef { name: "aicr-registry".to_owned(), uid: "u".to_owned(), resource_version: "7".to_owned() };
        let token = Token::from_authorization("QVdTOnM6ZQ==", "2026-11-30T10:00:00Z".parse().unwrap()).unwrap();
        let expected = json!({
            "metadata": {
                "uid": "u", "resourceVersion": "7",
                "annotations": { "operator.aicr.run/token-expires-at": "2026-11-30T10:00:00Z" },
            },
            "data": { "username": "QVdT", "password": "czpl" },
        });
        assert_eq!(patch(&on, &token), expected);
    }
}
