//! Helm chart archives: name, version, and the custom resource definitions they own.

mod crds;
mod defaults;
mod local;

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::{
    archive::{self, Files, Limits},
    error::{ReadError, quoted},
    yaml,
};

pub use defaults::default_values;
pub use local::{local_archive, local_content};

/// The largest chart archive, in bytes.
pub const PACKED_LIMIT: usize = 16 << 20;

/// The largest chart, expanded, nested charts included, in bytes.
pub const EXPANDED_LIMIT: u64 = 64 << 20;

/// The most files and folders of one archive.
pub const ENTRY_LIMIT: usize = 20_000;

/// How deep packed charts may nest, in levels.
pub const NESTING_LIMIT: usize = 4;

const WHAT: &str = "the Helm chart";

/// What is known of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// Its name.
    pub name: String,
    /// Its version, exactly as `Chart.yaml` says.
    pub version: String,
    /// The bytes of its `Chart.yaml`.
    pub metadata: Vec<u8>,
    /// The names of the definitions in `crds/` and templates, of nested charts too, whatever switches them on.
    pub crds: BTreeSet<String>,
    /// Files with a definition whose name is only known once rendered.
    pub unnamed_crds: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

/// Name and version from the bytes of a `Chart.yaml`.
pub(crate) fn identity(what: &str, bytes: &[u8]) -> Result<(String, String), ReadError> {
    let Metadata { name, version } = yaml::read(what, bytes, yaml::DOCUMENT_LIMIT)?;
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 250 || !name.chars().all(word) || name.starts_with('.') {
        return Err(ReadError::damaged(what, format!("its name {} is no chart name", quoted(&name))));
    }
    if version.is_empty() || version.len() > 250 {
        return Err(ReadError::damaged(what, format!("its version {} is none", quoted(&version))));
    }
    Ok((name, version))
}

/// Reads a packed chart.
///
/// # Errors
/// `TooLarge` beyond the limits, else `Damaged`.
pub fn read(tgz: &[u8]) -> Result<Chart, ReadError> {
    let mut left = EXPANDED_LIMIT;
    let files = unpack(WHAT, tgz, &mut left)?;
    let Some(metadata) = files.get("Chart.yaml") else {
        return Err(ReadError::damaged(WHAT, "it has no Chart.yaml"));
    };
    let (name, version) = identity(WHAT, metadata)?;
    let metadata = metadata.clone();
    let mut chart = Chart { name, version, metadata, crds: BTreeSet::new(), unnamed_crds: BTreeSet::new() };
    collect(&mut chart, "", files, &mut left, NESTING_LIMIT)?;
    Ok(chart)
}

/// Unpacks below the chart's top folder, and takes the size off what is left.
fn unpack(what: &str, tgz: &[u8], left: &mut u64) -> Result<Files, ReadError> {
    let limits = Limits { packed: PACKED_LIMIT, expanded: *left, entries: ENTRY_LIMIT };
    let mut files = Files::new();
    for (path, content) in archive::unpack(what, tgz, limits)? {
        *left = left.saturating_sub(content.len() as u64);
        let Some((_, below)) = path.split_once('/') else {
            return Err(ReadError::damaged(what, format!("{} stands outside the chart's folder", quoted(&path))));
        };
        if files.insert(below.to_owned(), content).is_some() {
            return Err(ReadError::damaged(what, format!("{} stands in it twice", quoted(below))));
        }
    }
    Ok(files)
}

fn collect(chart: &mut Chart, at: &str, files: Files, left: &mut u64, nesting: usize) -> Result<(), ReadError> {
    for (path, content) in files {
        let full = format!("{at}{path}");
        match place(&path) {
            Place::Definitions | Place::Template => {
                let found = crds::scan(&path, &content);
                chart.crds.extend(found.names);
                if found.unnamed {
                    chart.unnamed_crds.insert(full);
                }
            }
            Place::PackedChart => {
                let what = format!("the nested chart {}", quoted(&full));
                let Some(nesting) = nesting.checked_sub(1) else {
                    return Err(ReadError::damaged(what, format!("charts nest deeper than {NESTING_LIMIT} levels")));
                };
                let nested = unpack(&what, &content, left)?;
                collect(chart, &format!("{full}/"), nested, left, nesting)?;
            }
            Place::Other => {}
        }
    }
    Ok(())
}

/// What Helm takes a file of a chart for.
enum Place {
    Definitions,
    Template,
    PackedChart,
    Other,
}

fn place(path: &str) -> Place {
    let mut path = path;
    // Nested charts may lie unpacked below `charts/<name>/`.
    while let Some((_, below)) = path.strip_prefix("charts/").and_then(|rest| rest.split_once('/')) {
        path = below;
    }
    if path.starts_with("crds/") {
        Place::Definitions
    } else if path.starts_with("templates/") {
        Place::Template
    } else if path.starts_with("charts/") && has_extension(path, "tgz") {
        Place::PackedChart
    } else {
        Place::Other
    }
}

pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, found)| found.eq_ignore_ascii_case(extension))
}

/// Whether the text is one version and no range: semantic, a leading `v` allowed.
pub fn version_is_exact(text: &str) -> bool {
    semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{pack, tests::tgz};
    use rstest::rstest;
    use tar::EntryType;

    fn files(rows: &[(&str, &str)]) -> Files {
        rows.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    }

    fn crd(name: &str) -> String {
        format!("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {name}\n")
    }

    const META: &str = "apiVersion: v2\nname: operator\nversion: 1.10.0\n";

    #[test]
    fn definitions_are_found_in_every_place_helm_looks_at() {
        let nested =
            pack("n", "deep", &files(&[("Chart.yaml", META), ("crds/c.yaml", &crd("c.example.com"))])).unwrap();
        let mut all = files(&[
            ("Chart.yaml", META),
            ("crds/z.yaml", &crd("z.example.com")),
            ("templates/sub/a.yaml", &crd("a.example.com")),
            ("templates/b.yaml", &crd("{{ .Values.name }}")),
            ("charts/flat/crds/b.yaml", &crd("b.example.com")),
            ("charts/flat/charts/flatter/templates/d.yaml", &crd("d.example.com")),
            ("files/x.yaml", &crd("x.example.com")),
            ("README.md", "kind: CustomResourceDefinition"),
        ]);
        all.insert("charts/deep-1.0.0.tgz".to_owned(), nested);
        let chart = read(&pack("c", "operator", &all).unwrap()).unwrap();
        assert_eq!((chart.name.as_str(), chart.version.as_str()), ("operator", "1.10.0"));
        let names: Vec<_> = chart.crds.iter().map(String::as_str).collect();
        assert_eq!(names, ["a.example.com", "b.example.com", "c.example.com", "d.example.com", "z.example.com"]);
        assert_eq!(chart.unnamed_crds, BTreeSet::from(["templates/b.yaml".to_owned()]));
    }

    #[rstest]
    #[case::no_metadata(&[("templates/a.yaml", "a: 1")])]
    #[case::metadata_cut(&[("Chart.yaml", "name: a\nversion:")])]
    #[case::name_with_a_slash(&[("Chart.yaml", "name: a/b\nversion: 1.0.0")])]
    #[case::no_name(&[("Chart.yaml", "name: ''\nversion: 1.0.0")])]
    #[case::two_documents(&[("Chart.yaml", "name: a\nversion: 1.0.0\n---\nname: b\n")])]
    #[case::damaged_nested(&[("Chart.yaml", META), ("charts/a.tgz", "no archive")])]
    fn a_damaged_chart_is_refused(#[case] rows: &[(&str, &str)]) {
        let packed = pack("c", "operator", &files(rows)).unwrap();
        assert!(matches!(read(&packed), Err(ReadError::Damaged { .. })));
    }

    #[test]
    fn a_file_outside_the_folder_or_given_twice_is_refused() {
        let meta = META.as_bytes();
        let outside = tgz(&[("a/Chart.yaml", EntryType::Regular, meta), ("b", EntryType::Regular, b"")]);
        assert!(read(&outside).unwrap_err().to_string().contains("outside"));
        let twice = tgz(&[("a/Chart.yaml", EntryType::Regular, meta), ("b/Chart.yaml", EntryType::Regular, meta)]);
        assert!(read(&twice).unwrap_err().to_string().contains("twice"));
        assert!(read(&tgz(&[("a/Chart.yaml", EntryType::Symlink, b"")])).is_err());
    }

    #[test]
    fn nesting_and_size_are_bounded_over_all_levels() {
        let mut packed = pack("c", "x", &files(&[("Chart.yaml", META)])).unwrap();
        for level in 0..=NESTING_LIMIT {
            assert!(read(&packed).is_ok(), "level {level}");
            let mut outer = files(&[("Chart.yaml", META)]);
            outer.insert("charts/x.tgz".to_owned(), packed);
            packed = pack("c", "x", &outer).unwrap();
        }
        assert!(read(&packed).unwrap_err().to_string().contains("deeper"));
        let mut large = files(&[("Chart.yaml", META)]);
        large.insert("big".to_owned(), vec![0; 40 << 20]);
        let part = pack("c", "x", &large).unwrap();
        assert!(read(&part).is_ok());
        large.insert("charts/x.tgz".to_owned(), part);
        assert!(matches!(read(&pack("c", "x", &large).unwrap()), Err(ReadError::TooLarge { .. })));
    }

    #[test]
    fn only_a_whole_version_is_exact() {
        for exact in ["1.2.3", "v1.2.3", "0.0.0-dev", "1.2.3-rc.1+build.5"] {
            assert!(version_is_exact(exact), "{exact}");
        }
        for range in
            ["", "v", "1", "1.2", "1.2.x", ">=1", "~1.2.3", "^1.2.3", "latest", "*", "1.2.3 - 2", "vv1.2.3", " 1.2.3"]
        {
            assert!(!version_is_exact(range), "{range}");
        }
    }
}
