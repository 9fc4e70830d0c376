//! Fetches against an API server that notes what is written.

use futures::future::{BoxFuture, FutureExt as _};
use kube::Client;
use serde_json::json;

use super::*;
use crate::{
    played::{Played, Wrote, settings},
    settings::DriveSettings,
};

struct Scene {
    keeper: Keeper,
    played: Played,
    held: Held,
}

struct Fixed(Result<Token, NoToken>);

impl Mint for Fixed {
    fn mint(&self) -> BoxFuture<'_, Result<Token, NoToken>> {
        std::future::ready(self.0.clone()).boxed()
    }
}

fn now() -> Timestamp {
    "2026-11-30T00:00:00Z".parse().unwrap()
}

fn token(hours: i64) -> Token {
    Token::from_authorization("QVdTOnM6ZQ==", now() + jiff::SignedDuration::from_hours(hours)).unwrap()
}

/// A keeper over an API server with Argo CD's CRD.
fn scene(mint: Result<Token, NoToken>) -> Scene {
    let tokens = TokenSettings { secret: "aicr-registry".to_owned(), mint: Arc::new(Fixed(mint)) };
    let settings = DriveSettings { tokens: Some(tokens.clone()), ..settings() };
    let (played, client, watches): (_, Client, _) = Played::new(&settings);
    let (writer, held) = (Writer::new(client, &settings), Held::default());
    let keeper = Keeper::new(tokens, "argocd", watches, writer, held.clone());
    Scene { keeper, played, held }
}

impl Scene {
    fn with_secret(self, expires: Option<Timestamp>) -> Self {
        let annotations = expires.map(|at| json!({ "operator.aicr.run/token-expires-at": at.to_string() }));
        let secret =
            json!({ "metadata": { "name": "aicr-registry", "namespace": "argocd", "annotations": annotations } });
        self.played.have("/api/v1/namespaces/argocd/secrets", secret);
        self
    }

    fn with_application(self, name: &str, message: &str) -> Self {
        let application = json!({
            "metadata": { "name": name, "namespace": "argocd" },
            "status": { "conditions": [{ "type": "ComparisonError", "message": message }] },
        });
        self.played.have("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications", application);
        self
    }

    fn wrote(&self) -> Vec<Wrote> {
        self.played.wrote()
    }
}

/// B27: once it works again, each Application that the registry refused is asked once to look again.
#[tokio::test]
async fn a_fetch_fills_the_secret_and_asks_refused_applications_once() {
    let scene = scene(Ok(token(12)))
        .with_secret(None)
        .with_application("b", "403: denied: the token has expired")
        .with_application("a", "template: undefined");
    let fetches = scene.keeper.fetch(Fetches::default(), now()).await;
    assert_eq!(fetches, Fetches::succeeded(now()));
    let wrote = scene.wrote();
    let paths: Vec<&str> = wrote.iter().map(|(path, _)| path.as_str()).collect();
    let (secret, application) = (
        "PATCH /api/v1/namespaces/argocd/secrets/aicr-registry",
        "PATCH /apis/argoproj.io/v1alpha1/namespaces/argocd/applications/b",
    );
    assert_eq!(paths, [secret, application]);
    assert_eq!(wrote[0].1["metadata"]["annotations"]["operator.aicr.run/token-expires-at"], "2026-11-30T12:00:00Z");
    assert_eq!(wrote[0].1["metadata"]["resourceVersion"], "1");
    assert_eq!(wrote[1].1["metadata"]["annotations"]["argocd.argoproj.io/refresh"], "normal");
    assert!(matches!(scene.held.holding(now()), crate::credentials::Holding::Token(_)));
    assert_eq!(metrics().token_times(), (token(12).expires_at.as_second(), now().as_second()));
}

/// B29: what cannot be fetched leaves the Secret untouched; and the token that is held lasts on.
#[tokio::test]
async fn a_fetch_that_fails_writes_nothing_and_is_counted() {
    let scene = scene(Err(NoToken("AccessDenied".to_owned()))).with_secret(Some(now()));
    scene.held.put(token(12));
    let fetches = scene.keeper.fetch(Fetches::succeeded(now()), now()).await;
    assert_eq!(fetches.failures, 1);
    assert_eq!(scene.wrote(), []);
    assert!(matches!(scene.held.holding(now()), crate::credentials::Holding::Token(_)));
}

#[tokio::test]
async fn without_its_secret_the_token_still_serves_the_mirror_and_the_runs() {
    let scene = scene(Ok(token(12)));
    let fetches = scene.keeper.fetch(Fetches::default(), now()).await;
    assert_eq!((fetches.failures, scene.wrote()), (1, vec![]));
    assert!(matches!(scene.held.holding(now()), crate::credentials::Holding::Token(_)));
    let NoToken(why) = scene.keeper.store(&token(12)).await.unwrap_err();
    assert!(
        why.contains("Secret aicr-registry is missing in namespace argocd") && why.contains("helm upgrade"),
        "{why}"
    );
}

#[tokio::test]
async fn a_token_that_has_expired_already_is_a_failure_and_not_fetched_without_pause() {
    let scene = scene(Ok(token(0))).with_secret(None);
    let fetches = scene.keeper.fetch(Fetches::default(), now()).await;
    assert_eq!(fetches.failures, 1);
    assert!(fetches.next(&TokenSeen::Expires(now()), now(), 0.0) >= now() + jiff::SignedDuration::from_secs(10));
}

/// B28: what the Secret says counts, and nothing of what Argo CD shows.
#[tokio::test]
async fn the_secret_alone_says_whether_its_token_is_fresh() {
    let later = now() + jiff::SignedDuration::from_hours(6);
    let fresh = |scene: Scene| scene.keeper.watches.token().is_fresh(now());
    assert!(fresh(scene(Ok(token(12))).with_secret(Some(later)).with_application("b", "403")));
    assert!(!fresh(scene(Ok(token(12))).with_secret(Some(now()))));
    assert!(!fresh(scene(Ok(token(12))).with_secret(None)));
    assert!(!fresh(scene(Ok(token(12)))));
}
