//! Charts of HTTPS Helm repositories, on their way into a real registry.

use aicr_crds::{Digest, plan::StoredPlan, reason::Reason};
use aicr_mirror::{DockerConfig, MirrorFailure, Registry, RegistryConfig, SourcesConfig, Times};
use rstest::rstest;

use super::{
    config,
    fixture::{
        bundle::Sample,
        scripted::{Answer, Scripted},
        server::{Mode, Server, USER},
        shop::{Shop, chart},
    },
    hasty, plan,
};

/// A client that trusts the shop's authority.
fn trusting(host: &str, shop: &Shop) -> RegistryConfig {
    let known = config(host);
    RegistryConfig { sources: SourcesConfig { ca_bundle: shop.server.authority.clone(), ..known.sources }, ..known }
}

/// Resolves a bundle whose chart is `cert-manager v1.20.2` of the shop.
async fn resolve(server: &Server, shop: &Shop, config: RegistryConfig) -> Result<StoredPlan, MirrorFailure> {
    let sample = Sample::of(&server.host, "1.1.2").from("cert-manager", &shop.repo(), "v1.20.2");
    plan(&Registry::new(config).unwrap(), "v1.1.2", sample.push().await, None).await
}

async fn refused(shop: &Shop) -> MirrorFailure {
    refused_in(shop, Times::default()).await
}

async fn refused_in(shop: &Shop, times: Times) -> MirrorFailure {
    let server = Server::start(Mode::Open);
    let config = RegistryConfig { times, ..trusting(&server.host, shop) };
    let failure = resolve(&server, shop, config).await.unwrap_err();
    assert_eq!(server.digest("aicr/charts/cert-manager", "v1.20.2").await, None, "something was mirrored");
    failure
}

/// B35: the archive's bytes, never packed again; the same in another registry on another day.
#[tokio::test]
async fn b35_an_archive_goes_byte_for_byte_and_is_neither_fetched_nor_pushed_twice() {
    let (server, shop) = (Server::start(Mode::Open), Shop::open());
    let archive = shop.stock(&chart("cert-manager", "v1.20.2", "good"));
    let stored = resolve(&server, &shop, trusting(&server.host, &shop)).await.unwrap();
    let release = stored.plan.release("gpu-operator").unwrap();
    assert_eq!(release.content.chart.repository, "charts/cert-manager");
    assert_eq!(release.archive.version, "v1.20.2");
    assert_eq!(release.archive.crds, ["certificates.cert-manager.io"]);
    assert_eq!(server.digest("aicr/charts/cert-manager", "v1.20.2").await, Some(release.content.chart.content));
    assert_eq!(server.blob("aicr/charts/cert-manager", archive).await, chart("cert-manager", "v1.20.2", "good"));
    assert_eq!(shop.server.log(), ["GET /stable/index.yaml", "GET /stable/charts/cert-manager.tgz"]);

    // Read-only, the registry refuses every push; and the shop has no archive any more.
    shop.put("/stable/charts/cert-manager.tgz", Answer::status("404 Not Found"));
    let server = server.restart(Mode::ReadOnly);
    let writes = server.writes();
    let here = Registry::new(trusting(&server.host, &shop)).unwrap();
    let bundle = Sample::of(&server.host, "1.1.2").from("cert-manager", &shop.repo(), "v1.20.2");
    let again = plan(&here, "v1.1.2", bundle.digest(), None).await.unwrap();
    assert_eq!((again.plan.digest(), server.writes()), (stored.plan.digest(), writes));

    let elsewhere = Server::start(Mode::Open);
    shop.stock(&chart("cert-manager", "v1.20.2", "good"));
    let other = resolve(&elsewhere, &shop, trusting(&elsewhere.host, &shop)).await.unwrap();
    assert_eq!(other.plan.digest(), stored.plan.digest());
}

#[tokio::test]
async fn redirects_and_absolute_addresses_are_followed_and_a_version_is_found_without_its_v() {
    let (server, shop, other) = (Server::start(Mode::Open), Shop::open(), Shop::open());
    let bytes = chart("cert-manager", "1.20.2", "elsewhere");
    let url = format!("https://{}/files/a.tgz?signature=x", shop.server.host);
    shop.index(&[("1.20.2", Digest::of(&bytes), &url)]);
    shop.put("/files/a.tgz?signature=x", Answer::redirect(&format!("https://{}/b.tgz", other.server.host)));
    other.put("/b.tgz", Answer::ok(bytes));
    let mut config = trusting(&server.host, &shop);
    config.sources.ca_bundle.extend(other.server.authority.clone());
    config.auth = Some(login(&shop.server.host));
    let stored = resolve(&server, &shop, config).await.unwrap();
    assert_eq!(stored.plan.release("gpu-operator").unwrap().archive.version, "1.20.2");
    // What opens one host is not told to another.
    let told = |server: &Scripted| {
        server.asked().iter().map(|asked| asked.head.contains("authorization: basic")).collect::<Vec<_>>()
    };
    assert_eq!((told(&shop.server), told(&other.server)), (vec![true, true], vec![false]));
}

