//! Registries that lie about digest or length, hang, drip, or never end: typed failure, no plan, bounded memory.

use aicr_crds::{Digest, reason::Reason};
use aicr_mirror::{MirrorFailure, Registry, RegistryConfig, SourcesConfig, Times};
use rstest::rstest;
use serde_json::json;

use super::{
    config,
    fixture::{
        bundle::Sample,
        fake,
        scripted::{Answer, Asked, Scripted},
        server::{Mode, Server},
        shop::chart,
    },
    hasty, plan,
};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A chart as an OCI registry holds it.
struct Chart {
    manifest: Vec<u8>,
    archive: Vec<u8>,
}

impl Chart {
    /// Whose manifest says that its archive is so many bytes longer than it is.
    fn longer_by(bytes: i64) -> Self {
        let archive = chart("gpu-operator", "v26.7.1+b.1", "good");
        let length = i64::try_from(archive.len()).unwrap() + bytes;
        let describe =
            |kind: &str, digest: Digest, size: i64| json!({"mediaType": kind, "digest": digest, "size": size});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": describe("application/vnd.cncf.helm.config.v1+json", Digest::of(b"{}"), 2),
            "layers": [describe("application/vnd.cncf.helm.chart.content.v1.tar+gzip", Digest::of(&archive), length)],
        });
        Self { manifest: manifest.to_string().into_bytes(), archive }
    }

    fn good() -> Self {
        Self::longer_by(0)
    }

    fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }

    /// What an honest registry answers.
    fn honest(&self, asked: &Asked) -> Answer {
        let found = |digest: Digest| format!("Docker-Content-Digest: {digest}\r\n");
        match asked.path.rsplit('/').next().unwrap_or_default() {
            "v26.7.1_b.1" => Answer::Whole("200 OK", found(self.digest()), self.manifest.clone()),
            last if last == self.digest().to_string() => Answer::ok(self.manifest.clone()),
            last if last == Digest::of(&self.archive).to_string() => Answer::ok(self.archive.clone()),
            last if last == Digest::of(b"{}").to_string() => Answer::ok(b"{}"),
            _ => Answer::status("404 Not Found"),
        }
    }
}

fn is_blob(asked: &Asked) -> bool {
    asked.path.contains("/blobs/")
}

/// Resolves a bundle whose chart comes from that registry, which is a stranger to ours.
async fn resolve(server: &Server, source: &Scripted, times: Times) -> Result<(), MirrorFailure> {
    let chart = format!("oci://{}/upstream/gpu-operator", source.host);
    let sample = Sample::of(&server.host, "1.1.2").from(&chart, "", "v26.7.1+b.1").push().await;
    let known = config(&server.host);
    let plain_http = vec![server.host.clone(), source.host.clone()];
    let sources = SourcesConfig { ca_bundle: source.authority.clone(), ..known.sources.clone() };
    let registry = Registry::new(RegistryConfig { plain_http, sources, times, ..known }).unwrap();
    plan(&registry, "v1.1.2", sample, None).await.map(drop)
}

async fn refused(source: &Scripted) -> MirrorFailure {
    refused_in(source, Times::default()).await
}

async fn refused_in(source: &Scripted, times: Times) -> MirrorFailure {
    let server = Server::start(Mode::Open);
    let failure = resolve(&server, source, times).await.unwrap_err();
    assert_eq!(server.digest("aicr/charts/gpu-operator", "v26.7.1_b.1").await, None, "something was mirrored");
    failure
}

#[tokio::test]
async fn an_honest_stranger_is_mirrored_with_one_pull_of_each_part() {
    let server = Server::start(Mode::Open);
    let chart = Chart::good();
    let digest = chart.digest();
    let source = Scripted::plain(move |asked| chart.honest(asked));
    resolve(&server, &source, Times::default()).await.unwrap();
    assert_eq!(server.digest("aicr/charts/gpu-operator", "v26.7.1_b.1").await, Some(digest));
    assert_eq!(source.log().len(), 4, "{:?}", source.log());
}

#[tokio::test]
async fn a_registry_that_says_no_digest_for_a_tag_is_believed_by_content_only() {
    let server = Server::start(Mode::Open);
    let chart = Chart::good();
    let digest = chart.digest();
    let source = Scripted::plain(move |asked| match chart.honest(asked) {
        Answer::Whole(status, _, content) => Answer::Whole(status, String::new(), content),
        other @ (Answer::Raw(_) | Answer::Silence | Answer::HeadOnly(_) | Answer::Drip(_) | Answer::Endless(_)) => {
            other
        }
    });
    resolve(&server, &source, Times::default()).await.unwrap();
    assert_eq!(server.digest("aicr/charts/gpu-operator", "v26.7.1_b.1").await, Some(digest));
}

