//! Handshakes: who trusts what, before, through and after a rotation.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, sync_channel},
    },
    thread,
};

use aicr_certs::{Age, Authority, Leaf, LeafLife, Reissue, Served};
use jiff::SignedDuration;
use rustls::{
    CertificateError, Error, ProtocolVersion,
    pki_types::CertificateDer,
    version::{TLS12, TLS13},
};

use crate::support::{authority, client, client_of, days, handshake, leaf, names, server, shown, start};

fn bundle(authority: &Authority) -> String {
    authority.bundle(LeafLife::default(), start()).pem().to_owned()
}

fn der(served: &Served) -> CertificateDer<'static> {
    served.key().cert[0].clone()
}

#[test]
fn the_api_server_speaks_http_1_over_either_tls() {
    let (resolver, server) = server();
    let authority = authority(start());
    resolver.serve(leaf(&authority, start()).served());
    for (version, protocol) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let mut config = client_of(&[version], &bundle(&authority), start());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (client, server) = handshake(&server, config).unwrap();
        assert_eq!(client.protocol_version(), Some(protocol));
        assert_eq!(server.alpn_protocol(), Some(b"http/1.1".as_slice()));
    }
}

#[test]
fn a_client_that_comes_back_sees_the_new_certificate() {
    for version in [&TLS12, &TLS13] {
        let (resolver, server) = server();
        let authority = authority(start());
        // One configuration is one memory of sessions to resume.
        let config = client_of(&[version], &bundle(&authority), start());
        for _ in 0..2 {
            let leaf = leaf(&authority, start());
            resolver.serve(leaf.served());
            let (client, _) = handshake(&server, config.clone()).unwrap();
            assert_eq!(client.peer_certificates().unwrap(), [der(leaf.served())]);
        }
    }
}

#[test]
fn a_client_of_http_2_alone_is_refused() {
    let (resolver, server) = server();
    let authority = authority(start());
    resolver.serve(leaf(&authority, start()).served());
    let mut config = client(&bundle(&authority), start());
    config.alpn_protocols = vec![b"h2".to_vec()];
    assert_eq!(handshake(&server, config).unwrap_err(), Error::NoApplicationProtocol);
}

#[test]
fn without_a_certificate_there_is_no_handshake() {
    let (resolver, server) = server();
    assert!(resolver.served().is_none());
    shown(&server, &bundle(&authority(start())), start()).unwrap_err();
}

#[test]
fn a_leaf_is_refused_by_a_client_that_trusts_another_authority() {
    let (resolver, server) = server();
    let (ours, another) = (authority(start()), authority(start()));
    resolver.serve(leaf(&ours, start()).served());
    shown(&server, &bundle(&ours), start()).unwrap();
    let error = shown(&server, &bundle(&another), start()).unwrap_err();
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
}

#[test]
fn a_clock_an_hour_off_matters_to_nobody_and_an_expired_leaf_to_all() {
    let (resolver, server) = server();
    let authority = authority(start());
    resolver.serve(leaf(&authority, start()).served());
    for hours in [-1, 1, 7 * 24 - 1] {
        shown(&server, &bundle(&authority), start() + SignedDuration::from_hours(hours)).unwrap();
    }
    let error = shown(&server, &bundle(&authority), start() + days(8)).unwrap_err();
    assert!(matches!(error, Error::InvalidCertificate(CertificateError::ExpiredContext { .. })), "{error}");
}

#[test]
fn a_leaf_is_reissued_when_due_after_an_outage_and_under_another_authority() {
    let authority = authority(start());
    let made = leaf(&authority, start());
    for (later, reissue) in [
        (SignedDuration::from_hours(-3), Some(Reissue::Age(Age::NotYetValid))),
        (SignedDuration::ZERO, None),
        (SignedDuration::from_hours(56), None),
        (SignedDuration::from_hours(111), None),
        (SignedDuration::from_hours(112), Some(Reissue::Age(Age::Due))),
        (days(30), Some(Reissue::Age(Age::Expired))),
    ] {
        assert_eq!(made.reissue(&authority, start() + later), reissue, "{later}");
    }
    let next = crate::support::authority(start());
    assert_eq!(made.reissue(&next, start()), Some(Reissue::Authority));
    assert_eq!(leaf(&next, start()).reissue(&next, start()), None);
}

#[test]
fn a_leaf_ends_with_its_authority() {
    let authority = authority(start());
    let late = start() + days(364);
    let leaf = Leaf::issue(&authority, &names(), LeafLife::default(), late).unwrap();
    assert_eq!(leaf.served().validity().not_after, authority.certificate().validity().not_after);
}

#[test]
fn a_replaced_authority_is_trusted_for_the_life_of_a_leaf_and_not_beyond_its_own() {
    let first = authority(start());
    let turned = start() + days(300);
    let second = Authority::generate(vec![first.certificate().clone()], turned).unwrap();
    let third = Authority::generate(vec![second.certificate().clone(), first.certificate().clone()], turned + days(3));
    let (third, life) = (third.unwrap(), LeafLife::default());
    let pems: Vec<String> =
        [&third, &second, &first].into_iter().map(|authority| authority.certificate().to_pem()).collect();
    for (day, trusted) in [(3, 3), (6, 3), (7, 2), (9, 2), (10, 1)] {
        assert_eq!(third.bundle(life, turned + days(day)).pem(), pems[..trusted].concat(), "day {day}");
    }
    let late = Authority::generate(vec![first.certificate().clone()], start() + days(364)).unwrap();
    assert_eq!(late.bundle(life, start() + days(366)).pem(), late.certificate().to_pem());
    assert_eq!(late.bundle(life, start() + days(365)).pem(), late.certificate().to_pem() + &pems[2]);
}

#[test]
fn a_hundred_handshakes_through_a_rotation_all_succeed() {
    let (resolver, server) = server();
    let old = authority(start());
    let old_leaf = leaf(&old, start());
    resolver.serve(old_leaf.served());
    let trusted = Arc::new(Mutex::new(bundle(&old)));

    // Without a buffer the two sides keep step: a handshake is at most one ahead of what was taken.
    let (sender, receiver) = sync_channel(0);
    let api_server = thread::spawn({
        let trusted = Arc::clone(&trusted);
        move || {
            for _ in 0..100 {
                let bundle = trusted.lock().unwrap().clone();
                sender.send(shown(&server, &bundle, start())).unwrap();
            }
        }
    });
    let mut seen = take(&receiver, 25);
    let new = Authority::generate(vec![old.certificate().clone()], start()).unwrap();
    *trusted.lock().unwrap() = bundle(&new);
    seen.extend(take(&receiver, 25));
    let new_leaf = leaf(&new, start());
    resolver.serve(new_leaf.served());
    seen.extend(take(&receiver, 50));
    api_server.join().unwrap();

    assert_eq!(seen.len(), 100);
    assert!(seen[..25].iter().all(|shown| *shown == der(old_leaf.served())));
    assert_eq!(*seen.last().unwrap(), der(new_leaf.served()));
}

fn take(receiver: &Receiver<Result<CertificateDer<'static>, Error>>, count: usize) -> Vec<CertificateDer<'static>> {
    receiver.iter().take(count).collect::<Result<_, _>>().unwrap()
}
