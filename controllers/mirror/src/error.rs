//! Why a registry did not do what was asked, sorted by what follows from it.

use std::error::Error;

use aicr_crds::Digest;
use oci_client::errors::{OciDistributionError, OciEnvelope, OciErrorCode};

use crate::web::Refusal;

/// Why a transfer failed. No variant quotes what a registry answered, so none can carry a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// The repository of the installation is not `host[:port][/prefix]`.
    #[error("the registry repository {0:?} is not host[:port]/prefix, in lower case")]
    Repository(String),
    /// The HTTP client cannot be made.
    #[error("the registry client cannot be made: {0}")]
    Client(String),
    /// 401 or 403, or the token service refused.
    #[error("{what}: the registry refuses access")]
    Unauthorized {
        /// What was asked for: verb and address.
        what: String,
    },
    /// Unreachable, timed out, 429 or 5xx: the same may work later.
    #[error("{what}: {cause}")]
    Unavailable {
        /// What was asked for.
        what: String,
        /// Why it did not come.
        cause: String,
    },
    /// The registry does not hold it.
    #[error("{what}: not in the registry")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// Its address, or one that it leads to, is not spoken to.
    #[error("{what}: {refusal}")]
    Forbidden {
        /// What was asked for.
        what: String,
        /// Why not.
        refusal: String,
    },
    /// The registry has no such repository and does not make one for a push.
    #[error(
        "{what}: the registry has no repository {repository} and does not create it on push (ECR does not): create \
         it, or a repository creation template for the prefix and the right to use it; then request a snapshot"
    )]
    NoRepository {
        /// What was asked for.
        what: String,
        /// The repository, with its host.
        repository: String,
    },
    /// It is larger than is carried.
    #[error("{what}: more than {limit} bytes")]
    TooLarge {
        /// What was asked for.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// What came is not what its digest or its kind says.
    #[error("{what}: {problem}")]
    Damaged {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The registry refused the request itself.
    #[error("{what}: the registry refuses the request: {cause}")]
    Refused {
        /// What was asked for.
        what: String,
        /// The status or the code of the distribution specification.
        cause: String,
    },
    /// The tag that must be written holds other content.
    #[error("{place} holds {found}, but {wanted} must be written there; remove that tag or use another prefix")]
    Conflict {
        /// Repository and tag.
        place: String,
        /// The digest that is there.
        found: Digest,
        /// The digest that should be.
        wanted: Digest,
    },
}

impl MirrorError {
    /// Sorts what the client says about a request.
    pub(crate) fn of(what: &str, error: &OciDistributionError) -> Self {
        Self::sorted(what, Answer::of(error))
    }

    fn sorted(what: &str, answer: Answer) -> Self {
        let what = what.to_owned();
        match answer {
            Answer::Unauthorized => Self::Unauthorized { what },
            Answer::Unavailable(cause) => Self::Unavailable { what, cause },
            Answer::NotFound => Self::NotFound { what },
            Answer::Damaged(problem) => Self::Damaged { what, problem: problem.to_owned() },
            Answer::Refused(cause) => Self::Refused { what, cause },
        }
    }

    /// Sorts why a request has no answer, or an answer no end.
    pub(crate) fn of_request(what: &str, error: &reqwest::Error) -> Self {
        let what = what.to_owned();
        let mut next: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(refusal) = cause.downcast_ref::<Refusal>() {
                return Self::Forbidden { what, refusal: refusal.to_string() };
            }
            next = cause.source();
        }
        Self::Unavailable { what, cause: root(error) }
    }

    /// Sorts a status that is no success.
    pub(crate) fn of_status(what: &str, code: u16) -> Self {
        Self::sorted(what, Answer::of_status(code))
    }
}

/// What is wrong with content of another digest.
pub(crate) const MISMATCH: &str = "its content does not match its digest";

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Unauthorized,
    Unavailable(String),
    NotFound,
    Damaged(&'static str),
    Refused(String),
}

impl Answer {
    fn of(error: &OciDistributionError) -> Self {
        use OciDistributionError as E;
        match error {
            E::RegistryError { envelope, .. } => Self::of_envelope(envelope),
            E::ServerError { code, .. } => Self::of_status(*code),
            E::UnauthorizedError { .. } => Self::Unauthorized,
            E::AuthenticationFailure(body) => Self::of_token_service(body),
            E::RequestError(error) => match error.status() {
                Some(status) => Self::of_status(status.as_u16()),
                None => Self::Unavailable(root(error)),
            },
            E::IoError(error) => Self::Unavailable(root(error)),
            E::RegistryTokenDecodeError(_) => Self::Unavailable("the token service answers no token".to_owned()),
            E::DigestError(_) => Self::Damaged(MISMATCH),
            E::ImageManifestNotFoundError(_) => Self::NotFound,
            E::SpecViolationError(_)
            | E::RegistryNoDigestError
            | E::RegistryNoLocationError
            | E::HeaderValueError(_)
            | E::UrlParseError(_)
            | E::GenericError(_) => Self::Refused("an answer outside the distribution specification".to_owned()),
            E::JsonError(_)
            | E::ManifestEncodingError(_)
            | E::ManifestParsingError(_)
            | E::VersionedParsingError(_)
            | E::ConfigConversionError(_)
            | E::UnsupportedMediaTypeError(_)
            | E::UnsupportedSchemaVersionError(_)
            | E::IncompatibleLayerMediaTypeError(_)
            | E::ImageIndexParsingNoPlatformResolverError
            | E::PullNoLayersError
            | E::PushNoDataError
            | E::PushLayerNoDataError => Self::Damaged("its manifest cannot be read"),
        }
    }

