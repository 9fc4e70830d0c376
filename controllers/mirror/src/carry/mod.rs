//! Charts on their way below our prefix: upstream ones byte for byte, local ones as archives of our own making.

mod helm;
mod local;
mod upstream;

use aicr_crds::{
    Digest,
    plan::{Archive, ChartContent, Plan},
    reason::Reason,
};
use aicr_read::{ReadError, bundle::Source, chart::Chart};
use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    checks::Wanted,
    failure::MirrorFailure,
    helm::{Indexes, indexes},
    place::At,
    registry::Registry,
};

/// How many charts are carried at the same time; each holds one packed chart and little more.
const AT_ONCE: usize = 4;
/// The longest name of a CRD in a rollout, in bytes.
const CRD_NAME_LIMIT: usize = 253;

/// What is in the registry once a chart was carried: its identity, and its archive but for the release's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) chart: ChartContent,
    pub(crate) digest: Digest,
    version: String,
    crds: Vec<String>,
}

impl Carried {
    /// The archive as the plan names it for a release.
    pub(crate) fn archive(&self, release: &str) -> Archive {
        Archive { id: release.to_owned(), version: self.version.clone(), digest: self.digest, crds: self.crds.clone() }
    }
}

/// Carries every chart, each once, and answers in the order of what is wanted.
///
/// # Errors
/// The first failure in that order; what was carried until then stays and is not carried again.
pub(crate) async fn all(
    registry: &Registry,
    wanted: &[Wanted<'_>],
    active: Option<&Plan>,
) -> Result<Vec<Carried>, MirrorFailure> {
    let mut distinct: Vec<Wanted<'_>> = Vec::new();
    let mut places = Vec::with_capacity(wanted.len());
    for one in wanted {
        places.push(distinct.iter().position(|other| other == one).unwrap_or(distinct.len()));
        if places.last() == Some(&distinct.len()) {
            distinct.push(*one);
        }
    }
    let indexes = indexes(registry, &distinct).await?;
    // All transfers live in this one task: while one chart is unpacked, no other is.
    let transfers: Vec<_> = distinct.into_iter().map(|one| carry(registry, &indexes, one, active)).collect();
    let carried: Vec<Carried> = stream::iter(transfers).buffered(AT_ONCE).try_collect().await?;
    Ok(places.into_iter().filter_map(|place| carried.get(place).cloned()).collect())
}

async fn carry(
    registry: &Registry,
    indexes: &Indexes<'_>,
    wanted: Wanted<'_>,
    active: Option<&Plan>,
) -> Result<Carried, MirrorFailure> {
    match wanted {
        Wanted::Upstream { reference, version } => upstream::carry(registry, reference, version, active).await,
        Wanted::Helm(chart) => helm::carry(registry, indexes, chart, active).await,
        Wanted::Local(release) => match &release.source {
            Source::Local { name, version, files } => {
                local::carry(registry, release, (name, version, files), active).await
            }
            Source::Upstream { .. } => Err(unsupported(&release.id, "its chart is not in the bundle")),
        },
    }
}

/// The active plan's archive of the same chart, where the registry still holds it.
async fn kept(
    registry: &Registry,
    chart: &ChartContent,
    active: Option<&Plan>,
) -> Result<Option<Carried>, MirrorFailure> {
    let same = active.and_then(|plan| plan.releases().find(|release| release.content.chart == *chart));
    let Some(Archive { version, digest, crds, .. }) = same.map(|release| release.archive) else { return Ok(None) };
    let place = registry.place(&chart.repository);
    let there = registry.digest(&place, At::Digest(*digest)).await.map_err(|error| MirrorFailure::of_mirror(&error))?;
    Ok(there.map(|_| Carried { chart: chart.clone(), version: version.clone(), digest: *digest, crds: crds.clone() }))
}

/// The CRDs by name; one that is named only once rendered stands for itself by its file, so that none goes unseen.
fn crds(chart: &Chart) -> Vec<String> {
    let unnamed = chart.unnamed_crds.iter().map(|path| {
        let end = path.floor_char_boundary(CRD_NAME_LIMIT - "unnamed in ".len());
        format!("unnamed in {}", &path[..end])
    });
    let mut all: Vec<String> = chart.crds.iter().cloned().chain(unnamed).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A chart that cannot be read is one that cannot be mirrored.
fn unreadable(what: &str, error: &ReadError) -> MirrorFailure {
    match error {
        ReadError::TooLarge { .. } => MirrorFailure::stalled(Reason::ContentTooLarge, format!("{what}: {error}")),
        ReadError::Unsupported { .. } | ReadError::Damaged { .. } => unsupported(what, &error.to_string()),
    }
}

fn unsupported(what: &str, problem: &str) -> MirrorFailure {
    MirrorFailure::stalled(Reason::ChartSourceUnsupported, format!("chart {what}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_without_a_name_are_listed_by_their_file() {
        let set = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let chart = Chart {
            name: "a".into(),
            version: "1.0.0".into(),
            metadata: vec![],
            crds: set(&["z.example.com", "a.example.com"]),
            unnamed_crds: set(&["templates/b.yaml", &"x".repeat(400)]),
        };
        let found = crds(&chart);
        assert_eq!(found[..2], ["a.example.com", "unnamed in templates/b.yaml"]);
        assert!(found.iter().all(|name| name.len() <= CRD_NAME_LIMIT), "{found:?}");
        assert_eq!(found.len(), 4);
    }
}
