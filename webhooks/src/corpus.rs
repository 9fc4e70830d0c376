//! The corpus: whole reviews, each with its expected verdict; and what becomes of them when bytes turn.
//!
//! Made by hand in the shape of `facts/kubernetes.md` K16; recordings of a real API server go beside them.

use proptest::{prelude::*, test_runner::RngSeed};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{Known, KnownRollout, RolloutState, Verdict, Webhook, judge, sample};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Name of the webhook.
    webhook: String,
    /// `allow`, `patch`, or rule and code.
    verdict: String,
    /// The rollout that `known` holds, approved for an hour, if any.
    #[serde(default)]
    known: Option<Removal>,
    /// The body.
    review: Box<RawValue>,
}

#[derive(Deserialize)]
struct Removal {
    name: String,
    removes: Vec<String>,
}

impl Case {
    fn webhook(&self) -> Webhook {
        Webhook::ALL.into_iter().find(|webhook| webhook.name() == self.webhook).unwrap()
    }

    fn known(&self) -> Known {
        let rollouts = self.known.iter().map(|known| KnownRollout {
            name: known.name.clone(),
            runtime_uid: sample::UID.to_owned(),
            state: RolloutState::Approved(sample::now() + jiff::SignedDuration::from_hours(1)),
            removes: known.removes.clone(),
            frees: vec![],
        });
        Known::from_rollouts(rollouts.collect())
    }
}

fn corpus() -> Vec<(String, Case)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = files
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let case = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_name().unwrap().to_string_lossy().into_owned(), case)
        })
        .collect();
    cases.sort_by(|one: &(String, Case), other| one.0.cmp(&other.0));
    cases
}

/// B49: a dry run is judged the same, and says so to who counts.
#[test]
fn each_review_of_the_corpus_gets_its_verdict_as_a_dry_run_too() {
    for (name, case) in corpus() {
        let mut body: Value = serde_json::from_str(case.review.get()).unwrap();
        body["request"]["dryRun"] = true.into();
        let body = serde_json::to_vec(&body).unwrap();
        let judged = judge(case.webhook(), &body, &sample::policy(), &case.known(), sample::now()).unwrap();
        assert!(judged.dry_run, "{name}");
        assert_eq!(sample::word(&judged.verdict), case.verdict, "{name}");
    }
}

#[test]
fn each_review_of_the_corpus_gets_its_verdict() {
    let cases = corpus();
    assert!(cases.len() >= 15, "the corpus is not where it should be");
    for (name, case) in cases {
        let judged =
            judge(case.webhook(), case.review.get().as_bytes(), &sample::policy(), &case.known(), sample::now());
        assert_eq!(sample::word(&judged.unwrap().verdict), case.verdict, "{name}");
    }
}

/// The target of `performance.md` section 5: two specs, the parser's own stack, the answer.
#[test]
fn the_allow_path_of_a_rollout_makes_four_allocations_at_most() {
    for (name, case) in corpus() {
        let (policy, known, body) = (sample::policy(), case.known(), case.review.get().as_bytes());
        // What people give once a rollout is read in full.
        if case.verdict != "allow"
            || ["approval", "revocation", "acknowledgement"].iter().any(|word| name.starts_with(word))
        {
            continue;
        }
        let counted = allocation_counter::measure(|| {
            let judged = judge(case.webhook(), body, &policy, &known, sample::now());
            assert!(matches!(judged, Ok(judged) if judged.verdict == Verdict::ALLOW));
        });
        assert!(counted.count_total <= case.allocations(), "{name}: {}", counted.count_total);
    }
}

/// Two megabytes of inventory and of managed fields are looked at where they lie.
#[test]
fn a_large_rollout_is_judged_without_a_copy() {
    let large = sample::with(&sample::rollout(), |r| {
        r["metadata"]["managedFields"] = vec!["f:x"; 100_000].into();
        r["spec"]["inventory"] = vec!["an entry of some length"; 25_000].into();
    });
    let marked = sample::with(&large, |r| r["metadata"]["annotations"]["operator.aicr.run/retry-spent"] = "t".into());
    let body = sample::review(sample::OPERATOR, Some(&large), Some(&marked)).to_string();
    assert!(body.len() > 2_000_000, "{}", body.len());
    let (policy, known) = (sample::policy(), Known::default());
    let counted = allocation_counter::measure(|| {
        let judged = judge(Webhook::Rollouts, body.as_bytes(), &policy, &known, sample::now());
        assert!(matches!(judged, Ok(judged) if judged.verdict == Verdict::ALLOW));
    });
    assert!(counted.bytes_total < 16 * 1024, "{counted:?}");
}

impl Case {
    fn allocations(&self) -> u64 {
        match self.webhook() {
            Webhook::Rollouts => 4,
            // Lists of authors and of finalizers, metadata and parts of the spec are looked into as well.
            Webhook::Approvals | Webhook::Runtimes | Webhook::Applications | Webhook::Plans => 32,
        }
    }
}

#[derive(Deserialize)]
struct Sent {
    request: SentRequest,
}

#[derive(Deserialize)]
struct SentRequest {
    uid: String,
}

