//! The leader's order of acts, with the Secret and the webhook entries as plain values.

use std::sync::Arc;

use aicr_certs::{
    Age, Bundle, CertificateResolver, Found, LOOK_EVERY, Leader, Leaf, LeafLife, Rotation, SETTLE, Step, Stored,
};
use jiff::{SignedDuration, Timestamp};
use rustls::ServerConfig;

use crate::support::{authority, days, leaf, other_authority, server, shown, start};

/// One replica that leads, and the two objects it cares for.
struct World {
    leader: Leader,
    stored: Stored,
    bundle: Vec<u8>,
    now: Timestamp,
    leaf: Option<Leaf>,
    resolver: Arc<CertificateResolver>,
    server: Arc<ServerConfig>,
    acts: Vec<&'static str>,
}

impl World {
    fn new() -> Self {
        let (resolver, server) = server();
        let leader = Leader::new(LeafLife::default());
        let (stored, bundle, acts) = (Stored::default(), Vec::new(), Vec::new());
        Self { leader, stored, bundle, now: start(), leaf: None, resolver, server, acts }
    }

    /// Every replica's own part: a leaf of the authority that is stored.
    fn serve(&mut self) {
        let found = Found::read(&self.stored, self.now);
        if let Some(authority) = found.authority()
            && self.leaf.as_ref().is_none_or(|leaf| leaf.reissue(authority, self.now).is_some())
        {
            let made = leaf(authority, self.now);
            self.resolver.serve(made.served());
            self.leaf = Some(made);
        }
    }

    fn next(&mut self) -> Step {
        self.leader.next(&self.stored, &[&self.bundle, &self.bundle], self.now)
    }

    /// Carries one step out; false when there is nothing left to do.
    fn step(&mut self) -> bool {
        match self.next() {
            Step::Rotate(_) => {
                self.acts.push("rotate");
                let in_use = self.leaf.as_ref().map(Leaf::authority);
                self.leader.stage(Rotation::prepare(self.stored.clone(), in_use, self.now).unwrap());
            }
            Step::Publish(bundle) => {
                self.acts.push("publish");
                self.bundle = bundle.pem().as_bytes().to_vec();
            }
            Step::Store(stored) => {
                self.acts.push("store");
                self.stored = stored;
            }
            Step::Rest { until, ready: false } => {
                self.acts.push("settle");
                assert!(until > self.now && until <= self.now + SETTLE);
                self.now = until;
            }
            Step::Rest { until, ready: true } => {
                assert_eq!(until, self.now + LOOK_EVERY);
                return false;
            }
        }
        self.serve();
        true
    }

    /// Steps until all is well, with a handshake by the API server after each where one must succeed.
    fn settle(&mut self, reviewed: bool) -> Vec<&'static str> {
        for _ in 0..20 {
            let more = self.step();
            if reviewed || !more {
                self.review();
            }
            if !more {
                return std::mem::take(&mut self.acts);
            }
        }
        panic!("never at rest: {:?}", self.acts);
    }

    fn review(&self) {
        shown(&self.server, str::from_utf8(&self.bundle).unwrap(), self.now).unwrap();
    }

    fn certificates_trusted(&self) -> usize {
        str::from_utf8(&self.bundle).unwrap().matches("BEGIN").count()
    }
}

fn installed() -> World {
    let mut world = World::new();
    assert_eq!(world.settle(false), ["rotate", "publish", "store"]);
    world
}

#[test]
fn an_installation_begins_with_an_empty_secret() {
    let world = installed();
    assert_eq!(world.certificates_trusted(), 1);
}

#[test]
fn a_rotation_publishes_before_it_stores_and_no_review_fails() {
    let mut world = installed();
    world.now += days(244);
    world.serve();
    assert_eq!(world.settle(true), ["rotate", "publish", "settle", "store"]);
    assert_eq!(world.certificates_trusted(), 2);
    world.now += days(8);
    world.serve();
    assert_eq!(world.settle(true), ["publish"]);
    assert_eq!(world.certificates_trusted(), 1);
}

