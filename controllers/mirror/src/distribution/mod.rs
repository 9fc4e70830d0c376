//! Reading from an OCI registry: digests, manifests and blobs, bounded and verified.

mod challenge;

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use aicr_crds::Digest;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue},
};

use self::challenge::{Challenge, TOKEN_LIMIT};
use crate::{
    artifact::{Descriptor, MANIFEST_LIMIT, MANIFEST_TYPE},
    credentials::DockerConfig,
    error::{MISMATCH, MirrorError},
    place::{At, Place},
    web::Web,
};

pub(crate) use self::challenge::basic;

/// Where a registry says which digest it answers with.
const DIGEST_HEADER: &str = "docker-content-digest";

/// A reader of registries that are asked by the same rules.
pub(crate) struct Distribution {
    pub(crate) web: Web,
    pub(crate) auth: DockerConfig,
    /// What opened a repository before; the lifetime of a run is shorter than a token's, and a 401 asks again.
    logins: Mutex<BTreeMap<Place, HeaderValue>>,
}

impl Distribution {
    pub(crate) fn new(web: Web, auth: DockerConfig) -> Self {
        Self { web, auth, logins: Mutex::default() }
    }

    /// The digest of a manifest, `None` where there is none. Only what is pulled by it proves it.
    pub(crate) async fn digest(&self, place: &Place, at: At<'_>) -> Result<Option<Digest>, MirrorError> {
        let what = format!("look for {}", place.named(at));
        let path = format!("manifests/{}", at.reference());
        let asked = self.web.within(&what, self.ask(&what, place, Method::HEAD, &path)).await;
        let answer = match asked {
            Ok(answer) => answer,
            Err(MirrorError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match answer.headers().get(DIGEST_HEADER).map(|value| value.to_str().unwrap_or_default().parse()) {
            Some(Ok(digest)) => Ok(Some(digest)),
            Some(Err(_)) => Err(MirrorError::Damaged {
                what,
                problem: "the registry answers with a digest that is no sha256".into(),
            }),
            // Not every registry says it for a HEAD.
            None => Ok(Some(Digest::of(&self.manifest(place, at).await?))),
        }
    }

    /// The bytes of a manifest of at most 4 MiB; by digest they are verified.
    pub(crate) async fn manifest(&self, place: &Place, at: At<'_>) -> Result<Vec<u8>, MirrorError> {
        let what = format!("pull {}", place.named(at));
        let path = format!("manifests/{}", at.reference());
        let bytes = self.pull(&what, place, &path, MANIFEST_LIMIT as u64).await?;
        match at {
            At::Digest(digest) => verified(what, bytes, digest),
            At::Tag(_) => Ok(bytes),
        }
    }

    /// A blob as a manifest describes it, of at most `limit` bytes, verified. What is described as larger is not
    /// asked for, and what comes larger than it was described is not read to its end.
    pub(crate) async fn blob(&self, place: &Place, of: &Descriptor, limit: u64) -> Result<Vec<u8>, MirrorError> {
        let what = format!("pull {}", place.named(At::Digest(of.digest)));
        if of.size > limit {
            return Err(MirrorError::TooLarge { what, limit });
        }
        match self.pull(&what, place, &format!("blobs/{}", of.digest), of.size).await {
            Err(MirrorError::TooLarge { .. }) => Err(MirrorError::Damaged {
                what,
                problem: format!("it is longer than the {} bytes of its manifest", of.size),
            }),
            Ok(bytes) if bytes.len() as u64 != of.size => {
                let problem = format!("it has {} bytes, its manifest says {}", bytes.len(), of.size);
                Err(MirrorError::Damaged { what, problem })
            }
            Ok(bytes) => verified(what, bytes, of.digest),
            Err(error) => Err(error),
        }
    }

    async fn pull(&self, what: &str, place: &Place, path: &str, limit: u64) -> Result<Vec<u8>, MirrorError> {
        let pull = async {
            let answer = self.ask(what, place, Method::GET, path).await?;
            self.web.body(what, answer, limit).await
        };
        self.web.within(what, pull).await
    }

    /// Asks with what opened the repository before, logs in where that is not enough, and sorts the status.
    async fn ask(&self, what: &str, place: &Place, method: Method, path: &str) -> Result<Response, MirrorError> {
        let host = place.api_host();
        let text = format!("{}://{host}/v2/{}/{path}", self.web.scheme(host), place.api_repository());
        let refused = |_| MirrorError::Refused { what: what.to_owned(), cause: "its address is none".to_owned() };
        let url = Url::parse(&text).map_err(refused)?;
        let known = self.logins.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned();
        let first = self.web.send(what, method.clone(), url.clone(), headers(known)).await?;
        if first.status() != StatusCode::UNAUTHORIZED {
            return sorted(what, first);
        }
        let login = self.login(what, place, first.headers()).await?;
        self.logins.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone(), login.clone());
        sorted(what, self.web.send(what, method, url, headers(Some(login))).await?)
    }

    /// What opens a repository, by what the registry asks for.
    async fn login(&self, what: &str, place: &Place, asked: &HeaderMap) -> Result<HeaderValue, MirrorError> {
        let unauthorized = || MirrorError::Unauthorized { what: what.to_owned() };
        let own = basic(&self.auth.auth(&place.host));
        match Challenge::of(asked).ok_or_else(unauthorized)? {
            Challenge::Basic => own.ok_or_else(unauthorized),
            Challenge::Bearer { realm, service } => {
                let url = challenge::token_url(&realm, service.as_deref(), &place.api_repository());
                let url = url.ok_or_else(unauthorized)?;
                let mut headers = HeaderMap::new();
                headers.extend(own.map(|login| (AUTHORIZATION, login)));
                let answer = self.web.send(what, Method::GET, url, headers).await?;
                let body = self.web.body(what, sorted(what, answer)?, TOKEN_LIMIT).await?;
                let none = || "the token service answers no token".to_owned();
                challenge::bearer(&body)
                    .ok_or_else(|| MirrorError::Unavailable { what: what.to_owned(), cause: none() })
            }
        }
    }
}

fn headers(login: Option<HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(MANIFEST_TYPE))]);
    headers.extend(login.map(|login| (AUTHORIZATION, login)));
    headers
}

fn sorted(what: &str, answer: Response) -> Result<Response, MirrorError> {
    let status = answer.status();
    if status.is_success() { Ok(answer) } else { Err(MirrorError::of_status(what, status.as_u16())) }
}

fn verified(what: String, bytes: Vec<u8>, digest: Digest) -> Result<Vec<u8>, MirrorError> {
    if Digest::of(&bytes) == digest {
        return Ok(bytes);
    }
    Err(MirrorError::Damaged { what, problem: MISMATCH.to_owned() })
}