#[rstest]
#[case::shorter_than_stated(1, "its manifest says")]
#[case::longer_than_stated(-1, "longer than the")]
#[tokio::test]
async fn a_manifest_that_lies_about_a_length_is_refused(#[case] by: i64, #[case] said: &str) {
    let chart = Chart::longer_by(by);
    let failure = refused(&Scripted::plain(move |asked| chart.honest(asked))).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported), "{failure}");
    assert!(failure.message.contains(said), "{failure}");
}

#[tokio::test]
async fn a_size_beyond_the_limit_is_believed_and_nothing_is_pulled() {
    let chart = Chart::longer_by(100 << 20);
    let source = Scripted::plain(move |asked| chart.honest(asked));
    let failure = refused(&source).await;
    assert_eq!(failure.reason, Some(Reason::ContentTooLarge), "{failure}");
    assert!(!source.asked().iter().any(is_blob), "{:?}", source.log());
}

/// What a lying registry does to one kind of request.
#[derive(Clone, Copy)]
enum Lie {
    Manifest(fn() -> Answer),
    Tag(fn() -> Answer),
    Blob(fn() -> Answer),
}

#[rstest]
#[case::manifest_of_another_digest(Lie::Manifest(|| Answer::ok(b"{}")), "does not match its digest")]
#[case::blob_of_another_digest(
    Lie::Blob(|| Answer::ok(vec![b'x'; Chart::good().archive.len()])),
    "does not match its digest"
)]
#[case::blob_of_another_length(Lie::Blob(|| Answer::ok(b"x")), "it has 1 bytes, its manifest says")]
#[case::empty_blob(Lie::Blob(|| Answer::ok(b"")), "it has 0 bytes, its manifest says")]
#[case::endless_blob(Lie::Blob(|| Answer::Endless(String::new())), "longer than the")]
#[case::blob_said_to_be_large(Lie::Blob(|| Answer::Endless("Content-Length: 104857600\r\n".into())), "longer than the")]
#[case::digest_that_is_none(
    Lie::Tag(|| Answer::Whole("200 OK", "Docker-Content-Digest: sha512:00\r\n".into(), vec![])),
    "no sha256"
)]
#[tokio::test]
async fn a_registry_that_lies_is_found_out(#[case] lie: Lie, #[case] said: &str) {
    let failure = refused(&lying(lie)).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported), "{failure}");
    assert!(failure.message.contains(said), "{failure}");
}

fn lying(lie: Lie) -> Scripted {
    let chart = Chart::good();
    Scripted::plain(move |asked| {
        let by_digest = asked.path.contains("/manifests/sha256:");
        match lie {
            Lie::Manifest(answer) if by_digest => answer(),
            Lie::Tag(answer) if !by_digest && !is_blob(asked) => answer(),
            Lie::Blob(answer) if is_blob(asked) => answer(),
            Lie::Manifest(_) | Lie::Tag(_) | Lie::Blob(_) => chart.honest(asked),
        }
    })
}

#[rstest]
#[case::tag_never_answered(Lie::Tag(|| Answer::Silence))]
#[case::manifest_never_ends(Lie::Manifest(|| Answer::HeadOnly("Content-Length: 500\r\n".into())))]
#[case::blob_never_begins(Lie::Blob(|| Answer::HeadOnly(String::new())))]
#[case::blob_drips(Lie::Blob(|| Answer::Drip(String::new())))]
#[case::blob_cut(Lie::Blob(|| Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\nabc".to_vec())))]
#[case::headers_without_end(Lie::Tag(|| Answer::Raw(format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(100_000)).into_bytes())))]
#[tokio::test]
async fn a_registry_that_hangs_or_breaks_off_is_tried_again(#[case] lie: Lie) {
    let failure = refused_in(&lying(lie), hasty()).await;
    assert_eq!(failure.reason, None, "{failure}");
    assert!(failure.message.starts_with("[SERVICE_UNAVAILABLE] "), "{failure}");
}

