//! Registry tokens: fetched by the leader, kept in Argo CD's Secret, and handed to the mirror and to each run.

mod held;
mod keeper;

use std::{fmt, sync::Arc};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

pub(crate) use held::{Held, Holding};
pub(crate) use keeper::Keeper;

/// A registry's user and token, and until when they are good; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The user.
    pub user: String,
    password: String,
    /// When the registry will refuse it, as the registry says.
    pub expires_at: Timestamp,
}

/// Why authorization data is no token; its text is never quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not base64 of a text.
    #[error("the registry's authorization data cannot be decoded")]
    Encoding,
    /// There is no colon between a user and a password, or one of them is empty.
    #[error("the registry's authorization data does not hold a user and a password")]
    Form,
}

impl Token {
    /// Reads ECR's authorization data, base64 of `user:password`; the password may hold colons itself.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn from_authorization(data: &str, expires_at: Timestamp) -> Result<Self, TokenError> {
        let decoded = BASE64_STANDARD.decode(data.trim()).map_err(|_| TokenError::Encoding)?;
        let text = String::from_utf8(decoded).map_err(|_| TokenError::Encoding)?;
        let (user, password) = text.split_once(':').ok_or(TokenError::Form)?;
        if user.is_empty() || password.is_empty() {
            return Err(TokenError::Form);
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned(), expires_at })
    }

    /// The token itself.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// It as a docker configuration for one registry, `host[:port]`.
    pub(crate) fn docker_config(&self, host: &str) -> Vec<u8> {
        let auth = BASE64_STANDARD.encode(format!("{}:{}", self.user, self.password));
        json!({ "auths": { host: { "auth": auth } } }).to_string().into_bytes()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("user", &self.user).field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// No token was to be had; why, in words for people and without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoToken(pub String);

/// Where tokens come from.
pub trait Mint: Send + Sync {
    /// Fetches a new one; every call looks at the process's identity anew.
    fn mint(&self) -> BoxFuture<'_, Result<Token, NoToken>>;
}

/// How an installation keeps its token.
#[derive(Clone)]
pub struct TokenSettings {
    /// Argo CD's repo-creds Secret, in its namespace; the chart makes it.
    pub secret: String,
    /// Where tokens come from.
    pub mint: Arc<dyn Mint>,
}

impl fmt::Debug for TokenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSettings").field("secret", &self.secret).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn expires() -> Timestamp {
        "2026-11-30T10:00:00Z".parse().unwrap()
    }

    /// B29.
    #[test]
    fn the_password_is_all_that_follows_the_first_colon() {
        let token = Token::from_authorization(&BASE64_STANDARD.encode("AWS:abc:def=="), expires()).unwrap();
        assert_eq!((token.user.as_str(), token.password()), ("AWS", "abc:def=="));
    }

    /// B29.
    #[rstest]
    #[case::empty("", TokenError::Form)]
    #[case::no_base64("secret!", TokenError::Encoding)]
    #[case::no_text("/w==", TokenError::Encoding)]
    #[case::no_colon("c2VjcmV0", TokenError::Form)]
    #[case::no_user("OnNlY3JldA==", TokenError::Form)]
    #[case::no_password("QVdTOg==", TokenError::Form)]
    fn data_that_is_no_token_is_refused_and_not_quoted(#[case] data: &str, #[case] expected: TokenError) {
        let error = Token::from_authorization(data, expires()).unwrap_err();
        assert_eq!(error, expected);
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn debug_output_does_not_hold_the_token() {
        let token = Token::from_authorization(&BASE64_STANDARD.encode("AWS:hidden"), expires()).unwrap();
        let text = format!("{token:?}");
        assert!(text.contains("AWS") && !text.contains("hidden"), "{text}");
    }

    #[test]
    fn a_token_becomes_a_docker_configuration_that_the_mirror_reads() {
        let token = Token::from_authorization(&BASE64_STANDARD.encode("AWS:abc:def=="), expires()).unwrap();
        let text = token.docker_config("r.example.com:5000");
        let whole: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(whole["auths"]["r.example.com:5000"]["auth"], BASE64_STANDARD.encode("AWS:abc:def=="));
        aicr_mirror::DockerConfig::parse(&text).unwrap();
    }
}