    fn of_status(code: u16) -> Self {
        match code {
            401 | 403 => Self::Unauthorized,
            404 => Self::NotFound,
            408 | 425 | 429 | 500..=599 => Self::Unavailable(format!("HTTP {code}")),
            _ => Self::Refused(format!("HTTP {code}")),
        }
    }

    fn of_envelope(envelope: &OciEnvelope) -> Self {
        use OciErrorCode as C;
        let Some(first) = envelope.errors.first() else { return Self::Refused("no code".to_owned()) };
        match &first.code {
            C::Unauthorized | C::Denied => Self::Unauthorized,
            C::Toomanyrequests => Self::Unavailable("too many requests".to_owned()),
            C::BlobUnknown | C::ManifestBlobUnknown | C::ManifestUnknown | C::NameUnknown | C::NotFound => {
                Self::NotFound
            }
            C::BlobUploadInvalid
            | C::BlobUploadUnknown
            | C::DigestInvalid
            | C::ManifestInvalid
            | C::ManifestUnverified
            | C::NameInvalid
            | C::SizeInvalid
            | C::TagInvalid
            | C::Unsupported => Self::Refused(format!("{:?}", first.code)),
            C::Other(code) => Self::Refused(code.chars().take(40).filter(char::is_ascii_graphic).collect()),
        }
    }

    /// The client keeps the body alone, so the words decide; without them it may be an outage.
    fn of_token_service(body: &str) -> Self {
        let body = body.to_ascii_lowercase();
        let refused = ["unauthorized", "denied", "forbidden", "incorrect", "invalid"];
        if refused.iter().any(|word| body.contains(word)) {
            return Self::Unauthorized;
        }
        Self::Unavailable("the token service does not answer with a token".to_owned())
    }
}

/// The innermost cause: it names no URL, whose query may be a signature.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.is::<reqwest::Error>() {
        return "the connection broke".to_owned();
    }
    if is_distrust(innermost) {
        return format!("{innermost}; a private authority belongs into registry.caBundle or chartSources.caBundle");
    }
    innermost.to_string()
}

/// Whether a certificate was not taken; TLS errors are packed into IO errors, which do not give them as a source.
fn is_distrust(error: &(dyn Error + 'static)) -> bool {
    match (error.downcast_ref(), error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)) {
        (Some(rustls::Error::InvalidCertificate(_)), _) => true,
        (_, Some(within)) => is_distrust(within),
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn server(code: u16) -> OciDistributionError {
        OciDistributionError::ServerError { code, url: "https://r/?sig=hidden".into(), message: "hidden".into() }
    }

    fn envelope(code: &str) -> OciDistributionError {
        let text = format!(r#"{{"errors":[{{"code":"{code}","message":"hidden"}}]}}"#);
        let envelope = serde_json::from_str(&text).unwrap();
        OciDistributionError::RegistryError { envelope, url: "https://u:hidden@r/".into() }
    }

    fn token(body: &str) -> OciDistributionError {
        OciDistributionError::AuthenticationFailure(body.into())
    }

    #[rstest]
    #[case::s401(server(401), "refuses access")]
    #[case::s403(server(403), "refuses access")]
    #[case::s404(server(404), "not in the registry")]
    #[case::s429(server(429), "push it: HTTP 429")]
    #[case::s500(server(500), "push it: HTTP 500")]
    #[case::s503(server(503), "push it: HTTP 503")]
    #[case::s405(server(405), "refuses the request: HTTP 405")]
    #[case::denied(envelope("DENIED"), "refuses access")]
    #[case::unauthorized(envelope("UNAUTHORIZED"), "refuses access")]
    #[case::unknown(envelope("MANIFEST_UNKNOWN"), "not in the registry")]
    #[case::name_unknown(envelope("NAME_UNKNOWN"), "not in the registry")]
    #[case::too_many(envelope("TOOMANYREQUESTS"), "push it: too many requests")]
    #[case::own_code(envelope("ARTIFACT_LOCKED"), "refuses the request: ARTIFACT_LOCKED")]
    #[case::token_refused(token("hidden: incorrect username or password"), "refuses access")]
    #[case::token_outage(token("<html>hidden</html>"), "push it: the token service")]
    fn an_answer_is_sorted_by_what_follows_and_never_quoted(#[case] error: OciDistributionError, #[case] said: &str) {
        let message = MirrorError::of("push it", &error).to_string();
        assert!(message.contains(said) && !message.contains("hidden"), "{message}");
    }

    #[test]
    fn a_failed_connection_is_told_by_its_innermost_cause() {
        let error = OciDistributionError::IoError(std::io::Error::from_raw_os_error(111));
        assert_eq!(MirrorError::of("pull it", &error).to_string(), "pull it: Connection refused (os error 111)");
    }
}