#[tokio::test]
async fn a_manifest_without_end_is_too_large() {
    let failure = refused(&lying(Lie::Manifest(|| Answer::Endless(String::new())))).await;
    assert_eq!(failure.reason, Some(Reason::ContentTooLarge), "{failure}");
}

#[tokio::test]
async fn a_token_service_on_a_metadata_address_is_not_asked() {
    let challenge = "WWW-Authenticate: Bearer realm=\"https://169.254.169.254/hidden\",service=\"r\"\r\n";
    let source = Scripted::plain(move |_| Answer::Whole("401 Unauthorized", challenge.into(), vec![]));
    let failure = refused(&source).await;
    assert_eq!(failure.reason, Some(Reason::ChartSourceUnsupported), "{failure}");
    assert!(failure.message.contains("169.254.169.254") && !failure.message.contains("hidden"), "{failure}");
}

#[tokio::test]
async fn a_token_opens_a_registry_and_is_asked_for_once() {
    let server = Server::start(Mode::Open);
    let chart = Chart::good();
    let source = Scripted::tls(move |asked| {
        if asked.path.starts_with("/token?") {
            return Answer::ok(br#"{"token":"opensesame"}"#);
        }
        if asked.head.contains("authorization: bearer opensesame") {
            return chart.honest(asked);
        }
        let (_, host) = asked.head.split_once("host: ").unwrap();
        let realm = format!("https://{}/token", host.lines().next().unwrap());
        Answer::Whole(
            "401 Unauthorized",
            format!("WWW-Authenticate: Bearer realm=\"{realm}\",service=\"r\"\r\n"),
            vec![],
        )
    });
    let chart = format!("oci://{}/upstream/gpu-operator", source.host);
    let sample = Sample::of(&server.host, "1.1.2").from(&chart, "", "v26.7.1+b.1").push().await;
    let known = config(&server.host);
    let sources = SourcesConfig { ca_bundle: source.authority.clone(), ..known.sources.clone() };
    let registry = Registry::new(RegistryConfig { sources, ..known }).unwrap();
    plan(&registry, "v1.1.2", sample, None).await.unwrap();
    let tokens: Vec<_> = source.log().into_iter().filter(|line| line.contains("/token")).collect();
    assert_eq!(tokens, ["GET /token?service=r&scope=repository%3Aupstream%2Fgpu-operator%3Apull"]);
}

/// Our own registry is where bundles come from: it is not believed either.
#[rstest]
#[case::manifest_of_another_digest(Lie::Manifest(|| Answer::ok(b"{}")), Some(Reason::AICRInternal))]
#[case::manifest_without_end(Lie::Manifest(|| Answer::Endless(String::new())), Some(Reason::ContentTooLarge))]
#[case::nothing_ever(Lie::Manifest(|| Answer::Silence), None)]
#[tokio::test]
async fn a_bundle_that_is_a_lie_makes_no_plan(#[case] lie: Lie, #[case] reason: Option<Reason>) {
    let home = lying(lie);
    // What is too large needs its time on a busy machine, what never comes does not.
    let times = if reason.is_none() { hasty() } else { Times::default() };
    let registry = Registry::new(RegistryConfig { times, ..config(&home.host) }).unwrap();
    let failure = plan(&registry, "v1.1.2", Digest::of(b"bundle"), None).await.unwrap_err();
    assert_eq!(failure.reason, reason, "{failure}");
}

/// Answers of 100 MiB and more cost what is read of them.
#[test]
fn memory_is_bounded_whatever_a_registry_sends() {
    let endless: [fn() -> Answer; 2] =
        [|| Answer::Endless(String::new()), || Answer::Endless("Content-Length: 104857600\r\n".into())];
    for answer in endless {
        let home = lying(Lie::Manifest(answer));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let registry = Registry::new(config(&home.host)).unwrap();
        let used = allocation_counter::measure(|| {
            let failure = runtime.block_on(plan(&registry, "v1.1.2", Digest::of(b"bundle"), None)).unwrap_err();
            assert_eq!(failure.reason, Some(Reason::ContentTooLarge), "{failure}");
        });
        // 4 MiB of a manifest, doubled while it grows.
        assert!(used.bytes_max < 16 << 20, "{} bytes at once", used.bytes_max);
    }
}

/// The registry is stopped while charts are mirrored, and started again: it goes on, and nothing is pushed twice.
#[tokio::test]
async fn an_interrupted_run_goes_on_and_pushes_nothing_twice() {
    let server = Server::start(Mode::Open);
    let chart = Chart::good();
    let digest = chart.digest();
    let source = Scripted::plain(move |asked| chart.honest(asked));
    let broken = lying(Lie::Blob(|| Answer::status("503 Service Unavailable")));
    let failure = resolve(&server, &broken, Times::default()).await.unwrap_err();
    assert_eq!(failure.reason, None, "{failure}");
    let chart = format!("oci://{}/upstream/gpu-operator", source.host);
    let sample = Sample::of(&server.host, "1.1.2").from(&chart, "", "v26.7.1+b.1").push().await;
    let before = server.writes().len();
    let known = config(&server.host);
    let config = RegistryConfig { plain_http: vec![server.host.clone(), source.host.clone()], ..known };
    let run = || Registry::new(config.clone()).unwrap();

    let server = server.stop();
    let failure = plan(&run(), "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, None, "{failure}");
    assert!(failure.message.starts_with("[SERVICE_UNAVAILABLE] pull 127.0.0.1:"), "{failure}");
    let server = server.restart(Mode::Open);

    let stored = plan(&run(), "v1.1.2", sample, None).await.unwrap();
    assert_eq!(server.digest("aicr/charts/gpu-operator", "v26.7.1_b.1").await, Some(digest));
    let after = server.writes();
    assert!(after.len() > before, "{after:?}");
    let again = plan(&run(), "v1.1.2", sample, None).await.unwrap();
    assert_eq!((again.plan.digest(), server.writes()), (stored.plan.digest(), after.clone()));
    let manifests: Vec<&String> = after.iter().filter(|line| line.contains("/manifests/")).collect();
    let distinct: std::collections::BTreeSet<&&String> = manifests.iter().collect();
    let bundles = |line: &&&String| line.contains("/bundles/");
    let pushed = manifests.iter().filter(|line| !bundles(line)).count();
    assert_eq!(pushed, distinct.iter().filter(|line| !line.contains("/bundles/")).count(), "{manifests:?}");
}

/// B34: what ECR answers to a push where no repository is.
#[tokio::test]
async fn b34_a_push_to_a_repository_that_is_not_created_stalls_and_names_it() {
    let chart = Chart::good();
    let source = Scripted::plain(move |asked| chart.honest(asked));
    let sample =
        Sample::of("", "1.1.2").from(&format!("oci://{}/upstream/gpu-operator", source.host), "", "v26.7.1+b.1");
    let (manifest, layer, bundle) = (sample.manifest(), sample.layer(), sample.digest());
    let name_unknown = br#"{"errors":[{"code":"NAME_UNKNOWN","message":"hidden"}]}"#;
    let home = Scripted::plain(move |asked| match asked.path.rsplit('/').next().unwrap_or_default() {
        last if last == bundle.to_string() => Answer::ok(manifest.clone()),
        last if last == Digest::of(&layer).to_string() => Answer::ok(layer.clone()),
        _ => Answer::Whole("404 Not Found", "Content-Type: application/json\r\n".into(), name_unknown.to_vec()),
    });
    let plain_http = vec![home.host.clone(), source.host.clone()];
    let registry = Registry::new(RegistryConfig { plain_http, ..config(&home.host) }).unwrap();
    let failure = plan(&registry, "v1.1.2", bundle, None).await.unwrap_err();
    assert_eq!(failure.reason, Some(Reason::NotFound), "{failure}");
    let repository = format!("no repository {}/aicr/charts/gpu-operator and does not create it", home.host);
    assert!(failure.message.contains(&repository) && !failure.message.contains("hidden"), "{failure}");
}

#[tokio::test]
async fn a_source_where_nobody_listens_is_tried_again() {
    let server = Server::start(Mode::Open);
    let gone = fake::nobody();
    let chart = format!("oci://{gone}/upstream/gpu-operator");
    let sample = Sample::of(&server.host, "1.1.2").from(&chart, "", "v26.7.1+b.1").push().await;
    let plain_http = vec![server.host.clone(), gone.clone()];
    let registry = Registry::new(RegistryConfig { plain_http, ..config(&server.host) }).unwrap();
    let failure = plan(&registry, "v1.1.2", sample, None).await.unwrap_err();
    assert_eq!(failure.reason, None);
    assert!(failure.message.starts_with(&format!("[SERVICE_UNAVAILABLE] look for {gone}/upstream")), "{failure}");
}
