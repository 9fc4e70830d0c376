//! The registry's credentials: the docker config Secret, read by name when the registry is about to be spoken to.

use std::time::{Duration, Instant};

use aicr_decide::resolve::Credentials;
use aicr_mirror::DockerConfig;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::{error::DriveError, settings::DriveSettings, write::CALL_LIMIT};

/// Key of a docker config Secret.
const KEY: &str = ".dockerconfigjson";
/// How long an answer is good.
const GOOD: Duration = Duration::from_secs(10);

/// How the registry can be spoken to.
#[derive(Clone)]
pub(crate) enum Access {
    /// With these credentials, or anonymously.
    Ready(Option<DockerConfig>),
    /// Not at all; why.
    Unavailable(String),
}

impl Access {
    /// What decisions need to know of it.
    pub(crate) fn credentials(&self) -> Credentials {
        match self {
            Self::Ready(_) => Credentials::Ready,
            Self::Unavailable(why) => Credentials::Unavailable(why.clone()),
        }
    }
}

/// Reads the Secret, and remembers the answer for a while.
pub(super) struct CredentialsReader {
    api: Api<Secret>,
    namespace: String,
    secret: Option<String>,
    known: Option<(Instant, Access)>,
}

impl CredentialsReader {
    pub(super) fn new(client: &Client, settings: &DriveSettings) -> Self {
        Self {
            api: Api::namespaced(client.clone(), &settings.namespace),
            namespace: settings.namespace.clone(),
            secret: settings.jobs.registry_secret.clone().filter(|name| !name.is_empty()),
            known: None,
        }
    }

    /// The credentials as they are now.
    pub(super) async fn read(&mut self) -> Result<Access, DriveError> {
        let Some(name) = &self.secret else { return Ok(Access::Ready(None)) };
        if let Some((at, access)) = &self.known
            && at.elapsed() < GOOD
        {
            return Ok(access.clone());
        }
        let act = || format!("get Secret {name}");
        let secret = tokio::time::timeout(CALL_LIMIT, self.api.get_opt(name))
            .await
            .map_err(|_| DriveError::Timeout { act: act(), seconds: CALL_LIMIT.as_secs() })?
            .map_err(|source| DriveError::Api { act: act(), source: Box::new(source) })?;
        let access = access(secret.as_ref(), name, &self.namespace);
        self.known = Some((Instant::now(), access.clone()));
        Ok(access)
    }
}

fn access(secret: Option<&Secret>, name: &str, namespace: &str) -> Access {
    let Some(secret) = secret else {
        return Access::Unavailable(format!(
            "docker config Secret {name} is missing in namespace {namespace}; create it"
        ));
    };
    let bytes = secret.data.as_ref().and_then(|data| data.get(KEY)).map_or(&[][..], |bytes| &bytes.0);
    match DockerConfig::parse(bytes) {
        Ok(config) => Access::Ready(Some(config)),
        Err(_) => Access::Unavailable(format!(
            "Secret {name} in namespace {namespace} has no docker config under {KEY}; write one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn a_missing_or_damaged_secret_is_said_by_name_and_its_content_is_not() {
        let secret = |text: &str| Secret {
            data: Some([(KEY.to_owned(), ByteString(text.as_bytes().to_vec()))].into()),
            ..Secret::default()
        };
        let said = |secret: Option<Secret>| match access(secret.as_ref(), "pull", "aicr-system").credentials() {
            Credentials::Ready => "ready".to_owned(),
            Credentials::Unavailable(why) => why,
        };
        assert!(said(None).contains("Secret pull is missing in namespace aicr-system"));
        let damaged = said(Some(secret("{ hunter2")));
        assert!(damaged.contains("no docker config") && !damaged.contains("hunter2"), "{damaged}");
        assert_eq!(said(Some(secret(r#"{"auths":{}}"#))), "ready");
    }
}
