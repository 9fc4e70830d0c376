//! What a registry asks for with a 401, and how that is answered.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http_auth::{ChallengeParser, ChallengeRef};
use oci_client::secrets::RegistryAuth;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE},
};
use serde::Deserialize;

/// The largest answer of a token service, in bytes.
pub(super) const TOKEN_LIMIT: u64 = 1 << 20;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token of this service.
    Bearer {
        /// The service's address.
        realm: String,
        /// Its name for the registry.
        service: Option<String>,
    },
    /// User and password.
    Basic,
}

impl Challenge {
    /// The first challenge of an answer that can be answered.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| ChallengeParser::new(text).map_while(Result::ok)).find_map(|found| Self::from(&found))
    }

    fn from(found: &ChallengeRef<'_>) -> Option<Self> {
        let of = |name: &str| {
            found.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_unescaped())
        };
        if found.scheme.eq_ignore_ascii_case("bearer") {
            Some(Self::Bearer { realm: of("realm")?, service: of("service") })
        } else {
            found.scheme.eq_ignore_ascii_case("basic").then_some(Self::Basic)
        }
    }
}

/// Where a token to read a repository is had; `None` where the realm is no address.
pub(super) fn token_url(realm: &str, service: Option<&str>, repository: &str) -> Option<Url> {
    let mut url = Url::parse(realm).ok()?;
    let mut query = url.query_pairs_mut();
    if let Some(service) = service {
        query.append_pair("service", service);
    }
    query.append_pair("scope", &format!("repository:{repository}:pull"));
    drop(query);
    Some(url)
}

/// The token in a service's answer as a header; `None` where there is none.
pub(super) fn bearer(answer: &[u8]) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    struct Answer {
        token: Option<String>,
        access_token: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    secret(&format!("Bearer {}", answer.token.or(answer.access_token).filter(|token| !token.is_empty())?))
}

/// User and password as a header; `None` without any.
pub(crate) fn basic(auth: &RegistryAuth) -> Option<HeaderValue> {
    match auth {
        RegistryAuth::Basic(user, password) => {
            secret(&format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
        }
        RegistryAuth::Anonymous | RegistryAuth::Bearer(_) => None,
    }
}

/// A header that is never printed.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn of(text: &str) -> Option<Challenge> {
        Challenge::of(&HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap())]))
    }

    #[rstest]
    #[case::quoted(
        r#"Bearer realm="https://t.example.com/a?b=c",service="r",scope="x""#,
        "https://t.example.com/a?b=c",
        Some("r")
    )]
    #[case::no_service(r#"bearer REALM="https://t.example.com""#, "https://t.example.com", None)]
    #[case::second(r#"Negotiate a="b", Bearer realm="https://t.example.com""#, "https://t.example.com", None)]
    fn a_token_is_asked_for(#[case] text: &str, #[case] realm: &str, #[case] service: Option<&str>) {
        let expected = Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) };
        assert_eq!(of(text), Some(expected));
    }

    #[test]
    fn other_challenges_are_basic_or_none() {
        assert_eq!(of("Basic realm=\"x\""), Some(Challenge::Basic));
        for other in ["Digest realm=\"x\"", "Bearer service=\"x\"", "Bearer", "\"", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_address_of_a_token_names_service_and_repository() {
        let url = token_url("https://t.example.com/a?b=c", Some("r"), "x/y").unwrap();
        assert_eq!(url.as_str(), "https://t.example.com/a?b=c&service=r&scope=repository%3Ax%2Fy%3Apull");
        assert_eq!(token_url("not an address", None, "x"), None);
    }

    #[rstest]
    #[case(r#"{"token":"abc","access_token":"def"}"#, Some("Bearer abc"))]
    #[case(r#"{"access_token":"def"}"#, Some("Bearer def"))]
    #[case(r#"{"token":""}"#, None)]
    #[case(r#"{"token":"a\nb"}"#, None)]
    #[case("<html>", None)]
    fn a_token_is_a_header_that_is_never_printed(#[case] answer: &str, #[case] expected: Option<&str>) {
        let found = bearer(answer.as_bytes());
        assert_eq!(found.as_ref().map(|value| value.to_str().unwrap()), expected);
        assert!(found.is_none_or(|value| format!("{value:?}") == "Sensitive"));
    }
}
