//! AICR's Helm bundle: its releases in order, each with chart source, values and what comes before it.

mod checksums;
mod info;
mod order;
mod release;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::{
    archive::{self, Files, Limits},
    error::{ReadError, quoted},
    recipe::{self, Recipe},
};

/// The largest bundle layer, as it lies in the registry, in bytes.
pub const PACKED_LIMIT: usize = 16 << 20;

/// The largest bundle, expanded, in bytes.
pub const EXPANDED_LIMIT: u64 = 16 << 20;

/// The most files and folders of a bundle.
pub const ENTRY_LIMIT: usize = 2000;

/// The most releases of a bundle.
pub const RELEASE_LIMIT: usize = 256;

pub(crate) const WHAT: &str = "the AICR bundle";

/// A rendered bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The AICR version that bundled, with or without a leading `v`.
    pub version: String,
    /// The releases in deployment order, at most [`RELEASE_LIMIT`].
    pub releases: Vec<Release>,
    /// The recipe that was bundled.
    pub recipe: Recipe,
    /// The recipe's bytes as they stand in the bundle.
    pub recipe_bytes: Vec<u8>,
}

/// One release of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Release name and id, a DNS label of at most 53 bytes.
    pub id: String,
    /// The component that it belongs to.
    pub component: String,
    /// The namespace that it goes to.
    pub namespace: String,
    /// Where its chart comes from.
    pub source: Source,
    /// AICR's values byte for byte, without its comment header and `---`. Not checked: see [`crate::values::check`].
    pub values: String,
    /// The ids of the releases that come before it, each earlier in [`Bundle::releases`].
    pub depends_on: Vec<String>,
    /// Whether it is the readiness gate of its component.
    pub readiness_gate: bool,
}

/// Where a release's chart comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A chart of somebody else's repository. Not judged here: any repository and version, also inexact ones.
    Upstream {
        /// Chart name, or the whole `oci://` reference.
        chart: String,
        /// Repository address; empty for OCI.
        repo: String,
        /// Version as pinned, with or without a leading `v`.
        version: String,
    },
    /// A chart that the bundle itself holds.
    Local {
        /// The chart's name.
        name: String,
        /// The chart's version: AICR's own.
        version: String,
        /// `Chart.yaml` and what is rendered, by path. The values stand in [`Release::values`] only, so that other
        /// values are not another chart.
        files: BTreeMap<String, Vec<u8>>,
    },
}

/// Reads the one layer of a pushed bundle.
///
/// # Errors
/// `TooLarge` beyond the limits, `Unsupported` for a layout, kind or version that this operator does not know,
/// else `Damaged`.
pub fn read(layer_tar_gz: &[u8]) -> Result<Bundle, ReadError> {
    let limits = Limits { packed: PACKED_LIMIT, expanded: EXPANDED_LIMIT, entries: ENTRY_LIMIT };
    read_files(&archive::unpack(WHAT, layer_tar_gz, limits)?)
}

/// Reads a bundle that is unpacked already: files by their path below the bundle's root.
///
/// # Errors
/// As [`read`], but for what concerns the archive.
pub fn read_files(files: &Files) -> Result<Bundle, ReadError> {
    let info = info::read(files)?;
    let sums = checksums::verify(files)?;
    let recipe_bytes = checked(files, &sums, info::RECIPE)?;
    info.check_recipe(recipe_bytes)?;
    let recipe = recipe::read(recipe_bytes)?;
    let sorted = order::sort(&info.releases, &recipe)?;
    let mut releases = Vec::with_capacity(info.releases.len());
    for (row, placed) in info.releases.iter().zip(sorted) {
        let folder = folder(files, &sums, &row.path)?;
        releases.push(Release {
            id: row.name.clone(),
            component: row.component.clone(),
            namespace: row.namespace.clone(),
            source: release::source(&row.name, &folder)?,
            values: release::values(&row.name, &folder)?,
            depends_on: placed.depends_on,
            readiness_gate: placed.readiness_gate,
        });
    }
    Ok(Bundle { version: info.version, releases, recipe, recipe_bytes: recipe_bytes.to_vec() })
}

/// A file that the checksums cover.
fn checked<'a>(files: &'a Files, sums: &checksums::Covered, path: &str) -> Result<&'a [u8], ReadError> {
    let Some(content) = files.get(path) else {
        return Err(ReadError::damaged(WHAT, format!("it has no {}", quoted(path))));
    };
    sums.require(path)?;
    Ok(content)
}

/// The files of one release's folder, by their path below it.
fn folder<'a>(
    files: &'a Files,
    sums: &checksums::Covered,
    path: &str,
) -> Result<BTreeMap<&'a str, &'a [u8]>, ReadError> {
    let prefix = format!("{path}/");
    let mut found = BTreeMap::new();
    for (path, content) in files.range(prefix.clone()..) {
        let Some(below) = path.strip_prefix(&prefix) else { break };
        sums.require(path)?;
        found.insert(below, content.as_slice());
    }
    Ok(found)
}
