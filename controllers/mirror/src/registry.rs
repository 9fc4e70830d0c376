//! One OCI registry client for our own repository and the chart sources: bounded reads, pushes that happen once.

use std::{fmt, time::Duration};

use aicr_crds::Digest;
use futures::{FutureExt, StreamExt, future::BoxFuture};
use oci_client::{
    Client, Reference, RegistryOperation,
    client::{ClientConfig, ClientProtocol},
    errors::OciDistributionError,
};

use crate::{
    artifact::{Artifact, MANIFEST_LIMIT, MANIFEST_TYPE, Manifest},
    credentials::DockerConfig,
    error::MirrorError,
};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a registry may be silent within an answer.
const READ: Duration = Duration::from_mins(1);
/// How long one request may take altogether, content included.
const REQUEST: Duration = Duration::from_mins(5);

/// Where the registry is and how it is spoken to.
#[derive(Clone, Debug, Default)]
pub struct RegistryConfig {
    /// `host[:port]/prefix`.
    pub repository: String,
    /// Registries spoken to over plain HTTP, as `host[:port]`; all others over HTTPS.
    pub plain_http: Vec<String>,
    /// Credentials, also for chart sources; anonymous without.
    pub auth: Option<DockerConfig>,
}

/// A client of the installation's registry. It keeps the credentials it was made with: make another one for others.
pub struct Registry {
    client: Client,
    auth: DockerConfig,
    home: Place,
}

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) repository: String,
}

/// What of a repository.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'a> {
    Tag(&'a str),
    Digest(Digest),
}