fn login(host: &str) -> DockerConfig {
    let text = format!(r#"{{"auths":{{"{host}":{{"username":"{USER}","password":"hidden"}}}}}}"#);
    DockerConfig::parse(text.as_bytes()).unwrap()
}

/// B32: a version that is something else the next day.
#[tokio::test]
async fn b32_a_version_that_changed_is_a_conflict_that_names_both_digests_and_the_first_stays() {
    let (server, shop) = (Server::start(Mode::Open), Shop::open());
    let first = shop.stock(&chart("cert-manager", "v1.20.2", "first"));
    resolve(&server, &shop, trusting(&server.host, &shop)).await.unwrap();
    let held = server.digest("aicr/charts/cert-manager", "v1.20.2").await;
    let second = shop.stock(&chart("cert-manager", "v1.20.2", "second"));
    let failure = resolve(&server, &shop, trusting(&server.host, &shop)).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::Conflict));
    for digest in [first, second] {
        assert!(failure.message.contains(&digest.to_string()), "{failure}");
    }
    assert_eq!(server.digest("aicr/charts/cert-manager", "v1.20.2").await, held);
    assert_eq!(server.blob("aicr/charts/cert-manager", first).await, chart("cert-manager", "v1.20.2", "first"));
}

#[tokio::test]
async fn an_archive_that_is_not_what_the_index_says_is_not_mirrored() {
    let shop = Shop::open();
    shop.stock(&chart("cert-manager", "v1.20.2", "good"));
    shop.put("/stable/charts/cert-manager.tgz", Answer::ok(chart("cert-manager", "v1.20.2", "swapped")));
    let failure = refused(&shop).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    assert!(failure.message.contains("its content does not match its digest"), "{failure}");

    for (name, version) in [("trust-manager", "v1.20.2"), ("cert-manager", "v1.20.3")] {
        shop.stock(&chart(name, version, "another"));
        let failure = refused(&shop).await;
        assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
        assert!(failure.message.contains(&format!("leads to {name} {version} instead")), "{failure}");
    }
    shop.stock(b"no archive");
    let failure = refused(&shop).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    assert!(failure.message.contains("no whole gzipped tar archive"), "{failure}");
}

#[rstest]
#[case::refused("401 Unauthorized", Some(Reason::Unauthorized), "the registry refuses access")]
#[case::forbidden("403 Forbidden", Some(Reason::Unauthorized), "the registry refuses access")]
#[case::gone("404 Not Found", Some(Reason::ChartSourceUnsupported), "/stable/index.yaml: not in the registry")]
#[case::too_many("429 Too Many Requests", None, "[SERVICE_UNAVAILABLE] pull https://127.0.0.1")]
#[case::outage("503 Service Unavailable", None, "HTTP 503")]
#[tokio::test]
async fn a_repository_that_does_not_answer_says_so(
    #[case] status: &'static str,
    #[case] reason: Option<Reason>,
    #[case] said: &str,
) {
    let shop = Shop::open();
    shop.put("/stable/index.yaml", Answer::status(status));
    let failure = refused(&shop).await;
    assert_eq!(failure.reason, reason, "{failure}");
    assert!(failure.message.contains(said), "{failure}");
}

#[rstest]
#[case::a_page("<html>Sign in</html>", "the repository index is damaged")]
#[case::empty("", "is empty")]
#[case::no_such_chart("apiVersion: v1\nentries: {}\n", "the repository has no such version")]
#[case::other_version("apiVersion: v1\nentries:\n  cert-manager: [{version: v1.20.20}]\n", "has no such version")]
#[case::no_digest("apiVersion: v1\nentries:\n  cert-manager: [{version: v1.20.2, urls: [a]}]\n", "no digest")]
#[case::chart_twice("apiVersion: v1\nentries:\n  cert-manager: []\n  cert-manager: []\n", "duplicate")]
#[case::newer("apiVersion: v2\nentries: {}\n", "apiVersion v1")]
#[tokio::test]
async fn an_index_that_leads_nowhere_says_why(#[case] text: &'static str, #[case] said: &str) {
    let shop = Shop::open();
    shop.put("/stable/index.yaml", Answer::ok(text));
    let failure = refused(&shop).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported), "{failure}");
    assert!(failure.message.contains(said), "{failure}");
    assert_eq!(shop.server.log(), ["GET /stable/index.yaml"]);
}

