//! The index of a Helm chart repository: which archive a chart's version is, and what its digest must be.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use aicr_crds::Digest;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::{
    error::{ReadError, quoted},
    yaml,
};

/// The largest index that is read, in bytes; those of large public repositories have some 20 MiB.
pub const LIMIT: usize = 32 << 20;

/// The most versions of one chart.
const ROW_LIMIT: usize = 20_000;

/// The longest address of an archive, in bytes.
const URL_LIMIT: usize = 2048;

/// The most YAML nodes: a row of a real index has about 40.
const NODE_LIMIT: usize = 2_000_000;

const WHAT: &str = "the repository index";

/// The rows of the charts that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    charts: BTreeMap<String, Vec<Row>>,
}

/// One version of a chart that can be fetched and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The version as the index writes it.
    pub version: String,
    /// The digest of the archive.
    pub digest: Digest,
    /// Its address, as the index writes it: absolute or relative to the repository; at most 2048 bytes.
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Row {
    version: Option<String>,
    digest: Option<String>,
    urls: Option<Vec<String>>,
}

/// Reads an index of at most [`LIMIT`] bytes and keeps the rows of these charts.
///
/// # Errors
/// `TooLarge`, `Unsupported` for another apiVersion, else `Damaged`: also for a chart or key given twice.
pub fn read(bytes: &[u8], wanted: &BTreeSet<&str>) -> Result<Index, ReadError> {
    let text = yaml::text(WHAT, bytes, LIMIT)?;
    let (version, charts) =
        yaml::seeded(text, NODE_LIMIT, Top { wanted }).map_err(|problem| ReadError::damaged(WHAT, problem))?;
    match version.as_deref() {
        Some("v1") => {}
        Some(other) => return Err(ReadError::unsupported(WHAT, quoted(other), "apiVersion v1")),
        None => return Err(ReadError::damaged(WHAT, "it has no apiVersion")),
    }
    let charts = charts.ok_or_else(|| ReadError::damaged(WHAT, "it has no entries"))?;
    Ok(Index { charts })
}

impl Index {
    /// The entry of one version: written so, or else with or without a leading `v`. `None` where there is none.
    ///
    /// # Errors
    /// `Unsupported` without a digest, since nothing could be checked; `Damaged` where two rows of that version name
    /// different content, or the row has no address.
    pub fn entry(&self, chart: &str, version: &str) -> Result<Option<Entry>, ReadError> {
        let what = || format!("{chart} {version} in {WHAT}");
        let rows = self.charts.get(chart).map(Vec::as_slice).unwrap_or_default();
        let bare = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
        let exact: Vec<&Row> = rows.iter().filter(|row| row.version.as_deref() == Some(version)).collect();
        let alike = |row: &&Row| row.version.as_deref().is_some_and(|found| bare(found) == bare(version));
        let found = if exact.is_empty() { rows.iter().filter(alike).collect() } else { exact };
        let Some(first) = found.first() else { return Ok(None) };
        let digests = found.iter().map(|row| row.digest(&what())).collect::<Result<BTreeSet<_>, _>>()?;
        let (Some(digest), 1) = (digests.first(), digests.len()) else {
            return Err(ReadError::damaged(what(), "it stands there more than once, with different digests"));
        };
        let url = first.urls.iter().flatten().find(|url| !url.is_empty());
        let Some(url) = url.filter(|url| url.len() <= URL_LIMIT) else {
            return Err(ReadError::damaged(what(), format!("it has no address of at most {URL_LIMIT} bytes")));
        };
        let version = first.version.clone().unwrap_or_default();
        Ok(Some(Entry { version, digest: *digest, url: url.clone() }))
    }
}

impl Row {
    /// Helm writes 64 hex digits, some tools with the algorithm in front.
    fn digest(&self, what: &str) -> Result<Digest, ReadError> {
        let Some(text) = self.digest.as_deref().filter(|text| !text.is_empty()) else {
            return Err(ReadError::unsupported(what, "no digest", "entries with the archive's sha256"));
        };
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        format!("sha256:{hex}")
            .parse()
            .map_err(|_| ReadError::damaged(what, format!("its digest {} is no sha256", quoted(text))))
    }
}

type Charts = BTreeMap<String, Vec<Row>>;

/// The document; only what is wanted is kept while it is read.
struct Top<'a> {
    wanted: &'a BTreeSet<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = (Option<String>, Option<Charts>);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = (Option<String>, Option<Charts>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a repository index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut version, mut charts) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "apiVersion" => version = map.next_value()?,
                "entries" => charts = Some(map.next_value_seed(Entries { wanted: self.wanted })?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok((version, charts))
    }
}

struct Entries<'a> {
    wanted: &'a BTreeSet<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = Charts;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Charts, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Charts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("charts by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Charts, A::Error> {
        let mut charts = Charts::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.wanted.contains(key.as_str()) {
                let rows = map.next_value::<Option<Rows>>()?.unwrap_or_default();
                charts.insert(key, rows.0);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(charts)
    }
}

