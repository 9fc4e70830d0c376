//! What deployment validation needs: where it runs, and, once it is due, what it lacks.

use std::time::{Duration, Instant};

use aicr_crds::{RuntimeRollout, rollout::RolloutKind, runtime::DeploymentValidation};
use aicr_decide::{
    facts::ValidationPlace,
    resolve::{Credentials, launcher},
    rollout::Position,
    seen::World,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};

use super::asked::asked;
use crate::{error::chain, settings::DriveSettings};

/// How long an answer is good.
const GOOD: Duration = Duration::from_secs(10);
/// How soon what is missing is looked for again: no event tells of it.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// Looks for what validation needs.
pub(super) struct ValidationReader {
    accounts: Api<ServiceAccount>,
    account: String,
    namespace: String,
    known: Option<(Instant, Option<String>)>,
    lacking: bool,
}

impl ValidationReader {
    /// A reader of this installation; nothing is asked yet.
    pub(super) fn new(client: &Client, settings: &DriveSettings) -> Self {
        let jobs = &settings.jobs;
        Self {
            accounts: Api::namespaced(client.clone(), &jobs.validation_namespace),
            account: jobs.validation_service_account.clone(),
            namespace: jobs.validation_namespace.clone(),
            known: None,
            lacking: false,
        }
    }

    /// Where it runs, and what its commands name.
    pub(super) fn place(&self, world: &World) -> ValidationPlace {
        let install = &world.install;
        ValidationPlace {
            namespace: self.namespace.clone(),
            repository: install.repository.clone(),
            plain_http: install.is_plain_http(),
            snapshot: launcher(&world.runtime.spec, install),
            discovery_namespace: install.discovery_namespace.clone(),
        }
    }

    /// What is missing, as far as it can be told beforehand; a docker config Secret that is missing beside the Jobs is
    /// named by the pod that waits for it.
    pub(super) async fn lacks(&mut self, credentials: &Credentials) -> Option<String> {
        let lacks = match credentials {
            Credentials::Ready => self.account().await,
            Credentials::Pending => Some("the first registry token is being fetched".to_owned()),
            Credentials::Unavailable(why) => Some(why.clone()),
        };
        self.lacking = lacks.is_some();
        lacks
    }

    async fn account(&mut self) -> Option<String> {
        if let Some((at, answer)) = &self.known
            && at.elapsed() < GOOD
        {
            return answer.clone();
        }
        let answer = self.ask().await;
        self.known = Some((Instant::now(), answer.clone()));
        answer
    }

    async fn ask(&self) -> Option<String> {
        let Self { account, namespace, .. } = self;
        let found = asked(format!("get ServiceAccount {account}"), self.accounts.get_opt(account)).await;
        match found {
            Ok(Some(_)) => None,
            Ok(None) => Some(format!(
                "ServiceAccount {account} is missing in namespace {namespace}, or the namespace is; run helm upgrade"
            )),
            Err(error) => Some(format!("what validation needs cannot be read: {}", chain(&error))),
        }
    }

    /// When to look again, where something was missing.
    pub(super) fn again(&self, now: Timestamp) -> Option<Timestamp> {
        self.lacking.then(|| now + AGAIN)
    }

    /// Forgets the answer: nothing is due.
    pub(super) fn forget(&mut self) {
        (self.known, self.lacking) = (None, false);
    }
}

/// Whether all its steps are ready, and validation is what is left.
pub(super) fn is_due(world: &World) -> bool {
    let validates = |rollout: &&RuntimeRollout| {
        rollout.spec.validation == DeploymentValidation::Required && rollout.spec.kind == RolloutKind::Change
    };
    world.unfinished().filter(validates).is_some_and(|rollout| {
        let position = Position::find(rollout, &world.applications);
        position.next.is_none() && position.in_flight.is_none()
    })
}

#[cfg(test)]
mod tests {
    use kube::client::Body;

    use super::*;

    fn reader(code: u16, body: &'static str) -> ValidationReader {
        let service = tower::service_fn(move |_: http::Request<Body>| async move {
            let answer = http::Response::builder().status(code).body(Body::from(body.as_bytes().to_vec()));
            Ok::<_, std::convert::Infallible>(answer.unwrap())
        });
        ValidationReader {
            accounts: Api::namespaced(Client::new(service, "default"), "aicr-validation"),
            account: "aicr-validation-launcher".to_owned(),
            namespace: "aicr-validation".to_owned(),
            known: None,
            lacking: false,
        }
    }

    const ABSENT: &str = r#"{"kind":"Status","status":"Failure","reason":"NotFound","message":"no","code":404}"#;
    const FORBIDDEN: &str = r#"{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no","code":403}"#;
    const THERE: &str = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}}"#;

    #[tokio::test]
    async fn what_is_missing_is_named_and_looked_for_again() {
        let now = Timestamp::UNIX_EPOCH;
        let mut absent = reader(404, ABSENT);
        let said = absent.lacks(&Credentials::Ready).await.unwrap();
        assert!(said.starts_with("ServiceAccount aicr-validation-launcher is missing in namespace aicr-validation"));
        assert_eq!(absent.again(now), Some(now + AGAIN));
        absent.forget();
        assert_eq!(absent.again(now), None);
        let said = reader(403, FORBIDDEN).lacks(&Credentials::Ready).await.unwrap();
        assert!(said.contains("get ServiceAccount aicr-validation-launcher: 403"), "{said}");
        assert_eq!(reader(200, THERE).lacks(&Credentials::Ready).await, None);
    }

    #[tokio::test]
    async fn evidence_needs_the_registry() {
        let without = Credentials::Unavailable("no ECR token".to_owned());
        assert_eq!(reader(200, THERE).lacks(&without).await.as_deref(), Some("no ECR token"));
    }
}
