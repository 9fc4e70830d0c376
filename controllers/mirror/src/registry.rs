//! The registry of the installation and the sources of charts: bounded reads, pushes that happen once.

use std::fmt;

use aicr_crds::Digest;
use futures::{FutureExt, future::BoxFuture};
use oci_client::{
    Client, Reference, RegistryOperation,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol},
    errors::OciDistributionError,
};

use crate::{
    artifact::{Artifact, Descriptor, Manifest},
    credentials::DockerConfig,
    distribution::Distribution,
    error::MirrorError,
    place::{At, Place},
    web::{Guard, Times, USER_AGENT, Web, authorities, within},
};

/// Where the registry is and how it is spoken to.
#[derive(Clone, Debug, Default)]
pub struct RegistryConfig {
    /// `host[:port]/prefix`.
    pub repository: String,
    /// Registries spoken to over plain HTTP, as `host[:port]`; all others over HTTPS.
    pub plain_http: Vec<String>,
    /// Credentials, also for chart sources; anonymous without.
    pub auth: Option<DockerConfig>,
    /// Authorities that the registry's certificate may be of beside the system's, in PEM; may be empty.
    pub ca_bundle: Vec<u8>,
    /// How chart sources are spoken to.
    pub sources: SourcesConfig,
    /// How long requests may take.
    pub times: Times,
}

/// How chart sources are spoken to.
#[derive(Clone, Debug, Default)]
pub struct SourcesConfig {
    /// Authorities that their certificates may be of beside the system's, in PEM; may be empty.
    pub ca_bundle: Vec<u8>,
    /// Loopback, link-local and metadata addresses or networks that a source may have all the same.
    pub allowed_addresses: Vec<String>,
}

/// A client of the installation's registry. It keeps the credentials it was made with: make another one for others.
pub struct Registry {
    pusher: Client,
    auth: DockerConfig,
    home: Place,
    times: Times,
    own: Distribution,
    pub(crate) sources: Distribution,
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
    /// `Repository` for an address of another form, `Client` without a TLS provider or for a value that is not what it
    /// should be.
    pub fn new(config: RegistryConfig) -> Result<Self, MirrorError> {
        let Some(home) = Place::parse(&config.repository) else {
            return Err(MirrorError::Repository(config.repository));
        };
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(MirrorError::Client("no TLS provider is installed".to_owned()));
        }
        let RegistryConfig { plain_http, times, .. } = &config;
        let own = authorities("registry.caBundle", &config.ca_bundle)?;
        let foreign = authorities("chartSources.caBundle", &config.sources.ca_bundle)?;
        let guard = Guard::outside(plain_http, &config.sources.allowed_addresses).map_err(MirrorError::Client)?;
        let auth = config.auth.clone().unwrap_or_default();
        Ok(Self {
            pusher: pusher(plain_http.clone(), &own, *times)?,
            home,
            times: *times,
            own: Distribution::new(Web::new(Guard::any(plain_http), &own, *times)?, auth.clone()),
            sources: Distribution::new(Web::new(guard, &foreign, *times)?, auth.clone()),
            auth,
        })
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
        self.blob(&place, layer, aicr_read::bundle::PACKED_LIMIT as u64).await
    }

    /// A repository below our prefix.
    pub(crate) fn place(&self, below: &str) -> Place {
        Place { host: self.home.host.clone(), repository: format!("{}/{below}", self.home.repository) }
    }

    /// The digest of a manifest, `None` where there is none.
    pub(crate) async fn digest(&self, place: &Place, at: At<'_>) -> Result<Option<Digest>, MirrorError> {
        self.reader(place).digest(place, at).await
    }

    /// The bytes of a manifest.
    pub(crate) async fn manifest(&self, place: &Place, at: At<'_>) -> Result<Vec<u8>, MirrorError> {
        self.reader(place).manifest(place, at).await
    }

    /// A blob of at most `limit` bytes, verified.
    pub(crate) async fn blob(&self, place: &Place, of: &Descriptor, limit: u64) -> Result<Vec<u8>, MirrorError> {
        self.reader(place).blob(place, of, limit).await
    }

    /// Our own registry is where its administrator put it; every other one is a chart's source.
    fn reader(&self, place: &Place) -> &Distribution {
        if place.host == self.home.host { &self.own } else { &self.sources }
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
    ///
    /// # Errors
    /// `NoRepository` where the registry has no such repository and does not make one.
    pub(crate) async fn push(&self, place: &Place, tag: &str, artifact: Artifact) -> Result<(), MirrorError> {
        match self.push_all(place, tag, artifact).await {
            Err(MirrorError::NotFound { what }) => {
                Err(MirrorError::NoRepository { what, repository: place.to_string() })
            }
            other => other,
        }
    }

    async fn push_all(&self, place: &Place, tag: &str, artifact: Artifact) -> Result<(), MirrorError> {
        let (what, reference) = (format!("push {}", place.named(At::Tag(tag))), place.at(At::Tag(tag)));
        let digest = artifact.digest();
        self.pusher.store_auth_if_needed(reference.resolve_registry(), &self.auth.auth(&place.host)).await;
        for (digest, bytes) in artifact.blobs {
            let text = digest.to_string();
            if !self.ask(&what, &reference, self.pusher.blob_exists(&reference, &text).boxed()).await? {
                self.ask(&what, &reference, self.pusher.push_blob(&reference, bytes, &text).boxed()).await?;
            }
        }
        let content_type = artifact.content_type;
        let push = self.pusher.push_manifest_raw(&reference, artifact.manifest, content_type).boxed();
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
        let answer = within(what, self.times.whole, request.map(Ok).boxed()).await?;
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
        let again = self.pusher.auth(reference, &auth, RegistryOperation::Pull).map(Ok).boxed();
        match within(what, self.times.whole, again).await {
            Ok(Err(error)) => MirrorError::of(what, &error),
            Ok(Ok(_)) => MirrorError::Unauthorized { what: what.to_owned() },
            Err(late) => late,
        }
    }
}

/// The client that writes; what it reads is small.
fn pusher(plain_http: Vec<String>, authorities: &[Vec<u8>], times: Times) -> Result<Client, MirrorError> {
    let root = |der: &Vec<u8>| Certificate { encoding: CertificateEncoding::Der, data: der.clone() };
    let client = Client::try_from(ClientConfig {
        protocol: ClientProtocol::HttpsExcept(plain_http),
        extra_root_certificates: authorities.iter().map(root).collect(),
        connect_timeout: Some(times.connect),
        read_timeout: Some(times.silence),
        user_agent: USER_AGENT,
        ..ClientConfig::default()
    });
    client.map_err(|error| MirrorError::Client(error.to_string()))
}
