//! A bundle as an OCI artifact: one layer with the bytes the real command packs.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use flate2::{Compression, GzBuilder};
use serde_json::json;
use tar::{Builder, EntryType, Header};

use crate::failure::Failure;
use crate::oci::{self, Artifact};
use crate::release;

const EMPTY: &[u8] = b"{}";

/// Packs the files; the modes of directories are those on disk, so that a set-group-ID bit shows as it does for AICR.
pub(crate) fn artifact(files: &[(String, String)], staging: &Path) -> Result<Artifact, Failure> {
    let tar = archive(files, staging).map_err(|error| Failure::internal(format!("failed to pack bundle: {error}")))?;
    let layer = gzip(&tar).map_err(|error| Failure::internal(format!("failed to compress bundle: {error}")))?;
    let mut entry = oci::descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer);
    entry["annotations"] = json!({
        "io.deis.oras.content.digest": oci::digest(&tar),
        "io.deis.oras.content.unpack": "true",
        "org.opencontainers.image.title": ".",
    });
    let mut config = oci::descriptor("application/vnd.oci.empty.v1+json", EMPTY);
    config["data"] = json!("e30=");
    let manifest = oci::manifest(&json!({
        "artifactType": "application/vnd.nvidia.aicr.artifact",
        "config": config,
        "layers": [entry],
        "annotations": {
            "org.opencontainers.image.created": "1970-01-01T00:00:00Z",
            "org.opencontainers.image.source": "https://github.com/NVIDIA/aicr",
            "org.opencontainers.image.title": "AICR Bundle",
            "org.opencontainers.image.vendor": "NVIDIA",
            "org.opencontainers.image.version": release::stamped(),
        },
    }));
    Ok(Artifact { manifest, blobs: vec![EMPTY.to_vec(), layer] })
}

fn archive(files: &[(String, String)], staging: &Path) -> std::io::Result<Vec<u8>> {
    let mut names: BTreeSet<&Path> = BTreeSet::new();
    for (path, _) in files {
        names.extend(Path::new(path).ancestors().filter(|path| !path.as_os_str().is_empty()));
    }
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut directory(staging)?, ".", std::io::empty())?;
    for name in names {
        match files.iter().find(|(path, _)| Path::new(path) == name) {
            Some((path, content)) => {
                let mode = if name.extension().is_some_and(|extension| extension == "sh") { 0o755 } else { 0o600 };
                let mut header = header(EntryType::Regular, mode);
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, content.as_bytes())?;
            }
            None => builder.append_data(&mut directory(&staging.join(name))?, name, std::io::empty())?,
        }
    }
    builder.into_inner()
}

fn directory(path: &Path) -> std::io::Result<Header> {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o7777;
    Ok(header(EntryType::Directory, mode))
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    header
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;

    fn packed(staging: &Path) -> Artifact {
        let files = [("a/x.sh".to_owned(), "x".to_owned()), ("README.md".to_owned(), "r".to_owned())];
        artifact(&files, staging).unwrap()
    }

    #[test]
    fn the_layer_has_the_entries_and_headers_of_the_real_one_and_always_the_same_bytes() {
        let staging = tempfile::tempdir().unwrap();
        std::fs::create_dir(staging.path().join("a")).unwrap();
        let artifact = packed(staging.path());
        assert_eq!(artifact.digest(), packed(staging.path()).digest());
        let mut archive = tar::Archive::new(GzDecoder::new(artifact.blobs[1].as_slice()));
        let seen: Vec<(String, u32, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
                (name, header.mode().unwrap(), header.mtime().unwrap())
            })
            .collect();
        let names: Vec<&str> = seen.iter().map(|(name, ..)| name.trim_end_matches('/')).collect();
        assert_eq!(names, [".", "README.md", "a", "a/x.sh"]);
        assert_eq!((seen[1].1, seen[3].1), (0o600, 0o755));
        assert!(seen.iter().all(|(.., mtime)| *mtime == 0));
    }

    #[test]
    fn the_set_group_bit_of_a_directory_changes_the_digest() {
        let staging = tempfile::tempdir().unwrap();
        let inner = staging.path().join("a");
        std::fs::create_dir(&inner).unwrap();
        let before = packed(staging.path()).digest();
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o2755)).unwrap();
        assert_ne!(before, packed(staging.path()).digest());
    }
}
