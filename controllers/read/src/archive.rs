//! Gzipped tar archives: unpacked within bounds, packed so that the same files are the same bytes.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read},
};

use flate2::{Compression, GzBuilder, read::MultiGzDecoder};
use tar::{Archive, Builder, EntryType, Header};

use crate::error::{ReadError, bounded, quoted};

/// Files by their path below the archive's root.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The longest path in an archive, in bytes.
const PATH_LIMIT: usize = 512;

/// How much of an archive is read.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Size as it lies there, in bytes.
    pub(crate) packed: usize,
    /// Size of the tar stream, headers included, in bytes.
    pub(crate) expanded: u64,
    /// Files and folders.
    pub(crate) entries: usize,
}

/// Unpacks regular files into memory. Links, devices, absolute names, names with `..` and duplicates are refused.
pub(crate) fn unpack(what: &str, packed: &[u8], limits: Limits) -> Result<Files, ReadError> {
    bounded(what, packed.len(), limits.packed)?;
    let stream = Bounded { inner: MultiGzDecoder::new(packed), left: limits.expanded };
    let mut archive = Archive::new(stream);
    let failed = |error: io::Error| unreadable(what, &error, limits);
    let mut files = Files::new();
    for (index, entry) in archive.entries().map_err(failed)?.enumerate() {
        let mut entry = entry.map_err(failed)?;
        if index >= limits.entries {
            return Err(ReadError::damaged(what, format!("it has more than {} entries", limits.entries)));
        }
        let path = safe(what, &entry.path_bytes())?;
        let kind = entry.header().entry_type();
        if kind == EntryType::Regular {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(failed)?;
            insert(what, &mut files, path, content)?;
        } else if !matches!(kind, EntryType::Directory | EntryType::XGlobalHeader) {
            let problem = format!("{} is neither file nor folder but {kind:?}", quoted(&path));
            return Err(ReadError::damaged(what, problem));
        }
    }
    // The rest is padding; reading it checks the gzip checksum, which stands at the very end.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    Ok(files)
}

fn insert(what: &str, files: &mut Files, path: String, content: Vec<u8>) -> Result<(), ReadError> {
    if files.contains_key(&path) {
        return Err(ReadError::damaged(what, format!("{} stands in it twice", quoted(&path))));
    }
    files.insert(path, content);
    Ok(())
}

/// The path below the root, without `./`; empty for the root itself.
pub(crate) fn safe(what: &str, path: &[u8]) -> Result<String, ReadError> {
    let refused = |problem: &str| {
        ReadError::damaged(what, format!("the path {} {problem}", quoted(&String::from_utf8_lossy(path))))
    };
    let text = std::str::from_utf8(path).map_err(|_| refused("is not UTF-8"))?;
    if text.len() > PATH_LIMIT {
        return Err(refused("is too long"));
    }
    let drive = text.as_bytes().get(1) == Some(&b':');
    if drive || text.starts_with('/') || text.contains(['\\', '\0']) {
        return Err(refused("is not relative"));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(refused("leads out of the archive"));
    }
    Ok(parts.join("/"))
}

fn unreadable(what: &str, error: &io::Error, limits: Limits) -> ReadError {
    if error.kind() == ErrorKind::FileTooLarge {
        let limit = limits.expanded;
        return ReadError::TooLarge { what: format!("{what}, expanded,"), size: limit.saturating_add(1), limit };
    }
    ReadError::damaged(what, format!("it is no whole gzipped tar archive: {error}"))
}

/// A stream that fails instead of giving more than it may.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(ErrorKind::FileTooLarge.into()),
        }
        Ok(read)
    }
}

