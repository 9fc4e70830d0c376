//! The token's clock, hour by hour.

use aicr_crds::application::Application;
use rstest::rstest;

use super::*;

fn at(hour: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds of a few hours")]
    Timestamp::from_second(1_800_000_000 + (hour * 3600.0) as i64).unwrap()
}

/// A token that was minted at this hour, as ECR mints it.
fn minted(hour: f64) -> TokenSeen {
    TokenSeen::Expires(at(hour + 12.0))
}

/// B27: minted at 0 h, refreshed at 6 h; failing from then on, stale at 11 h, back within one retry at 11 h 30.
#[test]
fn a_token_is_refreshed_every_six_hours_and_its_loss_is_told_an_hour_ahead() {
    let start = Fetches::default();
    assert_eq!(start.next(&TokenSeen::NoExpiry, at(0.0), 0.0), at(0.0), "at the start, at once");
    assert_eq!(start.next(&minted(0.0), at(3.0), 0.0), at(3.0), "whatever an earlier process left");
    let mut fetches = Fetches::succeeded(at(0.0));
    assert_eq!(fetches.next(&minted(0.0), at(0.0), 1.0), at(6.0));
    let mut now = at(6.0);
    let mut waits = Vec::new();
    while now < at(11.5) {
        assert_eq!(minted(0.0).is_fresh(now), now <= at(11.0), "{now}");
        fetches = fetches.failed(now);
        let next = fetches.next(&minted(0.0), now, 0.0);
        waits.push(next.duration_since(now).as_secs());
        now = next;
    }
    assert_eq!(waits[..7], [10, 20, 40, 80, 160, 300, 300]);
    assert!(now <= at(11.5) + SignedDuration::from_mins(5), "within one retry");
    assert_eq!(
        Fetches::succeeded(now).next(&TokenSeen::Expires(now + SignedDuration::from_hours(12)), now, 0.0),
        now + EVERY
    );
}

#[test]
fn chance_spreads_retries_between_ten_seconds_and_five_minutes() {
    for failures in 1..12 {
        for chance in [0.0, 0.5, 1.0] {
            let fetches = Fetches { tried: Some(at(0.0)), failures };
            let wait = fetches.next(&minted(0.0), at(0.0), chance).duration_since(at(0.0));
            assert!(wait >= SignedDuration::from_secs(10) && wait <= SignedDuration::from_mins(5), "{failures} {wait}");
        }
    }
    let late = Fetches { tried: Some(at(0.0)), failures: 9 };
    assert_ne!(late.next(&minted(0.0), at(0.0), 0.0), late.next(&minted(0.0), at(0.0), 1.0));
}

/// B28: staleness is the Secret's own, never what Applications say.
#[rstest]
#[case::no_secret(TokenSeen::NoSecret, false)]
#[case::missing(TokenSeen::read(None), false)]
#[case::unparsable(TokenSeen::read(Some("tomorrow")), false)]
#[case::past(TokenSeen::Expires(at(-1.0)), false)]
#[case::under_an_hour(TokenSeen::Expires(at(0.99)), false)]
#[case::an_hour(TokenSeen::Expires(at(1.0)), true)]
#[case::just_minted(minted(0.0), true)]
#[case::two_clocks(TokenSeen::Expires(at(12.05)), true)]
#[case::not_believed(TokenSeen::Expires(at(13.0)), false)]
#[case::read_as_written(TokenSeen::read(Some(&at(6.0).to_string())), true)]
fn a_token_is_fresh_by_its_own_expiry(#[case] seen: TokenSeen, #[case] fresh: bool) {
    assert_eq!(seen.is_fresh(at(0.0)), fresh);
}

#[test]
fn a_secret_that_lost_its_token_is_filled_again_at_once_and_not_in_six_hours() {
    let fetches = Fetches::succeeded(at(0.0));
    for lost in [TokenSeen::NoExpiry, TokenSeen::Unreadable, TokenSeen::NoSecret, TokenSeen::Expires(at(20.0))] {
        assert_eq!(fetches.next(&lost, at(2.0), 0.0), at(0.0) + SignedDuration::from_secs(10), "{lost:?}");
    }
    // One that is minted with less than an hour left does not count as fetched every moment.
    let short = TokenSeen::Expires(at(0.5));
    assert_eq!(fetches.next(&short, at(0.0), 0.0), at(0.0) + SignedDuration::from_secs(10));
}

/// B31: the expiry is the provider's, not counted from when the process began.
#[test]
fn two_tokens_have_two_expiries_however_long_the_process_is_up() {
    let month = 30.0 * 24.0;
    let (one, other) = (minted(month), minted(month + 6.0));
    assert_eq!(one.turns_stale(at(month)), Some(at(month + 11.0)));
    assert_eq!(other.turns_stale(at(month + 6.0)), Some(at(month + 17.0)));
    assert!(one.is_fresh(at(month + 6.0)) && !one.is_fresh(at(month + 11.1)) && other.is_fresh(at(month + 11.1)));
}

#[test]
fn only_applications_that_the_registry_refuses_are_asked_to_look_again() {
    let application = |name: &str, kind: &str, message: &str| -> Application {
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1" },
            "status": { "conditions": [{ "type": kind, "message": message }] },
        }))
        .unwrap()
    };
    let all = [
        application(
            "b",
            "ComparisonError",
            "failed to get oci://r/x: 403: denied: Your authorization token has expired",
        ),
        application("c", "ComparisonError", "template: no function"),
        application("a", "ComparisonError", "response status code 401: Unauthorized"),
        application("d", "SyncError", "401"),
    ];
    let names: Vec<String> = with_registry_errors(&all).into_iter().map(|on| on.name).collect();
    assert_eq!(names, ["a", "b"]);
}
