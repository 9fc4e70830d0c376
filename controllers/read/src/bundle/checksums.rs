//! The bundle's `checksums.txt`: every listed file is there with that content.

use std::collections::BTreeSet;

use aicr_crds::digest::Digest;

use super::{ENTRY_LIMIT, WHAT};
use crate::{
    archive::{self, Files},
    error::{ReadError, quoted},
    names, yaml,
};

const SUMS: &str = "checksums.txt";

/// The folder that AICR bundles into; a pushed bundle lists absolute paths below it.
const ROOT: &str = "/bundle";

/// The files whose content is as listed.
pub(super) struct Covered(BTreeSet<String>);

impl Covered {
    /// Refuses a file that is not listed.
    pub(super) fn require(&self, path: &str) -> Result<(), ReadError> {
        if self.0.contains(path) {
            return Ok(());
        }
        Err(ReadError::damaged(WHAT, format!("its {SUMS} does not list {}", quoted(path))))
    }
}

pub(super) fn verify(files: &Files) -> Result<Covered, ReadError> {
    let Some(bytes) = files.get(SUMS) else {
        return Err(ReadError::damaged(WHAT, format!("it has no {SUMS}")));
    };
    let text = yaml::text(SUMS, bytes, yaml::DOCUMENT_LIMIT)?;
    let mut covered = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let (sum, path) = split(index, line)?;
        let path = locate(files, path)?;
        if Digest::of(&files[&path]) != sum {
            return Err(ReadError::damaged(WHAT, format!("{} is not what {SUMS} says", quoted(&path))));
        }
        covered.insert(path);
        names::count(SUMS, "lines", index + 1, ENTRY_LIMIT)?;
    }
    Ok(Covered(covered))
}

fn split(index: usize, line: &str) -> Result<(Digest, &str), ReadError> {
    let row = line.split_once("  ").and_then(|(sum, path)| Some((format!("sha256:{sum}").parse().ok()?, path)));
    row.ok_or_else(|| ReadError::damaged(SUMS, format!("line {} is no checksum and path: {}", index + 1, quoted(line))))
}

/// The file that a line means: relative to the root, or an absolute path of the folder where AICR bundled.
fn locate(files: &Files, listed: &str) -> Result<String, ReadError> {
    let found = if listed.starts_with('/') {
        let mut below = listed.match_indices(ROOT).filter_map(|(at, root)| listed[at + root.len()..].strip_prefix('/'));
        below.find(|path| files.contains_key(*path)).map(str::to_owned)
    } else {
        Some(archive::safe(SUMS, listed.as_bytes())?).filter(|path| files.contains_key(path))
    };
    found.ok_or_else(|| ReadError::damaged(WHAT, format!("{SUMS} lists {}, which is not there", quoted(listed))))
}
