//! Registry credentials as a docker configuration (`.dockerconfigjson`) holds them.

use std::{collections::BTreeMap, fmt};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use oci_client::secrets::RegistryAuth;
use serde::Deserialize;

/// Credentials by registry host; never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DockerConfig {
    hosts: BTreeMap<String, (String, String)>,
}

/// Why a docker configuration cannot be used; its text is never quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DockerConfigError {
    /// It is no JSON of that form.
    #[error("the docker configuration does not parse at line {line}, column {column}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1; 0 where unknown.
        column: usize,
    },
    /// An entry has neither a user with a password nor an `auth` that holds both.
    #[error("the docker configuration has no user and password for {host}")]
    Entry {
        /// The registry.
        host: String,
    },
}

#[derive(Deserialize)]
struct Document {
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl DockerConfig {
    /// Reads `{"auths": {"<host>": {"auth": …} | {"username": …, "password": …}}}`; other keys are ignored, so
    /// credential helpers are too.
    ///
    /// # Errors
    /// See [`DockerConfigError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DockerConfigError> {
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| DockerConfigError::Syntax { line: error.line(), column: error.column() })?;
        let hosts = document.auths.into_iter().map(|(address, entry)| {
            let host = host_of(&address);
            let pair = entry.pair().ok_or_else(|| DockerConfigError::Entry { host: host.clone() })?;
            Ok((host, pair))
        });
        Ok(Self { hosts: hosts.collect::<Result<_, _>>()? })
    }

    /// The credentials for a host as `host[:port]`; anonymous where there are none.
    pub(crate) fn auth(&self, host: &str) -> RegistryAuth {
        match self.hosts.get(&host_of(host)) {
            Some((user, password)) => RegistryAuth::Basic(user.clone(), password.clone()),
            None => RegistryAuth::Anonymous,
        }
    }
}

impl Entry {
    fn pair(self) -> Option<(String, String)> {
        if let (Some(user), Some(password)) = (self.username, self.password) {
            return Some((user, password));
        }
        let decoded = BASE64_STANDARD.decode(self.auth?.trim()).ok()?;
        let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }
}

/// `https://index.docker.io/v1/` and `docker.io` are one host.
fn host_of(address: &str) -> String {
    let bare = address.split_once("://").map_or(address, |(_, rest)| rest);
    match bare.split('/').next().unwrap_or_default() {
        "docker.io" | "registry-1.docker.io" => "index.docker.io".to_owned(),
        host => host.to_owned(),
    }
}

impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerConfig").field("hosts", &self.hosts.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn basic(user: &str, password: &str) -> RegistryAuth {
        RegistryAuth::Basic(user.to_owned(), password.to_owned())
    }

    #[rstest]
    #[case::words(r#"{"auths":{"r.example.com":{"username":"u","password":"p:w"}}}"#, "r.example.com", "p:w")]
    #[case::auth(r#"{"auths":{"r.example.com":{"auth":"dTpwOnc="}}}"#, "r.example.com", "p:w")]
    #[case::address(r#"{"auths":{"https://r.example.com:5000/v1/":{"auth":"dTpw"}}}"#, "r.example.com:5000", "p")]
    #[case::docker_hub(r#"{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}"#, "docker.io", "p")]
    fn credentials_are_found_by_host(#[case] text: &str, #[case] host: &str, #[case] password: &str) {
        let config = DockerConfig::parse(text.as_bytes()).unwrap();
        assert_eq!(config.auth(host), basic("u", password));
        assert_eq!(config.auth("other.example.com"), RegistryAuth::Anonymous);
    }

    #[rstest]
    #[case::no_json("secret", "line 1")]
    #[case::no_auths(r#"{"a":"secret"}"#, "line 1")]
    #[case::auth_is_a_list(r#"{"auths":{"r":{"auth":["secret"]}}}"#, "line 1")]
    #[case::text_for_an_entry(r#"{"auths":{"r":"secret"}}"#, "line 1")]
    #[case::no_base64(r#"{"auths":{"r":{"auth":"secret!"}}}"#, "for r")]
    #[case::no_colon(r#"{"auths":{"r":{"auth":"c2VjcmV0"}}}"#, "for r")]
    #[case::user_alone(r#"{"auths":{"r":{"username":"secret"}}}"#, "for r")]
    fn an_unusable_configuration_says_where_and_never_quotes(#[case] text: &str, #[case] said: &str) {
        let message = DockerConfig::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(said) && !message.contains("secret"), "{message}");
    }

    #[test]
    fn debug_output_names_hosts_only() {
        let config = DockerConfig::parse(br#"{"auths":{"r":{"username":"u","password":"hidden"}}}"#).unwrap();
        let text = format!("{config:?}");
        assert!(text.contains('r') && !text.contains("hidden"), "{text}");
    }
}
