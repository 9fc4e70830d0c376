//! What the watches say of Argo CD, one thing after the other there, gone and back.

use std::sync::Arc;

use jiff::SignedDuration;
use kube::Client;
use serde_json::json;

use super::*;
use crate::{
    credentials::{Mint, NoToken, Token, TokenSettings},
    played::{Played, settings},
    write::{Writer, Written},
};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ARGO_CD: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd";
const SECRETS: &str = "/api/v1/namespaces/argocd/secrets";

struct NoMint;

impl Mint for NoMint {
    fn mint(&self) -> futures::future::BoxFuture<'_, Result<Token, NoToken>> {
        unreachable!("nothing is fetched here")
    }
}

fn now() -> Timestamp {
    "2026-11-30T00:00:00Z".parse().unwrap()
}

struct Scene {
    played: Played,
    client: Client,
    watches: Arc<Watches>,
    settings: DriveSettings,
}

/// An installation that fetches tokens, or does not, on a cluster without Argo CD.
fn scene(tokens: bool) -> Scene {
    let tokens = tokens.then(|| TokenSettings { secret: "aicr-registry".to_owned(), mint: Arc::new(NoMint) });
    let settings = DriveSettings { tokens, ..settings() };
    let (played, client, watches) = Played::new(&settings);
    Scene { played, client, watches, settings }
}

impl Scene {
    fn with_argo_cd(self) -> Self {
        self.played.have(CRDS, json!({ "metadata": { "name": "applications.argoproj.io" } }));
        self.played.have(&format!("{ARGO_CD}/appprojects"), json!({ "metadata": { "name": "aicr" } }));
        self
    }

    fn state(&self, rights: MayWrite, at: Timestamp) -> EngineState {
        state(&self.watches, rights, at)
    }
}

#[tokio::test]
async fn each_part_of_argo_cd_that_is_missing_is_named_and_its_return_is_seen() {
    let scene = scene(false);
    let is = || scene.state(MayWrite::Yes, now());
    assert_eq!(is(), EngineState::Missing);
    assert_eq!(scene.state(MayWrite::No, now()), EngineState::Missing, "rights to what is not there are no matter");
    scene.played.have(CRDS, json!({ "metadata": { "name": "applications.argoproj.io" } }));
    assert_eq!(is(), EngineState::ProjectMissing);
    scene.played.have(&format!("{ARGO_CD}/appprojects"), json!({ "metadata": { "name": "aicr" } }));
    assert_eq!(is(), EngineState::Available);
    scene.played.lose(&format!("{ARGO_CD}/appprojects/aicr"));
    assert_eq!(is(), EngineState::ProjectMissing);
    scene.played.lose(&format!("{CRDS}/applications.argoproj.io"));
    assert_eq!(is(), EngineState::Missing);
}

#[tokio::test]
async fn a_right_that_is_taken_away_is_named_until_it_is_given_back() {
    let scene = scene(false).with_argo_cd();
    assert_eq!(scene.state(MayWrite::No, now()), EngineState::Unauthorized);
    assert_eq!(scene.state(MayWrite::Yes, now()), EngineState::Available);
    scene.played.refuse_applications();
    assert_eq!(scene.state(MayWrite::Yes, now()), EngineState::Unauthorized);
    scene.played.lose(&format!("{ARGO_CD}/appprojects/aicr"));
    assert_eq!(scene.state(MayWrite::Yes, now()), EngineState::Unauthorized, "what may not be read is not missing");
    scene.played.have(&format!("{ARGO_CD}/appprojects"), json!({ "metadata": { "name": "aicr" } }));
    scene.played.have(&format!("{ARGO_CD}/applications"), json!({ "metadata": { "name": "a" } }));
    assert_eq!(scene.state(MayWrite::Yes, now()), EngineState::Available);
}

/// B27, the joint: what the Secret says turns the condition an hour before the token ends, and the token that is
/// written then turns it back.
#[tokio::test]
async fn b27_the_secrets_own_expiry_makes_the_condition_and_a_token_that_is_written_ends_it() {
    let scene = scene(true).with_argo_cd();
    let after = |hours: i64, seconds: i64| now() + SignedDuration::from_secs(hours * 3600 + seconds);
    let is = |at| scene.state(MayWrite::Yes, at);
    assert_eq!(is(now()), EngineState::CredentialsStale, "no Secret");
    scene.played.have(SECRETS, json!({ "metadata": { "name": "aicr-registry", "namespace": "argocd" } }));
    assert_eq!(is(now()), EngineState::CredentialsStale, "no token in it yet");
    let store = async |expires: Timestamp| {
        let token = Token::from_authorization("QVdTOnM6ZQ==", expires).unwrap();
        let secret = scene.watches.repo_creds.as_ref().and_then(|shelf| shelf.get("aicr-registry")).unwrap();
        let writer = Writer::new(scene.client.clone(), &scene.settings);
        assert_eq!(writer.store_token(&secret.metadata, &token).await.unwrap(), Written::Done(()));
    };
    store(after(12, 0)).await;
    assert_eq!(is(now()), EngineState::Available);
    assert_eq!(is(after(11, 0)), EngineState::Available);
    assert_eq!(is(after(11, 1)), EngineState::CredentialsStale);
    store(after(23, 1800)).await;
    assert_eq!(is(after(11, 1800)), EngineState::Available);
    let unreadable = json!({ "operator.aicr.run/token-expires-at": "tomorrow" });
    scene.played.have(
        SECRETS,
        json!({ "metadata": { "name": "aicr-registry", "namespace": "argocd", "annotations": unreadable } }),
    );
    assert_eq!(is(now()), EngineState::CredentialsStale);
}

#[tokio::test]
async fn without_tokens_of_its_own_no_token_is_missed() {
    let scene = scene(false).with_argo_cd();
    assert_eq!(scene.state(MayWrite::Yes, now()), EngineState::Available);
}
