//! The carrier against a real registry, and against registries that fail in ways a real one cannot be told to.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

mod fixture;
mod helm;
mod lies;
mod overrides;

use std::time::Duration;

use aicr_crds::{Digest, plan::StoredPlan, reason::Reason};
use aicr_decide::resolve::{AicrInstall, MirrorPlan};
use aicr_mirror::{Around, DockerConfig, MirrorFailure, Registry, RegistryConfig, SourcesConfig, Times, make_plan};
use fixture::{
    bundle::{self, Sample},
    fake,
    server::{Mode, PASSWORD, Server, USER},
};
use rstest::rstest;

fn registry(host: &str, auth: Option<&str>) -> Registry {
    let auth = auth.map(|text| DockerConfig::parse(text.as_bytes()).unwrap());
    Registry::new(RegistryConfig { auth, ..config(host) }).unwrap()
}

/// Of a registry on loopback, with all chart sources there too.
fn config(host: &str) -> RegistryConfig {
    fixture::provider();
    RegistryConfig {
        repository: format!("{host}/aicr"),
        plain_http: vec![host.to_owned()],
        sources: SourcesConfig { allowed_addresses: vec!["127.0.0.1".to_owned()], ..SourcesConfig::default() },
        ..RegistryConfig::default()
    }
}

/// Requests that give up soon, for answers that never come.
fn hasty() -> Times {
    Times { connect: Duration::from_secs(5), silence: Duration::from_secs(1), whole: Duration::from_secs(3) }
}

