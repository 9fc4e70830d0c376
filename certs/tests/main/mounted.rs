//! cert-manager's folder, exchanged as Kubernetes does it.

use std::{fs, os::unix::fs::symlink, path::Path};

use aicr_certs::{Mounted, MountedError, Served};
use tempfile::TempDir;

use crate::support::{mounted_pair, names, server, start};

const NAME: &str = "aicr-operator.aicr-system.svc";

fn folder(chain: &[u8], key: &[u8]) -> (TempDir, Mounted) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("tls.crt"), chain).unwrap();
    fs::write(folder.path().join("tls.key"), key).unwrap();
    let mounted = Mounted::new(folder.path(), names());
    (folder, mounted)
}

fn first(served: &Served) -> &[u8] {
    &served.key().cert[0]
}

/// A version of the Secret in a folder of its own, with `..data` moved onto it in one rename.
fn publish(folder: &Path, version: &str, (chain, key): &(String, String)) {
    fs::create_dir(folder.join(version)).unwrap();
    fs::write(folder.join(version).join("tls.crt"), chain).unwrap();
    fs::write(folder.join(version).join("tls.key"), key).unwrap();
    symlink(version, folder.join("..tmp")).unwrap();
    fs::rename(folder.join("..tmp"), folder.join("..data")).unwrap();
}

/// B50.
#[test]
fn a_symlink_swap_is_seen_at_the_next_look_and_served() {
    let folder = TempDir::new().unwrap();
    for file in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(file), folder.path().join(file)).unwrap();
    }
    let mut mounted = Mounted::new(folder.path(), names());
    let (resolver, server) = server();
    let mut seen = Vec::new();
    for version in ["..1", "..2"] {
        let pair = mounted_pair(NAME, 2027);
        publish(folder.path(), version, &pair);
        let current = mounted.look(start()).unwrap().unwrap();
        resolver.serve(&current);
        let authority = pair.0.split_inclusive("-----END CERTIFICATE-----\n").nth(1).unwrap();
        assert_eq!(&*crate::support::shown(&server, authority, start()).unwrap(), first(&current));
        assert!(mounted.look(start()).unwrap().is_none());
        seen.push(first(&current).to_vec());
    }
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_half_written_pair_is_refused_and_heals() {
    let (old, new) = (mounted_pair(NAME, 2027), mounted_pair(NAME, 2027));
    let (folder, mut mounted) = folder(old.0.as_bytes(), old.1.as_bytes());
    mounted.look(start()).unwrap().unwrap();
    fs::write(folder.path().join("tls.crt"), &new.0).unwrap();
    for _ in 0..2 {
        assert!(matches!(mounted.look(start()).unwrap_err(), MountedError::KeyOfAnother));
    }
    fs::write(folder.path().join("tls.key"), &new.1[..new.1.len() / 2]).unwrap();
    assert!(matches!(mounted.look(start()).unwrap_err(), MountedError::Key));
    fs::write(folder.path().join("tls.key"), &new.1).unwrap();
    mounted.look(start()).unwrap().unwrap();
}

#[test]
fn a_pair_for_another_service_or_beyond_its_life_is_refused() {
    let (chain, key) = mounted_pair("another.aicr-system.svc", 2027);
    let error = folder(chain.as_bytes(), key.as_bytes()).1.look(start()).unwrap_err();
    assert_eq!(error.to_string(), "the mounted certificate is not for aicr-operator.aicr-system.svc");
    let (chain, key) = mounted_pair(NAME, 2026);
    let error = folder(chain.as_bytes(), key.as_bytes()).1.look(start()).unwrap_err();
    assert_eq!(error.to_string(), "the mounted certificate expired at 2026-01-01T00:00:00Z");
}

#[test]
fn what_cannot_be_read_is_told_apart() {
    let (chain, key) = mounted_pair(NAME, 2027);
    let look = |chain: &[u8], key: &[u8]| folder(chain, key).1.look(start()).unwrap_err();
    for bad in [b"".as_slice(), b"\xff\0garbage", &chain.as_bytes()[..100], key.as_bytes()] {
        assert!(matches!(look(bad, key.as_bytes()), MountedError::Certificate));
    }
    for bad in [b"".as_slice(), b"\xff\0garbage", &key.as_bytes()[..60], chain.as_bytes()] {
        assert!(matches!(look(chain.as_bytes(), bad), MountedError::Key));
    }
    let large = vec![b'A'; (1 << 20) + 1];
    assert!(matches!(look(&large, b""), MountedError::TooLarge { file: "tls.crt" }));
    let empty = TempDir::new().unwrap();
    let error = Mounted::new(empty.path(), names()).look(start()).unwrap_err();
    assert!(matches!(error, MountedError::Read { file: "tls.crt", .. }));
}