/// Nothing panics, and what is answered is answered to the request that was sent.
fn judge_anyhow(webhook: Webhook, body: &[u8]) -> Option<Verdict> {
    let judged = judge(webhook, body, &sample::policy(), &Known::default(), sample::now()).ok()?;
    // What no rule reads is not looked into: a text there may hold half a character.
    let Sent { request } = serde_json::from_slice(body).unwrap();
    let answer: Value = serde_json::from_slice(&judged.answer).unwrap();
    assert_eq!(answer["response"]["uid"], request.uid);
    assert_eq!(answer["response"]["allowed"].as_bool().unwrap(), !matches!(judged.verdict, Verdict::Deny(_)));
    Some(judged.verdict)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: RngSeed::Fixed(20_261_130), ..ProptestConfig::default() })]

    #[test]
    fn turned_and_lost_bytes_never_panic(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), webhook in 0..5_usize) {
        let cases = CASES.with(Clone::clone);
        let mut body = cases[pick.index(cases.len())].clone();
        let at = at.index(body.len());
        body[at] ^= byte;
        judge_anyhow(Webhook::ALL[webhook], &body);
        prop_assert_eq!(judge_anyhow(Webhook::ALL[webhook], &body[..at]), None);
    }

    #[test]
    fn garbage_is_never_allowed(body in prop::collection::vec(any::<u8>(), 0..200), webhook in 0..5_usize) {
        prop_assert_eq!(judge_anyhow(Webhook::ALL[webhook], &body), None);
    }

    #[test]
    fn a_document_that_is_no_whole_review_is_never_allowed(document in document(), webhook in 0..5_usize) {
        prop_assert_eq!(judge_anyhow(Webhook::ALL[webhook], document.to_string().as_bytes()), None);
        let asked = serde_json::json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": document });
        prop_assert_eq!(judge_anyhow(Webhook::ALL[webhook], asked.to_string().as_bytes()), None);
    }

    #[test]
    fn depth_anywhere_never_panics(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), depth in 1..3000_usize) {
        let cases = CASES.with(Clone::clone);
        let mut body: Value = serde_json::from_slice(&cases[pick.index(cases.len())]).unwrap();
        let mut paths = Vec::new();
        pointers(&body, "", &mut paths);
        *body.pointer_mut(&paths[at.index(paths.len())]).unwrap() = "here".into();
        let deep = format!("{}{}", "[{\"a\":".repeat(depth), "0}]".repeat(depth));
        let body = body.to_string().replacen("\"here\"", &deep, 1);
        for webhook in Webhook::ALL {
            let judged = judge(webhook, body.as_bytes(), &sample::policy(), &Known::default(), sample::now());
            if let Ok(judged) = judged {
                prop_assert!(serde_json::from_slice::<Value>(&judged.answer).is_ok());
            }
        }
    }

    #[test]
    fn a_member_said_twice_is_never_a_way_around_a_denial(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let denied = DENIED.with(Clone::clone);
        let (webhook, body) = &denied[pick.index(denied.len())];
        let body: Value = serde_json::from_slice(body).unwrap();
        let request = body["request"].as_object().unwrap();
        let (key, _) = request.iter().nth(at.index(request.len())).unwrap();
        for said in [Value::Null, request[key].clone()] {
            let twice = body.to_string().replacen("\"request\":{", &format!("\"request\":{{\"{key}\":{said},"), 1);
            let judged = judge(*webhook, twice.as_bytes(), &sample::policy(), &Known::default(), sample::now());
            let allowed = judged.is_ok_and(|judged| !matches!(judged.verdict, Verdict::Deny(_)));
            prop_assert!(!allowed, "{key} said twice");
        }
    }

    #[test]
    fn a_value_of_another_type_anywhere_never_panics(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), kind in 0..5_usize) {
        let cases = CASES.with(Clone::clone);
        let mut body: Value = serde_json::from_slice(&cases[pick.index(cases.len())]).unwrap();
        let mut paths = Vec::new();
        pointers(&body, "", &mut paths);
        let path = &paths[at.index(paths.len())];
        *body.pointer_mut(path).unwrap() = [Value::Null, true.into(), 7.into(), "x".into(), serde_json::json!([{}])][kind].clone();
        let body = serde_json::to_vec(&body).unwrap();
        for webhook in Webhook::ALL {
            judge_anyhow(webhook, &body);
        }
    }
}

/// Any JSON, of some depth.
fn document() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["uid", "kind", "operation", "userInfo", "object", "oldObject", "name", "x"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let map = prop::collection::btree_map(names.clone(), inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            map.prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

thread_local! {
    static DENIED: std::rc::Rc<Vec<(Webhook, Vec<u8>)>> = corpus()
        .into_iter()
        .filter(|(_, case)| !["allow", "patch"].contains(&case.verdict.as_str()))
        .map(|(_, case)| (case.webhook(), case.review.get().as_bytes().to_vec()))
        .collect::<Vec<_>>()
        .into();
    static CASES: std::rc::Rc<Vec<Vec<u8>>> =
        corpus().into_iter().map(|(_, case)| case.review.get().as_bytes().to_vec()).collect::<Vec<_>>().into();
}

fn pointers(value: &Value, at: &str, paths: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, child)| (key.replace('~', "~0").replace('/', "~1"), child)).collect()
        }
        Value::Array(list) => list.iter().enumerate().map(|(index, child)| (index.to_string(), child)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    paths.push(at.to_owned());
    for (key, child) in children {
        pointers(child, &format!("{at}/{key}"), paths);
    }
}