/// The versions of one chart, at most [`ROW_LIMIT`].
#[derive(Default)]
struct Rows(Vec<Row>);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(RowsVisitor)
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the versions of a chart")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Rows, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = sequence.next_element::<Option<Row>>()? {
            if rows.len() == ROW_LIMIT {
                return Err(A::Error::custom(format!("a chart has more than {ROW_LIMIT} versions")));
            }
            rows.extend(row);
        }
        Ok(Rows(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";

    fn good() -> String {
        format!(
            "apiVersion: v1\nentries:\n  cert-manager:\n  - {{version: v1.20.2, digest: {ONE}, urls: [charts/a.tgz]}}\n  \
             - {{version: 1.10, digest: \"sha256:{TWO}\", urls: [\"https://x.example.com/b.tgz\"]}}\n  - null\n  \
             other:\n  - nonsense: [1, 2]\n  gone: null\ngenerated: now\n"
        )
    }

    fn parse(text: &str) -> Result<Index, ReadError> {
        read(text.as_bytes(), &BTreeSet::from(["cert-manager", "gone"]))
    }

    fn entry(text: &str, version: &str) -> Result<Option<Entry>, ReadError> {
        parse(text)?.entry("cert-manager", version)
    }

    #[rstest]
    #[case::as_written("v1.20.2", Some("charts/a.tgz"))]
    #[case::without_v("1.20.2", Some("charts/a.tgz"))]
    #[case::text_of_a_number("1.10", Some("https://x.example.com/b.tgz"))]
    #[case::with_v("v1.10", Some("https://x.example.com/b.tgz"))]
    #[case::other("1.1", None)]
    fn a_version_is_found_with_or_without_its_v(#[case] version: &str, #[case] url: Option<&str>) {
        assert_eq!(entry(&good(), version).unwrap().map(|entry| entry.url).as_deref(), url);
        assert_eq!(parse(&good()).unwrap().entry("gone", version), Ok(None));
        assert_eq!(parse(&good()).unwrap().entry("other", version), Ok(None), "it was not asked for");
    }

    #[test]
    fn the_same_row_twice_is_one_and_other_content_is_refused() {
        let twice = |digest: &str| {
            good().replace("  - null\n", &format!("  - {{version: v1.20.2, digest: {digest}, urls: [c]}}\n"))
        };
        assert_eq!(entry(&twice(ONE), "v1.20.2").unwrap().unwrap().url, "charts/a.tgz");
        let error = entry(&twice(TWO), "v1.20.2").unwrap_err().to_string();
        assert!(error.contains("different digests"), "{error}");
        // Written exactly so is one row, whatever the other with the same number is.
        let v_less = twice(TWO).replace("{version: v1.20.2, digest: 2", "{version: 1.20.2, digest: 2");
        assert!(entry(&v_less, "1.20.2").is_ok_and(|found| found.is_some_and(|entry| entry.url == "c")));
    }

    #[rstest]
    #[case::no_digest(&good().replace(&format!("digest: {ONE}, "), ""), "no digest")]
    #[case::empty_digest(&good().replace(ONE, "''"), "no digest")]
    #[case::short_digest(&good().replace(ONE, "11"), "no sha256")]
    #[case::sha512(&good().replace(ONE, &format!("\"sha512:{ONE}\"")), "no sha256")]
    #[case::no_urls(&good().replace(", urls: [charts/a.tgz]", ""), "no address")]
    #[case::empty_urls(&good().replace("[charts/a.tgz]", "['']"), "no address")]
    #[case::long_url(&good().replace("charts/a.tgz", &"x".repeat(URL_LIMIT + 1)), "no address")]
    fn a_row_that_cannot_be_fetched_and_checked_says_why(#[case] text: &str, #[case] said: &str) {
        let error = entry(text, "v1.20.2").unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(entry(text, "1.10").unwrap().is_some(), "the other rows are not touched");
    }

    #[rstest]
    #[case::empty("")]
    #[case::page("<!DOCTYPE html><html><body>Sign in</body></html>")]
    #[case::no_version(&good().replace("apiVersion: v1\n", ""))]
    #[case::no_entries("apiVersion: v1\n")]
    #[case::entries_is_a_list("apiVersion: v1\nentries: [cert-manager]\n")]
    #[case::chart_twice(&good().replace("other:", "cert-manager:"))]
    #[case::unwanted_chart_twice(&good().replace("gone:", "other:"))]
    #[case::entries_twice(&good().replace("generated: now", "entries: {}"))]
    #[case::version_is_a_map(&good().replace("version: v1.20.2", "version: {a: b}"))]
    #[case::two_documents(&format!("{}---\n{}", good(), good()))]
    #[case::cut(&good()[..120])]
    fn what_is_no_index_is_damaged(#[case] text: &str) {
        assert!(matches!(parse(text), Err(ReadError::Damaged { .. })), "{text}");
    }

    #[test]
    fn another_api_version_is_unsupported() {
        let text = good().replace("apiVersion: v1", "apiVersion: v2");
        assert!(matches!(parse(&text), Err(ReadError::Unsupported { .. })));
    }

    #[test]
    fn a_large_index_is_read_and_size_and_rows_are_bounded() {
        let row = format!("  - {{version: 1.2.3, digest: {ONE}, urls: [a], keywords: [a, b, c]}}\n");
        let large = good().replace("  other:\n", &format!("  other:\n{}", row.repeat(60_000)));
        assert!(large.len() > 5 << 20);
        assert!(entry(&large, "1.10").unwrap().is_some());
        let many = good().replace("  - null\n", &row.repeat(ROW_LIMIT));
        assert!(parse(&many).unwrap_err().to_string().contains("more than 20000 versions"));
        let huge = format!("{}# {}", good(), "x".repeat(LIMIT));
        assert!(matches!(parse(&huge), Err(ReadError::TooLarge { .. })));
    }
}
