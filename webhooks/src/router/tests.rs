//! The router driven without a socket: what is no review, and what one comes to.

use std::{sync::Mutex, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request},
};
use rstest::rstest;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::sample::{self, approved, review, rollout};

#[derive(Default)]
struct Counted(Mutex<Vec<(Webhook, Decision)>>);

impl Observe for Counted {
    fn decided(&self, webhook: Webhook, decision: Decision, _: Duration) {
        self.0.lock().unwrap().push((webhook, decision));
    }
}

fn door(counted: &Arc<Counted>) -> Router {
    router(Door {
        policy: Arc::new(sample::policy()),
        known: Arc::new(ArcSwap::from_pointee(Known::default())),
        clock: Arc::new(sample::now),
        observer: Arc::clone(counted) as Arc<dyn Observe>,
    })
}

fn post(path: &str, kind: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder().method(Method::POST).uri(path).header(CONTENT_TYPE, kind).body(body.into()).unwrap()
}

async fn send(request: Request<Body>) -> (StatusCode, Vec<u8>, Vec<(Webhook, Decision)>) {
    let counted = Arc::new(Counted::default());
    let response = door(&counted).oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), BODY_LIMIT).await.unwrap().to_vec();
    let counted = counted.0.lock().unwrap().clone();
    (status, body, counted)
}

fn approve() -> Value {
    review("alice", Some(&rollout()), Some(&approved()))
}

#[tokio::test]
async fn a_review_is_answered_with_its_uid_and_counted() {
    let body = serde_json::to_vec(&approve()).unwrap();
    let (status, answer, counted) = send(post("/validate/rollouts", "application/json; charset=utf-8", body)).await;
    assert_eq!(status, StatusCode::OK);
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"], serde_json::json!({ "uid": approve()["request"]["uid"], "allowed": true }));
    assert_eq!(counted, [(Webhook::Rollouts, Decision::Allowed)]);
}

#[tokio::test]
async fn a_patch_is_base64_json_patch() {
    let mut asked = approve();
    asked["request"]["object"]["spec"]["approval"]["approvedBy"]["username"] = "bob".into();
    let (_, answer, _) = send(post("/mutate/approvals", "application/json", asked.to_string())).await;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let text = answer["response"]["patch"].as_str().unwrap();
    let patch = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch.0.len(), 2);
}

