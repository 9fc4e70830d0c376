//! What a Secret may hold, good and bad.

use aicr_certs::{Authority, CERTIFICATE, CertificateFault, Found, KEY, PREVIOUS, Stored, Why};
use jiff::SignedDuration;
use rstest::rstest;

use crate::support::{authority, days, leaf, other_authority, start};

fn stored(certificate: &[u8], key: &[u8]) -> Stored {
    Stored::read(|name| match name {
        CERTIFICATE => Some(certificate),
        KEY => Some(key),
        _ => None,
    })
}

/// Certificate and key of a fresh authority of ours.
fn ours() -> (Vec<u8>, Vec<u8>) {
    let stored = authority(start()).to_stored();
    let entry = |wanted| stored.entries().into_iter().find(|(name, _)| *name == wanted).unwrap().1.unwrap().to_vec();
    (entry(CERTIFICATE), entry(KEY))
}

fn why(found: Found) -> Why {
    match found {
        Found::Renew(why) => why,
        other @ (Found::Absent | Found::Usable(_)) => panic!("{other}"),
    }
}

#[test]
fn what_was_stored_is_found_again() {
    let made = authority(start());
    let Found::Usable(found) = Found::read(&made.to_stored(), start()) else { panic!("not usable") };
    assert_eq!(found.certificate(), made.certificate());
    assert_eq!(found.to_stored(), made.to_stored());
    assert!(!format!("{found:?}").contains("PRIVATE"));
}

#[rstest]
#[case::an_hour_before_its_making(SignedDuration::from_hours(-1), "the authority is usable", true)]
#[case::three_hours_before_its_making(SignedDuration::from_hours(-3), "the authority is not valid yet", false)]
#[case::a_third(days(121), "the authority is usable", true)]
#[case::two_thirds(days(244), "two thirds of the authority's life have passed", true)]
#[case::the_last_day(days(365), "two thirds of the authority's life have passed", true)]
#[case::a_day_too_late(days(366), "the authority has expired", false)]
fn age_is_judged_by_the_wall_clock(#[case] later: SignedDuration, #[case] text: &str, #[case] signs: bool) {
    let found = Found::read(&authority(start()).to_stored(), start() + later);
    assert_eq!(found.to_string(), text);
    assert_eq!(found.authority().is_some(), signs);
}

#[test]
fn the_shell_is_absent_and_half_a_pair_is_half() {
    let (certificate, key) = ours();
    assert!(matches!(Found::read(&Stored::default(), start()), Found::Absent));
    assert!(matches!(Found::read(&stored(b"", b""), start()), Found::Absent));
    assert!(matches!(why(Found::read(&stored(&certificate, b""), start())), Why::KeyMissing));
    assert!(matches!(why(Found::read(&stored(b"", &key), start())), Why::CertificateMissing));
}

#[test]
fn a_key_of_another_is_refused_and_so_is_what_is_no_key() {
    let (certificate, key) = ours();
    let (_, another) = ours();
    assert!(matches!(why(Found::read(&stored(&certificate, &another), start())), Why::KeyOfAnother));
    let long = vec![b'A'; 100_000];
    for bad in [b"\xff\xfe".as_slice(), b"garbage", &certificate, &key[..key.len() / 2], &long] {
        assert!(matches!(why(Found::read(&stored(&certificate, bad), start())), Why::KeyUnreadable));
    }
}

#[rstest]
#[case::another_common_name("aicr-operator", "kubernetes", true, CertificateFault::Foreign)]
#[case::another_organization("somebody", "aicr-operator webhook authority", true, CertificateFault::Foreign)]
#[case::not_an_authority("aicr-operator", "aicr-operator webhook authority", false, CertificateFault::NotAnAuthority)]
fn a_pair_that_is_none_of_our_authorities_is_told_apart(
    #[case] organization: &str,
    #[case] common_name: &str,
    #[case] is_ca: bool,
    #[case] fault: CertificateFault,
) {
    let (certificate, key) = other_authority(organization, common_name, is_ca);
    let why = why(Found::read(&stored(certificate.as_bytes(), key.as_bytes()), start()));
    assert!(matches!(why, Why::Certificate(found) if found == fault), "{why}");
}

#[test]
fn a_leaf_of_ours_is_no_authority() {
    let authority = authority(start());
    let leaf = leaf(&authority, start());
    let pem = pem::encode(&pem::Pem::new("CERTIFICATE", leaf.served().key().cert[0].to_vec()));
    let (_, key) = ours();
    let found = Found::read(&stored(pem.as_bytes(), &key), start());
    assert!(matches!(why(found), Why::Certificate(CertificateFault::Foreign)));
}

#[test]
fn a_certificate_with_any_byte_changed_is_never_another_authority() {
    let (certificate, key) = ours();
    let original = Found::read(&stored(&certificate, &key), start());
    let original = original.authority().unwrap().certificate();
    let mut refused = 0;
    for position in 0..certificate.len() {
        let mut changed = certificate.clone();
        changed[position] ^= 1;
        match Found::read(&stored(&changed, &key), start()).authority() {
            // A line end or the text around the section: the same certificate still.
            Some(same) => assert_eq!(same.certificate(), original),
            None => refused += 1,
        }
        assert!(
            Found::read(&stored(&certificate[..position], &key), start()).authority().is_none()
                || position + 2 > certificate.len()
        );
    }
    assert!(refused > certificate.len() * 9 / 10, "{refused} of {}", certificate.len());
}

#[test]
fn previous_certificates_that_are_not_ours_are_passed_over() {
    let old = authority(start());
    let new = Authority::generate(vec![old.certificate().clone()], start() + days(200)).unwrap();
    let (foreign, _) = other_authority("somebody", "ca", true);
    let entries = new.to_stored();
    let polluted = format!("garbage\n{foreign}{}", old.certificate().to_pem());
    let stored = Stored::read(|name| {
        if name == PREVIOUS {
            return Some(polluted.as_bytes());
        }
        entries.entries().into_iter().find(|(entry, _)| *entry == name).and_then(|(_, value)| value)
    });
    let found = Found::read(&stored, start() + days(200));
    assert_eq!(found.authority().unwrap().to_stored(), new.to_stored());
}