/// Packs the files below one top folder: sorted, no times, no owners, mode 0644.
///
/// # Errors
/// For a path that a tar archive cannot hold.
pub(crate) fn pack(what: &str, top: &str, files: &Files) -> Result<Vec<u8>, ReadError> {
    // 255: unknown operating system, so that the header is the same wherever it is written.
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut builder = Builder::new(gzip);
    let failed = |error: io::Error| ReadError::damaged(what, format!("it cannot be packed: {error}"));
    for (path, content) in files {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        builder.append_data(&mut header, format!("{top}/{path}"), content.as_slice()).map_err(failed)?;
    }
    builder.into_inner().and_then(flate2::write::GzEncoder::finish).map_err(failed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rstest::rstest;

    const LIMITS: Limits = Limits { packed: 1 << 20, expanded: 64 * 1024, entries: 20 };

    /// A tar archive with exactly these names, unchecked, so that hostile ones can be built.
    pub(crate) fn tgz(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(flate2::write::GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, kind, content) in entries {
            let mut header = Header::new_ustar();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name("target").unwrap();
            }
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn files_are_unpacked_below_the_root() {
        let packed = tgz(&[
            (".", EntryType::Directory, b""),
            ("./a/", EntryType::Directory, b""),
            ("./a/b", EntryType::Regular, b"one"),
            ("c", EntryType::Regular, b""),
        ]);
        let files = unpack("it", &packed, LIMITS).unwrap();
        assert_eq!(files, Files::from([("a/b".to_owned(), b"one".to_vec()), ("c".to_owned(), Vec::new())]));
    }

    #[rstest]
    #[case::climbs("../a", EntryType::Regular)]
    #[case::climbs_inside("a/../../b", EntryType::Regular)]
    #[case::absolute("/etc/passwd", EntryType::Regular)]
    #[case::drive("c:/a", EntryType::Regular)]
    #[case::backslash("..\\a", EntryType::Regular)]
    #[case::absolute_folder("/", EntryType::Directory)]
    #[case::symlink("a", EntryType::Symlink)]
    #[case::hard_link("a", EntryType::Link)]
    #[case::device("a", EntryType::Char)]
    #[case::pipe("a", EntryType::Fifo)]
    fn a_hostile_entry_is_refused(#[case] name: &str, #[case] kind: EntryType) {
        let packed = tgz(&[("fine", EntryType::Regular, b"x"), (name, kind, b"")]);
        assert!(matches!(unpack("it", &packed, LIMITS), Err(ReadError::Damaged { .. })));
    }

    #[test]
    fn a_name_given_twice_is_refused_also_when_written_otherwise() {
        let packed = tgz(&[("a/b", EntryType::Regular, b"1"), ("./a//b", EntryType::Regular, b"2")]);
        assert!(unpack("it", &packed, LIMITS).unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn size_and_count_are_bounded() {
        let bomb = tgz(&[("a", EntryType::Regular, &vec![0; 100_000])]);
        assert!(bomb.len() < 2000);
        assert!(matches!(unpack("it", &bomb, LIMITS), Err(ReadError::TooLarge { limit: 65_536, .. })));
        let names: Vec<String> = (0..21).map(|n| format!("f{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), EntryType::Regular, b"".as_slice())).collect();
        assert!(unpack("it", &tgz(&many), LIMITS).unwrap_err().to_string().contains("20 entries"));
        assert!(unpack("it", &tgz(&many[..20]), LIMITS).is_ok());
        let packed = Limits { packed: 10, ..LIMITS };
        assert!(matches!(unpack("it", &tgz(&many), packed), Err(ReadError::TooLarge { limit: 10, .. })));
    }

    #[test]
    fn an_archive_cut_anywhere_is_refused() {
        let packed = tgz(&[("a", EntryType::Regular, b"hello"), ("b", EntryType::Regular, b"world")]);
        for end in 0..packed.len() {
            assert!(unpack("it", &packed[..end], LIMITS).is_err(), "cut at {end}");
        }
        assert!(unpack("it", b"this is no archive", LIMITS).is_err());
    }

    #[test]
    fn a_flipped_byte_of_content_is_noticed() {
        let mut packed = tgz(&[("a", EntryType::Regular, b"hello")]);
        let checksum = packed.len() - 8;
        packed[checksum] ^= 1;
        assert!(unpack("it", &packed, LIMITS).is_err());
    }

    #[test]
    fn what_is_packed_is_unpacked_again_and_always_the_same_bytes() {
        let long = format!("templates/{}.yaml", "x".repeat(150));
        let files = Files::from([("Chart.yaml".to_owned(), b"name: a".to_vec()), (long.clone(), b"y".to_vec())]);
        let packed = pack("it", "top", &files).unwrap();
        assert_eq!(packed, pack("it", "top", &files.clone()).unwrap());
        assert_eq!(packed[4..8], [0; 4], "the gzip header carries a time");
        let again = unpack("it", &packed, LIMITS).unwrap();
        assert_eq!(again.keys().collect::<Vec<_>>(), ["top/Chart.yaml", &format!("top/{long}")]);
    }
}