#[test]
fn a_secret_that_lost_its_authority_is_refilled_and_no_review_fails() {
    let (certificate, key) = other_authority("somebody", "ca", true);
    let foreign = Stored::read(|name| match name {
        "ca.crt" => Some(certificate.as_bytes()),
        "ca.key" => Some(key.as_bytes()),
        _ => None,
    });
    let garbage = Stored::read(|_| Some(b"garbage".as_slice()));
    for lost in [Stored::default(), foreign, garbage] {
        let mut world = installed();
        world.stored = lost;
        assert_eq!(world.settle(true), ["rotate", "publish", "settle", "store"]);
        assert_eq!(world.certificates_trusted(), 2);
    }
}

#[test]
fn half_a_secret_still_tells_a_new_leader_whom_the_other_replicas_use() {
    let mut world = installed();
    let whole = world.stored.clone();
    world.stored = Stored::read(|name| {
        whole.entries().into_iter().find(|(entry, _)| *entry == name && name != "ca.key").and_then(|(_, value)| value)
    });
    // The server of this story is another replica's; the leader has no leaf of its own yet.
    world.leaf = None;
    assert_eq!(world.settle(true), ["rotate", "publish", "settle", "store"]);
}

/// B51.
#[test]
fn an_expired_authority_is_replaced_at_the_start() {
    let mut world = installed();
    world.now += days(366);
    world.serve();
    assert_eq!(world.leaf.as_ref().unwrap().served().validity().age(world.now), Age::Expired);
    assert_eq!(world.settle(false), ["rotate", "publish", "store"]);
    assert_eq!(world.certificates_trusted(), 1);
}

#[test]
fn a_bundle_that_was_wiped_or_is_stale_is_written_again() {
    for wrong in [Vec::new(), b"stale".to_vec(), authority(start()).certificate().to_pem().into_bytes()] {
        let mut world = installed();
        world.bundle = wrong;
        assert_eq!(world.settle(false), ["publish"]);
    }
}

#[test]
fn a_bundle_wiped_in_the_middle_of_a_rotation_is_written_again_and_settles_anew() {
    let mut world = installed();
    world.now += days(244);
    world.serve();
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(std::mem::take(&mut world.acts), ["rotate", "publish", "settle"]);
    world.bundle.clear();
    assert_eq!(world.settle(false), ["publish", "settle", "store"]);
}

#[test]
fn a_leader_that_stopped_before_storing_leaves_nothing_behind() {
    let mut world = installed();
    world.now += days(244);
    world.serve();
    world.step();
    world.step();
    world.leader = Leader::new(LeafLife::default());
    assert_eq!(world.settle(true), ["rotate", "publish", "rotate", "publish", "settle", "store"]);
    assert_eq!(world.certificates_trusted(), 2);
}

#[test]
fn what_another_leader_stored_meanwhile_stands() {
    let mut world = installed();
    world.now += days(244);
    world.serve();
    world.step();
    let other = authority(world.now);
    world.stored = other.to_stored();
    world.leaf = Some(leaf(&other, world.now));
    world.acts.clear();
    let Step::Publish(bundle) = world.next() else { panic!("not published") };
    assert_eq!(bundle, other.bundle(LeafLife::default(), world.now));
}

#[test]
fn a_clock_set_back_while_settling_holds_nothing_up() {
    let mut world = installed();
    world.now += days(244);
    world.serve();
    for _ in 0..3 {
        world.step();
    }
    world.now -= SignedDuration::from_hours(1);
    assert!(matches!(world.next(), Step::Store(_)));
}

#[test]
fn every_entry_must_carry_the_bundle() {
    let bundle: Bundle = authority(start()).bundle(LeafLife::default(), start());
    let good = bundle.pem().as_bytes();
    assert!(bundle.stands_in(&[]) && bundle.stands_in(&[good, good]));
    assert!(!bundle.stands_in(&[good, b""]) && !bundle.stands_in(&[good, &good[1..]]));
    let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, bundle.base64()).unwrap();
    assert_eq!(decoded, good);
}
