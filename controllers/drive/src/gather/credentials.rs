//! The registry's credentials: the docker config Secret, read by name when the registry is about to be spoken to, or the
//! token of the moment.

use aicr_decide::resolve::{Credentials, backoff};
use aicr_mirror::DockerConfig;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::asked::asked;
use crate::{
    credentials::{Held, Holding},
    error::DriveError,
    jobs::{RegistrySecret, objects::DOCKER_KEY},
    settings::DriveSettings,
};

/// How long credentials that were read are good.
const GOOD: SignedDuration = SignedDuration::from_secs(10);

/// How the registry can be spoken to.
#[derive(Clone)]
pub(crate) enum Access {
    /// With these credentials, or anonymously.
    Ready(Option<DockerConfig>),
    /// Not yet: the first token is being fetched.
    Pending,
    /// Not until then at least; why.
    Unavailable(String, Timestamp),
}

impl Access {
    /// What decisions need to know of it.
    pub(crate) fn credentials(&self) -> Credentials {
        match self {
            Self::Ready(_) => Credentials::Ready,
            Self::Pending => Credentials::Pending,
            Self::Unavailable(why, _) => Credentials::Unavailable(why.clone()),
        }
    }
}

/// Where credentials are from.
enum Source {
    Anonymous,
    /// A Secret of this name in the operator's namespace.
    Secret(String),
    Token,
}

/// Reads credentials, and remembers the answer for a while.
pub(super) struct CredentialsReader {
    api: Api<Secret>,
    namespace: String,
    host: String,
    source: Source,
    held: Held,
    known: Option<(Timestamp, Access)>,
    failures: u32,
}

impl CredentialsReader {
    pub(super) fn new(client: &Client, settings: &DriveSettings, held: Held) -> Self {
        let source = match &settings.jobs.registry_secret {
            RegistrySecret::Anonymous => Source::Anonymous,
            RegistrySecret::Kept(name) => Source::Secret(name.clone()),
            RegistrySecret::OfTheRun => Source::Token,
        };
        let host = settings.install.repository.split('/').next().unwrap_or_default().to_owned();
        Self {
            api: Api::namespaced(client.clone(), &settings.namespace),
            namespace: settings.namespace.clone(),
            host,
            source,
            held,
            known: None,
            failures: 0,
        }
    }

    /// The credentials as they are now.
    pub(super) async fn read(&mut self, now: Timestamp) -> Result<Access, DriveError> {
        let name = match &self.source {
            Source::Anonymous => return Ok(Access::Ready(None)),
            Source::Token => return Ok(token(&self.held.holding(now), &self.host, now)),
            Source::Secret(name) => name.clone(),
        };
        if let Some((until, access)) = &self.known
            && now < *until
        {
            return Ok(access.clone());
        }
        let secret = asked(format!("get Secret {name}"), self.api.get_opt(&name)).await?;
        let (access, until) = match docker_config(secret.as_ref(), &name, &self.namespace) {
            Ok(config) => {
                self.failures = 0;
                (Access::Ready(Some(config)), now + GOOD)
            }
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                let again = now + backoff(self.failures);
                (Access::Unavailable(why, again), again)
            }
        };
        self.known = Some((until, access.clone()));
        Ok(access)
    }

    /// The token of the moment as a docker configuration, where that is what runs are given.
    pub(super) fn docker_config(&self, now: Timestamp) -> Option<Vec<u8>> {
        match (&self.source, self.held.holding(now)) {
            (Source::Token, Holding::Token(token)) => Some(token.docker_config(&self.host)),
            (Source::Token | Source::Secret(_) | Source::Anonymous, _) => None,
        }
    }
}

/// How soon a missing token is looked for again; its keeper tells sooner.
const TOKEN_LOOK: SignedDuration = SignedDuration::from_mins(5);

fn token(holding: &Holding, host: &str, now: Timestamp) -> Access {
    let why = match holding {
        Holding::Nothing => return Access::Pending,
        Holding::Token(token) => match DockerConfig::parse(&token.docker_config(host)) {
            Ok(config) => return Access::Ready(Some(config)),
            Err(error) => error.to_string(),
        },
        Holding::Failed(why) => why.clone(),
    };
    Access::Unavailable(
        format!(
            "no ECR token: {why}; check the operator's AWS identity (the EKS Pod Identity association, or the IRSA annotation in operator.serviceAccountAnnotations) and the role's policy"
        ),
        now + TOKEN_LOOK,
    )
}

fn docker_config(secret: Option<&Secret>, name: &str, namespace: &str) -> Result<DockerConfig, String> {
    let Some(secret) = secret else {
        return Err(format!(
            "docker config Secret {name} is missing in namespace {namespace}; create it there, and in the namespaces of the Jobs"
        ));
    };
    let bytes = secret.data.as_ref().and_then(|data| data.get(DOCKER_KEY)).map_or(&[][..], |bytes| &bytes.0);
    DockerConfig::parse(bytes).map_err(|_| {
        format!("Secret {name} in namespace {namespace} has no docker config under {DOCKER_KEY}; write one")
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;
    use crate::credentials::Token;

    #[test]
    fn a_missing_or_damaged_secret_is_said_by_name_and_its_content_is_not() {
        let secret = |text: &str| Secret {
            data: Some([(DOCKER_KEY.to_owned(), ByteString(text.as_bytes().to_vec()))].into()),
            ..Secret::default()
        };
        let said = |secret: Option<Secret>| docker_config(secret.as_ref(), "pull", "aicr-system").err();
        assert!(said(None).unwrap().contains("Secret pull is missing in namespace aicr-system"));
        let damaged = said(Some(secret("{ hunter2"))).unwrap();
        assert!(damaged.contains("no docker config") && !damaged.contains("hunter2"), "{damaged}");
        assert_eq!(said(Some(secret(r#"{"auths":{}}"#))), None);
    }

    #[test]
    fn a_token_is_waited_for_at_first_and_named_when_there_is_none() {
        let now = Timestamp::UNIX_EPOCH;
        let of = |holding: Holding| token(&holding, "r.example.com", now).credentials();
        assert_eq!(of(Holding::Nothing), Credentials::Pending);
        let Credentials::Unavailable(why) = of(Holding::Failed("AccessDenied".to_owned())) else { panic!() };
        assert!(why.starts_with("no ECR token: AccessDenied; check the operator's AWS identity"), "{why}");
        let fetched = Token::from_authorization("QVdTOnM6ZQ==", now).unwrap();
        assert_eq!(of(Holding::Token(fetched)), Credentials::Ready);
    }
}
