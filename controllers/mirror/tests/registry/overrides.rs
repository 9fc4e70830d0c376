//! Overrides against the render without them and against the chart's own defaults.

use aicr_crds::{reason::Reason, runtime::Override};
use aicr_decide::resolve::{AicrInstall, MirrorPlan};
use aicr_mirror::{Around, MirrorFailure, Registry, RegistryConfig, SourcesConfig, make_plan};
use rstest::rstest;

use super::{
    config,
    fixture::{
        bundle::Sample,
        server::{Mode, Server},
        shop::{Shop, chart},
    },
    mirror_plan,
};

fn set(path: &str, additive: bool) -> Override {
    Override { component: "gpu-operator".into(), path: path.into(), value: "hidden".into(), additive }
}

/// Resolves with these overrides, where AICR renders `before` without and `after` with them. The chart's defaults are
/// `replicaCount: 1`, `webhook.timeoutSeconds: 10` and `image.tag: "1.20"`.
async fn resolve(overrides: Vec<Override>, before: &str, after: &str) -> Result<(), MirrorFailure> {
    let (server, shop) = (Server::start(Mode::Open), Shop::open());
    shop.stock(&chart("cert-manager", "v1.20.2", "good"));
    let known = config(&server.host);
    let sources = SourcesConfig { ca_bundle: shop.server.authority.clone(), ..known.sources.clone() };
    let registry = Registry::new(RegistryConfig { sources, ..known }).unwrap();
    let sample = Sample::of(&server.host, "1.1.2").from("cert-manager", &shop.repo(), "v1.20.2");
    let base = sample.clone().values(before).push().await;
    let bundle = sample.values(after).push().await;
    let mirror = MirrorPlan { base: Some(base), overrides, ..mirror_plan(bundle) };
    let aicr = AicrInstall { version: "v1.1.2".into(), image: "r/aicr@sha256:00".into() };
    let around =
        Around { runtime_uid: "uid", aicr: &aicr, created: jiff::Timestamp::UNIX_EPOCH, namespace_allowed: &|_| true };
    make_plan(&registry, &mirror, None, &around).await.map(drop)
}

#[rstest]
#[case::in_the_base("a", false, "a: 1\n", "a: 2\n")]
#[case::in_the_defaults("webhook.timeoutSeconds", false, "a: 1\n", "a: 1\nwebhook: {timeoutSeconds: 30}\n")]
#[case::text_in_the_defaults("image.tag", false, "a: 1\n", "a: 1\nimage: {tag: \"1.30\"}\n")]
#[case::additive("b.c", true, "a: 1\n", "a: 1\nb: {c: 1}\n")]
#[tokio::test]
async fn a_path_that_exists_or_is_additive_makes_a_plan(
    #[case] path: &str,
    #[case] additive: bool,
    #[case] before: &str,
    #[case] after: &str,
) {
    resolve(vec![set(path, additive)], before, after).await.unwrap();
}

#[tokio::test]
async fn paths_that_are_nowhere_are_all_named() {
    let overrides = vec![set("webhook.timeout", false), set("a", false), set("replicas", false)];
    let after = "a: 2\nwebhook: {timeout: 1}\nreplicas: 1\n";
    let failure = resolve(overrides, "a: 1\n", after).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::OverridePathUnknown));
    let said = "hold gpu-operator:webhook.timeout, gpu-operator:replicas; correct the path";
    assert!(failure.message.contains(said) && !failure.message.contains("hidden"), "{failure}");
}

#[tokio::test]
async fn a_version_that_arrives_as_a_number_is_refused_by_the_chart_s_default_too() {
    let failure = resolve(vec![set("image.tag", false)], "a: 1\n", "a: 1\nimage: {tag: 1.30}\n").await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::InvalidOverride));
    assert!(failure.message.contains("arrives as a number, but the chart's default is text"), "{failure}");
}