fn login(host: &str, password: &str) -> String {
    format!(r#"{{"auths":{{"{host}":{{"username":"{USER}","password":"{password}"}}}}}}"#)
}

async fn plan(
    registry: &Registry,
    version: &str,
    bundle: Digest,
    active: Option<&StoredPlan>,
) -> Result<StoredPlan, MirrorFailure> {
    let aicr = AicrInstall { version: version.into(), image: "r/aicr@sha256:00".into() };
    let around = Around {
        runtime_uid: "uid",
        aicr: &aicr,
        created: "2026-11-29T00:00:00Z".parse().unwrap(),
        namespace_allowed: &|_| true,
    };
    let mirror = mirror_plan(bundle);
    let future = make_plan(registry, &mirror, active.map(|stored| &stored.plan), &around);
    sendable(future).await
}

fn mirror_plan(bundle: Digest) -> MirrorPlan {
    MirrorPlan {
        bundle,
        base: None,
        overrides: vec![],
        inputs: Digest::of(b"inputs"),
        snapshot: "aicr-snapshot-1".into(),
        criteria: aicr_crds::runtime::Criteria::default(),
    }
}

/// The drive runs it in a task of its own.
fn sendable<T: Send>(future: T) -> T {
    future
}

#[tokio::test]
async fn a_plan_holds_what_was_carried_byte_for_byte_and_a_second_run_pushes_nothing() {
    let server = Server::start(Mode::Open);
    let source = bundle::push_charts(&server.host).await;
    let first = Sample::of(&server.host, "1.1.2").push().await;
    let next = Sample::of(&server.host, "1.1.3").push().await;
    let stored = plan(&registry(&server.host, None), "v1.1.2", first, None).await.unwrap();

    let release = |id: &str| stored.plan.release(id).unwrap();
    let operator = release("gpu-operator");
    assert_eq!(operator.content.chart.repository, "charts/gpu-operator");
    assert_eq!((operator.content.chart.content, operator.archive.digest), (source, source));
    assert_eq!(server.digest("aicr/charts/gpu-operator", "v26.7.1_b.1").await, Some(source));
    assert_eq!(operator.archive.version, "v26.7.1+b.1");
    assert_eq!(operator.archive.crds, ["clusterpolicies.nvidia.com"]);
    assert_eq!(operator.content.values, "a: 1\n");
    let wrapper = release("tuning");
    assert_eq!(
        (wrapper.content.chart.repository.as_str(), wrapper.archive.version.as_str()),
        ("wrappers/tuning", "1.1.2")
    );
    assert_eq!(wrapper.content.depends_on, ["gpu-operator"]);
    let tag = format!("1.1.2-{}", wrapper.archive.digest.short());
    assert_eq!(server.digest("aicr/wrappers/tuning", &tag).await, Some(wrapper.archive.digest));
    assert_eq!(stored.recipe.as_deref(), Some(bundle::recipe("1.1.2").as_str()));
    assert_eq!(stored.context.aicr_version.as_deref(), Some("v1.1.2"));

    // Read-only, the registry refuses every push.
    let server = server.restart(Mode::ReadOnly);
    let here = registry(&server.host, None);
    let again = plan(&here, "v1.1.2", first, None).await.unwrap();
    assert_eq!((&again.plan, &again.recipe), (&stored.plan, &stored.recipe));

    // Another AICR version stamps the wrapper, and its content is the same: the active plan's archive stays.
    let kept = plan(&here, "v1.1.3", next, Some(&stored)).await.unwrap();
    assert_eq!(kept.plan, stored.plan);
    let refused = plan(&here, "v1.1.3", next, None).await.unwrap_err();
    assert!(refused.reason.is_none() && refused.message.contains("push "), "{refused}");
}

/// B93: another time, snapshot, runtime and replica, the maps of recipe and bundle in another order; the same bytes.
#[tokio::test]
async fn twenty_resolutions_of_the_same_output_are_one_plan() {
    let server = Server::start(Mode::Open);
    bundle::push_charts(&server.host).await;
    let aicr = AicrInstall { version: "v1.1.2".into(), image: "r/aicr@sha256:00".into() };
    let (mut contents, mut bundles) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for run in 0..20 {
        let bundle = Sample::of(&server.host, "v1.1.2").turned(usize::try_from(run).unwrap()).push().await;
        bundles.insert(bundle);
        let uid = format!("uid-{}", run % 2);
        let created = jiff::Timestamp::from_second(1_800_000_000 + run * 86_400).unwrap();
        let around = Around { runtime_uid: &uid, aicr: &aicr, created, namespace_allowed: &|_| true };
        let mirror = MirrorPlan {
            inputs: Digest::of(&run.to_le_bytes()),
            snapshot: format!("aicr-snapshot-{run}"),
            ..mirror_plan(bundle)
        };
        // Each as another replica would: a client of its own.
        let stored = make_plan(&registry(&server.host, None), &mirror, None, &around).await.unwrap();
        contents.insert((stored.plan.digest(), aicr_crds::digest::canonical(stored.plan.content()).unwrap()));
    }
    assert_eq!((bundles.len(), contents.len()), (bundle::TURNS, 1), "{contents:?}");
}

#[tokio::test]
async fn other_content_under_a_tag_is_a_conflict_that_names_both_digests() {
    let server = Server::start(Mode::Open);
    let wanted = bundle::push_charts(&server.host).await;
    let found = bundle::push_chart(&server.host, "aicr/charts/gpu-operator", "v26.7.1+b.1", "something: else\n").await;
    let sample = Sample::of(&server.host, "1.1.2").push().await;
    let failure = plan(&registry(&server.host, None), "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::Conflict));
    for digest in [wanted, found] {
        assert!(failure.message.contains(&digest.to_string()), "{failure}");
    }
    assert_eq!(server.digest("aicr/charts/gpu-operator", "v26.7.1_b.1").await, Some(found));
}

#[tokio::test]
async fn credentials_open_the_registry_and_wrong_ones_stall_without_being_quoted() {
    let server = Server::start(Mode::Basic);
    let missing = Digest::of(b"no such bundle");
    let right = registry(&server.host, Some(&login(&server.host, PASSWORD)));
    let failure = plan(&right, "v1.1.2", missing, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::AICRInternal), "{failure}");
    for auth in [None, Some(login(&server.host, "hidden"))] {
        let failure = plan(&registry(&server.host, auth.as_deref()), "v1.1.2", missing, None).await.unwrap_err();
        assert_eq!(failure.reason, Some(Reason::Unauthorized), "{failure}");
        assert!(!failure.message.contains("hidden"), "{failure}");
    }
}

#[tokio::test]
async fn what_the_source_lacks_or_is_too_large_stalls_and_says_what() {
    let server = Server::start(Mode::Open);
    let sample = Sample::of(&server.host, "1.1.2").push().await;
    let here = registry(&server.host, None);
    let failure = plan(&here, "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    assert!(failure.message.contains("upstream/gpu-operator: it has no version v26.7.1+b.1"), "{failure}");

    bundle::push_image(&server.host, "upstream/gpu-operator", "v26.7.1_b.1").await;
    let failure = plan(&here, "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    assert!(failure.message.contains("it is no Helm chart"), "{failure}");

    bundle::push_large(&server.host, "upstream/gpu-operator", "v26.7.1_b.1").await;
    let failure = plan(&here, "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::ContentTooLarge), "{failure}");
    assert!(failure.message.contains("more than 16777216 bytes"), "{failure}");
}

#[rstest]
#[case::unauthorized("401 Unauthorized", Some(Reason::Unauthorized), "refuses access")]
#[case::forbidden("403 Forbidden", Some(Reason::Unauthorized), "refuses access")]
#[case::too_many("429 Too Many Requests", None, "[SERVICE_UNAVAILABLE] pull 127.0.0.1")]
#[case::internal("500 Internal Server Error", None, "HTTP 500")]
#[case::unavailable("503 Service Unavailable", None, "HTTP 503")]
#[tokio::test]
async fn a_failing_registry_stalls_or_is_tried_again(
    #[case] status: &'static str,
    #[case] reason: Option<Reason>,
    #[case] said: &str,
) {
    let host = fake::answering(status, "").await;
    let failure = plan(&registry(&host, None), "v1.1.2", Digest::of(b""), None).await.unwrap_err();
    assert_eq!(failure.reason, reason, "{failure}");
    assert!(failure.message.contains(said), "{failure}");
}

#[tokio::test]
async fn an_outage_of_the_token_service_is_no_refusal() {
    let gone = fake::nobody();
    let challenge = format!("WWW-Authenticate: Bearer realm=\"http://{gone}/token\",service=\"r\"\r\n");
    let host = fake::answering("401 Unauthorized", &challenge).await;
    let auth = DockerConfig::parse(login(&host, "hidden").as_bytes()).unwrap();
    let plain_http = vec![host.clone(), gone];
    let here = Registry::new(RegistryConfig { auth: Some(auth), plain_http, ..config(&host) }).unwrap();
    let failure = plan(&here, "v1.1.2", Digest::of(b""), None).await.unwrap_err();
    assert_eq!(failure.reason, None, "{failure}");
    assert!(failure.message.starts_with("[SERVICE_UNAVAILABLE]"), "{failure}");
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_tried_again() {
    let failure = plan(&registry(&fake::nobody(), None), "v1.1.2", Digest::of(b""), None).await.unwrap_err();
    assert_eq!(failure.reason, None);
    assert!(failure.message.starts_with("[SERVICE_UNAVAILABLE] pull 127.0.0.1:"), "{failure}");
    assert!(failure.message.contains("refused"), "{failure}");
}