/// B49.
#[tokio::test]
async fn a_dry_run_is_judged_the_same_and_not_counted() {
    let mut asked = approve();
    asked["request"]["dryRun"] = true.into();
    let (_, answer, counted) = send(post("/validate/rollouts", "application/json", asked.to_string())).await;
    assert!(String::from_utf8(answer).unwrap().contains(r#""allowed":true"#));
    assert_eq!(counted, []);
}

fn cut(length: usize) -> Vec<u8> {
    approve().to_string().as_bytes()[..length].to_vec()
}

fn edited(pointer: &str, value: &str) -> Vec<u8> {
    let mut asked = approve();
    *asked.pointer_mut(pointer).unwrap() = serde_json::from_str(value).unwrap();
    asked.to_string().into_bytes()
}

#[rstest]
#[case::empty(Vec::new())]
#[case::cut_short(cut(1))]
#[case::cut_in_the_middle(cut(800))]
#[case::no_json(b"hello".to_vec())]
#[case::no_utf8(vec![b'"', 0xff, b'"'])]
#[case::null(b"null".to_vec())]
#[case::a_list(b"[]".to_vec())]
#[case::no_request(br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_vec())]
#[case::another_version(edited("/apiVersion", r#""admission.k8s.io/v1beta1""#))]
#[case::another_document(edited("/kind", r#""ConversionReview""#))]
#[case::another_kind(edited("/request/kind/kind", r#""ClusterRuntime""#))]
#[case::another_group(edited("/request/kind/group", r#""apps""#))]
#[case::a_newer_version(edited("/request/kind/version", r#""v1""#))]
#[case::an_unknown_operation(edited("/request/operation", r#""PATCH""#))]
#[case::nobody(edited("/request/userInfo", "{}"))]
#[case::metadata_is_a_text(edited("/request/object/metadata", r#""x""#))]
#[case::a_second_request(approve().to_string().replacen("\"request\":", "\"request\":null,\"request\":", 1).into_bytes())]
#[case::deep(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes())]
#[tokio::test]
async fn what_is_no_review_is_a_bad_request(#[case] body: Vec<u8>) {
    let (status, answer, counted) = send(post("/validate/rollouts", "application/json", body)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{}", String::from_utf8_lossy(&answer));
    assert_eq!(counted, [(Webhook::Rollouts, Decision::Refused)]);
}

#[tokio::test]
async fn ten_mebibytes_are_too_large() {
    let (status, _, _) = send(post("/validate/rollouts", "application/json", vec![b' '; 10 * 1024 * 1024])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn just_under_the_limit_is_read() {
    let mut body = approve().to_string().into_bytes();
    body.resize(BODY_LIMIT, b' ');
    assert_eq!(send(post("/validate/rollouts", "application/json", body)).await.0, StatusCode::OK);
}

#[tokio::test]
async fn another_content_type_path_or_method_is_refused() {
    let body = approve().to_string();
    for kind in ["text/plain", "", "application/json-patch+json", "application/jsonx"] {
        assert_eq!(send(post("/validate/rollouts", kind, body.clone())).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    for path in ["/", "/validate", "/validate/rollouts/", "/validate/approvals"] {
        assert_eq!(send(post(path, "application/json", body.clone())).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let get = Request::builder().uri("/validate/rollouts").body(Body::empty()).unwrap();
    assert_eq!(send(get).await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_times_out() {
    let endless = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let (status, _, counted) = send(post("/validate/rollouts", "application/json", Body::from_stream(endless))).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(counted, [(Webhook::Rollouts, Decision::Refused)]);
}

/// A body of which so many bytes come, and then nothing.
fn stuck(bytes: usize) -> Body {
    let first = futures::stream::iter([Ok::<_, std::io::Error>(vec![b' '; bytes])]);
    Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending()))
}

/// Sends as many such bodies as may be large at once, and a review of this size one tick later; its status, and the
/// milliseconds that it took.
async fn beside_stuck_ones(stuck_at: usize, size: usize) -> (StatusCode, u128) {
    let door = door(&Arc::new(Counted::default()));
    let slow =
        (0..AT_ONCE).map(|_| door.clone().oneshot(post("/validate/rollouts", "application/json", stuck(stuck_at))));
    let mut body = approve().to_string().into_bytes();
    body.resize(size, b' ');
    let quick = async {
        // One tick after the slow ones, so that their patience ends first.
        tokio::time::advance(Duration::from_millis(1)).await;
        let begun = tokio::time::Instant::now();
        let answer = door.clone().oneshot(post("/validate/rollouts", "application/json", body)).await.unwrap();
        (answer.status(), begun.elapsed().as_millis())
    };
    futures::future::join(futures::future::join_all(slow), quick).await.1
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_bound_memory_and_let_the_next_large_one_in_when_they_time_out() {
    let waited = beside_stuck_ones(SMALL + 1, SMALL + 1).await;
    assert_eq!(waited, (StatusCode::OK, PATIENCE.as_millis() - 1));
}

#[tokio::test(start_paused = true)]
async fn a_review_of_the_usual_size_waits_for_no_slow_body() {
    for stuck_at in [1, SMALL, SMALL + 1] {
        assert_eq!(beside_stuck_ones(stuck_at, SMALL).await, (StatusCode::OK, 0), "{stuck_at}");
    }
}

/// One byte a second is a body that never ends.
#[tokio::test(start_paused = true)]
async fn a_body_that_drips_is_bounded_by_time() {
    let drip = futures::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, std::io::Error>(vec![b' ']), ()))
    });
    let begun = tokio::time::Instant::now();
    let (status, _, counted) = send(post("/validate/rollouts", "application/json", Body::from_stream(drip))).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(counted, [(Webhook::Rollouts, Decision::Refused)]);
    assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_as_well_and_one_in_pieces_is_read() {
    let pieces = |count: usize, piece: Vec<u8>| {
        Body::from_stream(futures::stream::iter(std::iter::repeat_n(piece, count).map(Ok::<_, std::io::Error>)))
    };
    let endless = pieces(BODY_LIMIT / 1024 + 1, vec![b' '; 1024]);
    assert_eq!(send(post("/validate/rollouts", "application/json", endless)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let text = approve().to_string().into_bytes();
    let bytes = text.into_iter().map(|byte| Ok::<_, std::io::Error>(vec![byte]));
    let slow = Body::from_stream(futures::stream::iter(bytes.collect::<Vec<_>>()));
    assert_eq!(send(post("/validate/rollouts", "application/json", slow)).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_length_that_is_announced_too_large_is_refused_before_anything_is_read() {
    let mut asked = post(
        "/validate/rollouts",
        "application/json",
        Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>()),
    );
    asked.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(BODY_LIMIT + 1));
    assert_eq!(send(asked).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_bad_request() {
    let broken = futures::stream::iter([Ok(approve().to_string().into_bytes()), Err(std::io::Error::other("gone"))]);
    let (status, _, counted) = send(post("/validate/rollouts", "application/json", Body::from_stream(broken))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(counted, [(Webhook::Rollouts, Decision::Refused)]);
}
