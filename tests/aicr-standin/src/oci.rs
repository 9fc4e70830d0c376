//! Pushing artifacts to a registry, with the credentials and failures the real command has.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::failure::{Code, Failure, in_words};
use crate::release;

/// Media type of every manifest pushed here.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Pauses between the attempts while a registry refuses connections: three seconds in all.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// How to reach the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Https,
    HttpsUnverified,
    PlainHttp,
}

/// A manifest and the blobs it names.
#[derive(Debug, Clone)]
pub(crate) struct Artifact {
    pub(crate) manifest: Vec<u8>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Artifact {
    /// The digest under which the registry will know it.
    pub(crate) fn digest(&self) -> String {
        digest(&self.manifest)
    }
}

/// `sha256:` and the hexadecimal digest.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

/// The hexadecimal SHA-256 digest.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let nibbles = Sha256::digest(bytes).into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.filter_map(|nibble| char::from_digit(u32::from(nibble), 16)).collect()
}

/// A descriptor of a blob.
pub(crate) fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(blob), "size": blob.len()})
}

/// The manifest of one config and one layer, in one line.
pub(crate) fn manifest(fields: &Value) -> Vec<u8> {
    let mut value = json!({"schemaVersion": 2, "mediaType": MANIFEST});
    crate::tree::merge(&mut value, fields);
    crate::yaml::sorted(value).to_string().into_bytes()
}

/// Reads `host/repository[:tag]` after `oci://`.
pub(crate) fn reference(text: &str, default_tag: &str) -> Result<Reference, Failure> {
    let bad =
        || Failure::invalid(format!("invalid OCI reference \"oci://{text}\": expected oci://host/repository[:tag]"));
    let (host, path) = text.split_once('/').ok_or_else(bad)?;
    let (repository, tag) = path.rsplit_once(':').unwrap_or((path, default_tag));
    if host.is_empty() || repository.is_empty() || tag.is_empty() {
        return Err(bad());
    }
    Ok(Reference::with_tag(host.to_owned(), repository.to_owned(), tag.to_owned()))
}

/// Pushes an artifact; a tag with other content is moved without a word.
pub(crate) async fn push(target: &Reference, artifact: &Artifact, transport: Transport) -> Result<(), Failure> {
    let client = Client::new(ClientConfig {
        protocol: if transport == Transport::PlainHttp { ClientProtocol::Http } else { ClientProtocol::Https },
        accept_invalid_certificates: transport == Transport::HttpsUnverified,
        connect_timeout: Some(Duration::from_secs(10)),
        ..ClientConfig::default()
    });
    let auth = credentials(target.registry());
    let mut pauses = PAUSES.iter();
    loop {
        let failure = match attempt(&client, target, artifact, &auth).await {
            Ok(()) => return Ok(()),
            Err(text) => text,
        };
        let retried = failure.contains("connection refused") || failure.contains("timed out");
        match pauses.next().filter(|_| retried) {
            Some(pause) => tokio::time::sleep(*pause).await,
            None => return Err(refused(target, &failure, retried)),
        }
    }
}

async fn attempt(client: &Client, target: &Reference, artifact: &Artifact, auth: &RegistryAuth) -> Result<(), String> {
    let words = |error: oci_client::errors::OciDistributionError| in_words(&error);
    client.auth(target, auth, RegistryOperation::Push).await.map_err(words)?;
    for blob in &artifact.blobs {
        if !client.blob_exists(target, &digest(blob)).await.unwrap_or(false) {
            client.push_blob(target, blob.clone(), &digest(blob)).await.map_err(words)?;
        }
    }
    let content_type = MANIFEST.parse().map_err(|_| "manifest media type".to_owned())?;
    client.push_manifest_raw(target, artifact.manifest.clone(), content_type).await.map(drop).map_err(words)
}

fn refused(target: &Reference, text: &str, retried: bool) -> Failure {
    let message = if retried { "registry push failed after retries" } else { "registry push failed" };
    let lower = text.to_lowercase();
    let unauthorized = ["401", "403", "unauthorized", "not authorized", "authentication", "denied"];
    let code = if release::oldest() {
        Code::ServiceUnavailable
    } else if unauthorized.iter().any(|word| lower.contains(word)) {
        Code::Unauthorized
    } else if lower.contains("429") || lower.contains("toomanyrequests") {
        Code::RateLimitExceeded
    } else {
        Code::ServiceUnavailable
    };
    Failure::new(code, format!("{message}: failed to push to {}: {text}", target.whole()))
}

/// The credentials of the docker configuration for a registry.
fn credentials(registry: &str) -> RegistryAuth {
    let directory = std::env::var("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|_| std::env::var("HOME").map(|home| PathBuf::from(home).join(".docker")));
    let Ok(text) = directory.map(|directory| std::fs::read_to_string(directory.join("config.json"))) else {
        return RegistryAuth::Anonymous;
    };
    text.ok().and_then(|text| basic(&text, registry)).unwrap_or(RegistryAuth::Anonymous)
}

fn basic(config: &str, registry: &str) -> Option<RegistryAuth> {
    let config: Value = serde_json::from_str(config).ok()?;
    let entry = config.get("auths")?.get(registry)?;
    if let (Some(user), Some(password)) = (entry["username"].as_str(), entry["password"].as_str()) {
        return Some(RegistryAuth::Basic(user.to_owned(), password.to_owned()));
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(entry["auth"].as_str()?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(RegistryAuth::Basic(user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_registry_and_split_at_the_first_colon() {
        let auth = base64::engine::general_purpose::STANDARD.encode("aicr:a:b");
        let config = json!({"auths": {"10.245.0.1:5000": {"auth": auth}}}).to_string();
        assert_eq!(basic(&config, "10.245.0.1:5000"), Some(RegistryAuth::Basic("aicr".into(), "a:b".into())));
        assert_eq!(basic(&config, "other:5000"), None);
    }

    #[test]
    fn a_reference_has_the_default_tag_unless_it_names_one() {
        assert_eq!(reference("10.245.0.1:5000/a/b", "1.1.2").unwrap().whole(), "10.245.0.1:5000/a/b:1.1.2");
        assert_eq!(reference("h:1/a/b:x", "1.1.2").unwrap().tag(), Some("x"));
        assert_eq!(reference("host", "x").unwrap_err().exit(), 2);
    }

    #[test]
    fn refused_credentials_and_connections_have_their_codes() {
        let target = reference("h:1/a", "x").unwrap();
        assert_eq!(refused(&target, "response status code 401: Unauthorized", false).exit(), 4);
        let failure = refused(&target, "connect: connection refused", true);
        assert_eq!(failure.exit(), 6);
        assert!(failure.to_string().starts_with("[SERVICE_UNAVAILABLE] registry push failed after retries: "));
    }
}
