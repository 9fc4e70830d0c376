//! ECR played by moto, on this machine alone: minted, rotated by a moved clock, and identity files rotated in place.
//!
//! `cargo test -p aicr-registry-auth --test moto -- --ignored --skip as_a_child --test-threads=1`
//!
//! The SDK reads its environment, which a test must not change in its own process: each test starts itself once more
//! as a child that has it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what cannot be set up fails its test")]

mod child;
mod issuer;
mod server;

use std::time::Duration;

use aicr_decide::resolve::token::{Fetches, TokenSeen};
use jiff::{SignedDuration, Timestamp};

use self::{
    child::{Child, Line},
    issuer::Issuer,
    server::Moto,
};

/// What moto's ECR answers, whatever the clock says.
const MOTO_EXPIRES: &str = "2015-01-01";

fn keys() -> [(&'static str, String); 2] {
    [("AWS_ACCESS_KEY_ID", "testing".to_owned()), ("AWS_SECRET_ACCESS_KEY", "testing".to_owned())]
}

/// Must show 3; B27, B31: minted, and by a moved clock rotated, stale, and back within one retry.
#[test]
#[ignore = "starts moto; `cargo xtask test` runs it by name"]
fn a_token_is_minted_and_its_own_expiry_moves_the_schedule() {
    let moto = Moto::start();
    let lines = Child::new("mint").with(keys()).with([("AWS_ENDPOINT_URL", moto.url())]).run();
    let [Line::Token { user, password, expires }] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(user, "AWS");
    assert!(password.ends_with("-auth-token"), "{password}");
    assert!(
        expires.to_string().starts_with(MOTO_EXPIRES) || expires.to_string().starts_with("2014-12-31"),
        "{expires}"
    );
    // The clock is moved instead of the token: twelve hours before its end it was minted.
    let minted = *expires - SignedDuration::from_hours(12);
    let at = |hours: i64| minted + SignedDuration::from_hours(hours);
    let seen = TokenSeen::Expires(*expires);
    let fetched = Fetches::succeeded(minted);
    assert_eq!(fetched.next(&seen, at(5), 0.5), at(6), "rotated after six hours");
    let failing = (0..60).fold(fetched, |fetches, _| fetches.failed(at(11)));
    assert!(seen.is_fresh(at(10)) && !seen.is_fresh(at(12)), "minting fails for five hours: stale");
    let again = failing.next(&seen, at(11), 0.5);
    assert!(again > at(11) && again <= at(11) + SignedDuration::from_mins(5), "one retry: {again}");
    let back = TokenSeen::Expires(again + SignedDuration::from_hours(12));
    assert!(back.is_fresh(again));
    assert_eq!(Fetches::succeeded(again).next(&back, again, 0.5), again + SignedDuration::from_hours(6));
}

#[test]
#[ignore = "starts moto; `cargo xtask test` runs it by name"]
fn a_service_that_is_down_is_a_failure_in_words_and_its_return_ends_it() {
    let mut moto = Moto::start();
    let url = moto.url();
    moto.stop();
    let down = Child::new("mint").with(keys()).with([("AWS_ENDPOINT_URL", url)]).run();
    let [Line::Failed(why)] = down.as_slice() else { panic!("{down:?}") };
    assert!(!why.is_empty() && !why.contains("testing") && why.len() <= 512, "{why}");
    let moto = Moto::start();
    let up = Child::new("mint").with(keys()).with([("AWS_ENDPOINT_URL", moto.url())]).run();
    assert!(matches!(up.as_slice(), [Line::Token { .. }]), "{up:?}");
}

#[test]
#[ignore = "starts moto; `cargo xtask test` runs it by name"]
fn without_any_identity_it_says_so() {
    let moto = Moto::start();
    let lines = Child::new("mint").with([("AWS_ENDPOINT_URL", moto.url())]).run();
    let [Line::Failed(why)] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(why.to_lowercase().contains("credentials"), "{why}");
}

/// The file that Pod Identity mounts, rotated without a restart: the next token is asked for with what it holds then.
#[test]
#[ignore = "starts moto; `cargo xtask test` runs it by name"]
fn a_rotated_pod_identity_file_is_read_again() {
    let moto = Moto::start();
    let issuer = Issuer::start();
    let file = child::identity_file("pod-identity");
    let lines = Child::new("rotate")
        .with([
            ("AWS_ENDPOINT_URL", moto.url()),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/v1/credentials", issuer.url())),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file.display().to_string()),
            ("AICR_IDENTITY_FILE", file.display().to_string()),
        ])
        .run();
    assert!(matches!(lines.as_slice(), [Line::Token { .. }, Line::Token { .. }]), "{lines:?}");
    assert_eq!(issuer.identities(), ["first", "second"]);
}

/// The same for the file of IRSA, which goes to STS.
#[test]
#[ignore = "starts moto; `cargo xtask test` runs it by name"]
fn a_rotated_web_identity_file_is_read_again() {
    let moto = Moto::start();
    let issuer = Issuer::start();
    let file = child::identity_file("web-identity");
    let lines = Child::new("rotate")
        .with([
            ("AWS_ENDPOINT_URL_ECR", moto.url()),
            ("AWS_ENDPOINT_URL_STS", issuer.url()),
            ("AWS_ENDPOINT_URL", moto.url()),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/operator".to_owned()),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", file.display().to_string()),
            ("AICR_IDENTITY_FILE", file.display().to_string()),
        ])
        .run();
    assert!(matches!(lines.as_slice(), [Line::Token { .. }, Line::Token { .. }]), "{lines:?}");
    assert_eq!(issuer.identities(), ["first", "second"]);
}

/// How long anything may take before it counts as hung.
const BOUND: Duration = Duration::from_mins(2);

/// The present, for credentials that must not have expired.
fn later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(1)
}