#[tokio::test]
async fn an_index_or_archive_beyond_its_limit_is_too_large_whether_it_says_so_or_not() {
    let shop = Shop::open();
    for answer in [Answer::Endless("Content-Length: 104857600\r\n".into()), Answer::Endless(String::new())] {
        shop.put("/stable/index.yaml", answer.clone());
        let failure = refused(&shop).await;
        assert_eq!(failure.reason, Some(Reason::ContentTooLarge), "{failure}");
        assert!(failure.message.contains("more than 33554432 bytes"), "{failure}");
        shop.stock(b"x");
        shop.put("/stable/charts/cert-manager.tgz", answer);
        let failure = refused(&shop).await;
        assert_eq!(failure.reason, Some(Reason::ContentTooLarge), "{failure}");
        assert!(failure.message.contains("more than 16777216 bytes"), "{failure}");
    }
}

#[tokio::test]
async fn a_repository_of_a_private_authority_needs_its_bundle() {
    let (server, shop) = (Server::start(Mode::Open), Shop::open());
    shop.stock(&chart("cert-manager", "v1.20.2", "good"));
    let failure = resolve(&server, &shop, config(&server.host)).await.unwrap_err();
    assert_eq!(failure.reason, None);
    for said in ["[SERVICE_UNAVAILABLE] ", "certificate", "chartSources.caBundle"] {
        assert!(failure.message.contains(said), "{failure}");
    }
    assert!(shop.server.log().is_empty());
    resolve(&server, &shop, trusting(&server.host, &shop)).await.unwrap();
}

#[tokio::test]
async fn a_source_on_this_machine_is_not_asked_unless_the_installation_lists_it() {
    let (server, shop) = (Server::start(Mode::Open), Shop::open());
    shop.stock(&chart("cert-manager", "v1.20.2", "good"));
    let known = trusting(&server.host, &shop);
    let strict = SourcesConfig { allowed_addresses: vec![], ..known.sources.clone() };
    let strict = RegistryConfig { sources: strict, ..known };
    let failure = resolve(&server, &shop, strict.clone()).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    assert!(failure.message.contains("is 127.0.0.1, a loopback, link-local or metadata address"), "{failure}");

    // A name says nothing until it is resolved.
    let (_, port) = shop.server.host.split_once(':').unwrap();
    let repo = format!("https://localhost:{port}/stable");
    let sample = Sample::of(&server.host, "1.1.2").from("cert-manager", &repo, "v1.20.2").push().await;
    let failure = plan(&Registry::new(strict).unwrap(), "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported));
    assert!(failure.message.contains("localhost is "), "{failure}");
    assert!(shop.server.log().is_empty());
}

#[rstest]
#[case::metadata("https://169.254.169.254/latest/meta-data/hidden", "169.254.169.254 is 169.254.169.254, a loopback")]
#[case::metadata_v6("https://[fd00:ec2::254]/hidden", "fd00:ec2::254, a loopback")]
#[case::written_otherwise("https://0xA9FEA9FE/hidden", "169.254.169.254, a loopback")]
#[case::plain("http://127.0.0.1:1/hidden", "would be spoken to over http; only https is")]
#[case::user_part("https://u:hidden@127.0.0.1:1/", "holds a user part")]
#[case::round_and_round("/stable/index.yaml", "more than 5 redirects")]
#[tokio::test]
async fn a_redirect_leads_to_no_address_that_may_not_be_asked(#[case] to: &str, #[case] said: &str) {
    let shop = Shop::open();
    shop.put("/stable/index.yaml", Answer::redirect(to));
    let failure = refused(&shop).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported), "{failure}");
    assert!(failure.message.contains(said) && !failure.message.contains("hidden"), "{failure}");
}

#[tokio::test]
async fn a_repository_that_hangs_or_drips_is_given_up_and_tried_again() {
    let hanging = [
        Answer::Silence,
        Answer::HeadOnly("Content-Length: 1000\r\n".into()),
        Answer::Drip("Content-Length: 1000000\r\n".into()),
        Answer::Drip(String::new()),
        Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\napiVersion: v1\nentries: {}\n".to_vec()),
        Answer::Raw(b"no HTTP at all\r\n\r\n".to_vec()),
        Answer::Raw(Vec::new()),
    ];
    for answer in hanging {
        let shop = Shop::open();
        shop.put("/stable/index.yaml", answer);
        let failure = refused_in(&shop, hasty()).await;
        assert_eq!(failure.reason, None, "{failure}");
        assert!(failure.message.starts_with("[SERVICE_UNAVAILABLE] pull https://127.0.0.1"), "{failure}");
    }
}
