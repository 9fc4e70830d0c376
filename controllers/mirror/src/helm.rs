//! HTTPS Helm repositories: their indexes, and the archives that these lead to.

use std::collections::{BTreeMap, BTreeSet};

use aicr_crds::{Digest, reason::Reason};
use aicr_read::{
    ReadError, chart,
    index::{self, Entry, Index},
};
use reqwest::{
    Method, Url,
    header::{AUTHORIZATION, HeaderMap},
};

use crate::{
    checks::Wanted,
    distribution::basic,
    error::{MISMATCH, MirrorError},
    failure::MirrorFailure,
    registry::Registry,
    web::host_of,
};

/// A chart of a Helm repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HelmChart<'a> {
    /// Its name.
    pub(crate) chart: &'a str,
    /// The repository's address: https, without user part, query and fragment.
    pub(crate) repo: &'a str,
    /// One exact version.
    pub(crate) version: &'a str,
}

/// What the indexes of all repositories say of the charts that are wanted.
pub(crate) struct Indexes<'a>(BTreeMap<&'a str, Index>);

/// Reads the index of each repository once, one after the other: each may be large.
///
/// # Errors
/// The first that cannot be had or read.
pub(crate) async fn indexes<'a>(registry: &Registry, wanted: &[Wanted<'a>]) -> Result<Indexes<'a>, MirrorFailure> {
    let mut charts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in wanted {
        if let Wanted::Helm(HelmChart { chart, repo, .. }) = one {
            charts.entry(repo).or_default().insert(chart);
        }
    }
    let mut all = BTreeMap::new();
    for (repo, charts) in charts {
        let what = format!("pull {}/index.yaml", repo.trim_end_matches('/'));
        let bytes = get(registry, &what, address(repo, "index.yaml"), index::LIMIT as u64).await;
        let bytes = bytes.map_err(|error| MirrorFailure::of_source(&error))?;
        let index = parse(bytes, &charts).await.map_err(|error| of_index(repo, &error))?;
        all.insert(repo, index);
    }
    Ok(Indexes(all))
}

/// Away from the tasks that wait for nobody: a large index takes a second or two.
async fn parse(bytes: Vec<u8>, charts: &BTreeSet<&str>) -> Result<Index, ReadError> {
    let charts: Vec<String> = charts.iter().map(|chart| (*chart).to_owned()).collect();
    let read = move || index::read(&bytes, &charts.iter().map(String::as_str).collect());
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| {
        Err(ReadError::Damaged {
            what: "the repository index".to_owned(),
            problem: "reading it was given up".to_owned(),
        })
    })
}

impl Indexes<'_> {
    /// What the index says of one chart.
    pub(crate) fn entry(&self, of: HelmChart<'_>) -> Result<Entry, MirrorFailure> {
        let found = self.0.get(of.repo).map(|index| index.entry(of.chart, of.version)).transpose();
        let entry = found.map_err(|error| of_index(of.repo, &error))?.flatten();
        entry.ok_or_else(|| {
            let message = format!("chart {}: the repository has no such version", of.named());
            MirrorFailure::stalled(Reason::ChartSourceUnsupported, message)
        })
    }
}

impl HelmChart<'_> {
    /// How messages name it.
    pub(crate) fn named(&self) -> String {
        format!("{} {} of {}", self.chart, self.version, self.repo)
    }

    /// The archive that the index leads to, at most 16 MiB, verified against the index's digest.
    pub(crate) async fn archive(&self, registry: &Registry, entry: &Entry) -> Result<Vec<u8>, MirrorError> {
        let what = format!("pull chart {}", self.named());
        let bytes = get(registry, &what, address(self.repo, &entry.url), chart::PACKED_LIMIT as u64).await?;
        if Digest::of(&bytes) == entry.digest {
            return Ok(bytes);
        }
        Err(MirrorError::Damaged { what, problem: MISMATCH.to_owned() })
    }
}

/// An address as an index writes it: absolute, or below the repository's own.
fn address(repo: &str, url: &str) -> Option<Url> {
    Url::parse(&format!("{}/", repo.trim_end_matches('/'))).ok()?.join(url).ok()
}

/// The content at an address, with the credentials of its host.
async fn get(registry: &Registry, what: &str, url: Option<Url>, limit: u64) -> Result<Vec<u8>, MirrorError> {
    let Some(url) = url else {
        return Err(MirrorError::Refused { what: what.to_owned(), cause: "its address is none".to_owned() });
    };
    let source = &registry.sources;
    let mut headers = HeaderMap::new();
    let login = host_of(&url).and_then(|host| basic(&source.auth.auth(&host)));
    headers.extend(login.map(|login| (AUTHORIZATION, login)));
    let pull = async {
        let answer = source.web.send(what, Method::GET, url, headers).await?;
        if !answer.status().is_success() {
            return Err(MirrorError::of_status(what, answer.status().as_u16()));
        }
        source.web.body(what, answer, limit).await
    };
    source.web.within(what, pull).await
}

fn of_index(repo: &str, error: &ReadError) -> MirrorFailure {
    let reason = match error {
        ReadError::TooLarge { .. } => Reason::ContentTooLarge,
        ReadError::Unsupported { .. } | ReadError::Damaged { .. } => Reason::ChartSourceUnsupported,
    };
    MirrorFailure::stalled(reason, format!("{repo}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::relative("https://x.example.com/a", "charts/b.tgz", "https://x.example.com/a/charts/b.tgz")]
    #[case::slash("https://x.example.com/a/", "b.tgz", "https://x.example.com/a/b.tgz")]
    #[case::from_root("https://x.example.com/a", "/b.tgz", "https://x.example.com/b.tgz")]
    #[case::absolute("https://x.example.com/a", "https://y.example.com/b.tgz?c=d", "https://y.example.com/b.tgz?c=d")]
    #[case::climbing("https://x.example.com/a", "../b.tgz", "https://x.example.com/b.tgz")]
    fn an_archive_is_addressed_as_helm_does(#[case] repo: &str, #[case] url: &str, #[case] expected: &str) {
        assert_eq!(address(repo, url).unwrap().as_str(), expected);
    }
}