impl Place {
    /// Reads `host[:port]/repository`; nothing with a user part, a tag or a digest.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, repository) = text.split_once('/')?;
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
        let host_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        let good = !host.is_empty()
            && host.chars().all(host_word)
            && repository.split('/').all(|part| !part.is_empty() && part.chars().all(word));
        good.then(|| Self { host: host.to_owned(), repository: repository.to_owned() })
    }

    fn at(&self, at: At<'_>) -> Reference {
        let (host, repository) = (self.host.clone(), self.repository.clone());
        match at {
            At::Tag(tag) => Reference::with_tag(host, repository, tag.to_owned()),
            At::Digest(digest) => Reference::with_digest(host, repository, digest.to_string()),
        }
    }

    /// How messages name it.
    pub(crate) fn named(&self, at: At<'_>) -> String {
        match at {
            At::Tag(tag) => format!("{self}:{tag}"),
            At::Digest(digest) => format!("{self}@{digest}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Registry {
    /// A client for this registry; asks nothing yet. A rustls provider must be installed in the process.
    ///
    /// # Errors
    /// `Repository` for an address of another form, `Client` without a TLS provider.
    pub fn new(config: RegistryConfig) -> Result<Self, MirrorError> {
        let Some(home) = Place::parse(&config.repository) else {
            return Err(MirrorError::Repository(config.repository));
        };
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(MirrorError::Client("no TLS provider is installed".to_owned()));
        }
        let client = Client::try_from(ClientConfig {
            protocol: ClientProtocol::HttpsExcept(config.plain_http),
            connect_timeout: Some(CONNECT),
            read_timeout: Some(READ),
            user_agent: concat!("aicr-operator/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        });
        let client = client.map_err(|error| MirrorError::Client(error.to_string()))?;
        Ok(Self { client, auth: config.auth.unwrap_or_default(), home })
    }

    /// A rendered bundle: the one layer of `<repository>/bundles@<digest>`, verified, 16 MiB at most.
    ///
    /// # Errors
    /// See [`MirrorError`]; `Damaged` where the manifest has other than one layer.
    pub async fn bundle(&self, digest: Digest) -> Result<Vec<u8>, MirrorError> {
        let place = self.place("bundles");
        let bytes = self.manifest(&place, At::Digest(digest)).await?;
        let what = || format!("pull {}", place.named(At::Digest(digest)));
        let damaged = |problem| MirrorError::Damaged { what: what(), problem };
        let manifest = Manifest::parse(&bytes).map_err(damaged)?;
        let [layer] = manifest.layers.as_slice() else {
            return Err(damaged(format!("a bundle has one layer, this manifest names {}", manifest.layers.len())));
        };
        self.blob(&place, layer.digest, aicr_read::bundle::PACKED_LIMIT as u64).await
    }

    /// A repository below our prefix.
    pub(crate) fn place(&self, below: &str) -> Place {
        Place { host: self.home.host.clone(), repository: format!("{}/{below}", self.home.repository) }
    }

    /// The digest of a manifest, `None` where there is none.
    pub(crate) async fn digest(&self, place: &Place, at: At<'_>) -> Result<Option<Digest>, MirrorError> {
        let (what, reference) = (format!("look for {}", place.named(at)), place.at(at));
        let auth = self.auth.auth(&place.host);
        let asked = self.ask(&what, &reference, self.client.fetch_manifest_digest(&reference, &auth).boxed()).await;
        match asked {
            Ok(text) => {
                let problem = "its digest is not a sha256".to_owned();
                text.parse().map(Some).map_err(|_| MirrorError::Damaged { what, problem })
            }
            Err(MirrorError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a manifest.
    pub(crate) async fn manifest(&self, place: &Place, at: At<'_>) -> Result<Vec<u8>, MirrorError> {
        let (what, reference) = (format!("pull {}", place.named(at)), place.at(at));
        let auth = self.auth.auth(&place.host);
        let pull = self.client.pull_manifest_raw(&reference, &auth, &[MANIFEST_TYPE]).boxed();
        let (bytes, _) = self.ask(&what, &reference, pull).await?;
        if bytes.len() > MANIFEST_LIMIT {
            return Err(MirrorError::TooLarge { what, limit: MANIFEST_LIMIT as u64 });
        }
        Ok(bytes.to_vec())
    }

    /// A blob of at most `limit` bytes, verified.
    pub(crate) async fn blob(&self, place: &Place, digest: Digest, limit: u64) -> Result<Vec<u8>, MirrorError> {
        let (what, reference) = (format!("pull {}", place.named(At::Digest(digest))), place.at(At::Digest(digest)));
        self.client.store_auth_if_needed(reference.resolve_registry(), &self.auth.auth(&place.host)).await;
        let text = digest.to_string();
        let mut sized =
            self.ask(&what, &reference, self.client.pull_blob_stream(&reference, text.as_str()).boxed()).await?;
        let collect = async {
            let mut bytes = Vec::new();
            while let Some(chunk) = sized.stream.next().await {
                let chunk = chunk.map_err(|error| MirrorError::of_stream(&what, &error))?;
                if (bytes.len() + chunk.len()) as u64 > limit {
                    return Err(MirrorError::TooLarge { what: what.clone(), limit });
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        };
        let bytes = within(&what, collect.boxed()).await?;
        if Digest::of(&bytes) == digest {
            return Ok(bytes);
        }
        Err(MirrorError::Damaged { what, problem: "its content does not match its digest".to_owned() })
    }

    /// Whether a tag holds this already.
    ///
    /// # Errors
    /// `Conflict` where it holds something else.
    pub(crate) async fn holds(&self, place: &Place, tag: &str, wanted: Digest) -> Result<bool, MirrorError> {
        match self.digest(place, At::Tag(tag)).await? {
            None => Ok(false),
            Some(found) if found == wanted => Ok(true),
            Some(found) => Err(MirrorError::Conflict { place: place.named(At::Tag(tag)), found, wanted }),
        }
    }

    /// Pushes what a tag does not hold yet, blobs first, and reads its digest back.
    pub(crate) async fn push(&self, place: &Place, tag: &str, artifact: Artifact) -> Result<(), MirrorError> {
        let (what, reference) = (format!("push {}", place.named(At::Tag(tag))), place.at(At::Tag(tag)));
        let digest = artifact.digest();
        self.client.store_auth_if_needed(reference.resolve_registry(), &self.auth.auth(&place.host)).await;
        for (digest, bytes) in artifact.blobs {
            let text = digest.to_string();
            if !self.ask(&what, &reference, self.client.blob_exists(&reference, &text).boxed()).await? {
                self.ask(&what, &reference, self.client.push_blob(&reference, bytes, &text).boxed()).await?;
            }
        }
        let content_type = artifact.content_type;
        let push = self.client.push_manifest_raw(&reference, artifact.manifest, content_type).boxed();
        self.ask(&what, &reference, push).await?;
        if self.holds(place, tag, digest).await? {
            return Ok(());
        }
        Err(MirrorError::Damaged { what, problem: "the registry does not hold it after the push".to_owned() })
    }

    /// Awaits one request within its time. The client's futures are large, hence the boxes.
    async fn ask<T: Send>(
        &self,
        what: &str,
        reference: &Reference,
        request: BoxFuture<'_, Result<T, OciDistributionError>>,
    ) -> Result<T, MirrorError> {
        let answer = within(what, request.map(Ok).boxed()).await?;
        let error = match answer {
            Ok(value) => return Ok(value),
            Err(error) => MirrorError::of(what, &error),
        };
        if matches!(error, MirrorError::Unauthorized { .. }) {
            return Err(self.blame(what, reference).await);
        }
        Err(error)
    }

    /// The client goes on without a token where the token service failed, and is refused then: asks that service
    /// again, to tell an outage from a refusal.
    async fn blame(&self, what: &str, reference: &Reference) -> MirrorError {
        let auth = self.auth.auth(reference.registry());
        let again = self.client.auth(reference, &auth, RegistryOperation::Pull).map(Ok).boxed();
        match within(what, again).await {
            Ok(Err(error)) => MirrorError::of(what, &error),
            Ok(Ok(_)) => MirrorError::Unauthorized { what: what.to_owned() },
            Err(late) => late,
        }
    }
}

async fn within<T>(what: &str, work: BoxFuture<'_, Result<T, MirrorError>>) -> Result<T, MirrorError> {
    tokio::time::timeout(REQUEST, work).await.unwrap_or_else(|_| {
        let cause = format!("no end within {} seconds", REQUEST.as_secs());
        Err(MirrorError::Unavailable { what: what.to_owned(), cause })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("r.example.com:5000/a/b-c_d.e", Some(("r.example.com:5000", "a/b-c_d.e")))]
    #[case("localhost/x", Some(("localhost", "x")))]
    #[case("r.example.com", None)]
    #[case("r.example.com/", None)]
    #[case("/x", None)]
    #[case("r.example.com/a//b", None)]
    #[case("r.example.com/A", None)]
    #[case("r.example.com/a:1", None)]
    #[case("r.example.com/a@sha256:00", None)]
    #[case("u:p@r.example.com/a", None)]
    #[case("https://r.example.com/a", None)]
    fn a_repository_is_a_host_and_a_path(#[case] text: &str, #[case] expected: Option<(&str, &str)>) {
        let found = Place::parse(text);
        assert_eq!(found.as_ref().map(|place| (place.host.as_str(), place.repository.as_str())), expected);
    }
}
