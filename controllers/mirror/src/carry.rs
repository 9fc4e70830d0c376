//! Charts on their way below our prefix: upstream ones byte for byte, local ones as archives of our own making.

use std::collections::{BTreeMap, btree_map::Entry};

use aicr_crds::{
    Digest,
    plan::{Archive, ChartContent, Plan},
    reason::Reason,
};
use aicr_read::{
    ReadError,
    bundle::{Release, Source},
    chart::{self, Chart},
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    artifact::{self, Artifact, Descriptor, Manifest},
    checks::Wanted,
    error::MirrorError,
    failure::MirrorFailure,
    registry::{At, Place, Registry},
};

/// How many charts are carried at the same time; each holds at most [`chart::PACKED_LIMIT`] and little more.
const AT_ONCE: usize = 4;
/// The largest blob of a chart beside its archive, in bytes.
const SMALL_BLOB: u64 = 1 << 20;
/// The longest name of a CRD in a rollout, in bytes.
const CRD_NAME_LIMIT: usize = 253;

/// What is in the registry once a chart was carried: its identity, and its archive but for the release's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) chart: ChartContent,
    version: String,
    digest: Digest,
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
    // All transfers live in this one task: while one chart is unpacked, no other is.
    let transfers: Vec<_> = distinct.into_iter().map(|one| carry(registry, one, active)).collect();
    let carried: Vec<Carried> = stream::iter(transfers).buffered(AT_ONCE).try_collect().await?;
    Ok(places.into_iter().filter_map(|place| carried.get(place).cloned()).collect())
}

async fn carry(registry: &Registry, wanted: Wanted<'_>, active: Option<&Plan>) -> Result<Carried, MirrorFailure> {
    match wanted {
        Wanted::Upstream { reference, version } => upstream(registry, reference, version, active).await,
        Wanted::Local(release) => match &release.source {
            Source::Local { name, version, files } => local(registry, release, (name, version, files), active).await,
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

async fn upstream(
    registry: &Registry,
    reference: &str,
    version: &str,
    active: Option<&Plan>,
) -> Result<Carried, MirrorFailure> {
    let place = Place::parse(reference).ok_or_else(|| unsupported(reference, "it is no host/repository"))?;
    let tag = artifact::tag(version);
    let found = registry.digest(&place, At::Tag(&tag)).await.map_err(|error| MirrorFailure::of_source(&error))?;
    let content = found.ok_or_else(|| unsupported(reference, &format!("it has no version {version}")))?;
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let chart = ChartContent { repository: format!("charts/{name}"), content };
    if let Some(kept) = kept(registry, &chart, active).await? {
        return Ok(kept);
    }
    let target = registry.place(&chart.repository);
    let there = registry.holds(&target, &tag, content).await.map_err(|error| MirrorFailure::of_mirror(&error))?;
    let side = if there {
        Side { registry, place: &target, failed: MirrorFailure::of_mirror }
    } else {
        Side { registry, place: &place, failed: MirrorFailure::of_source }
    };
    let pulled = side.chart(content).await?;
    let crds = crds(&side.read(content, &pulled.archive)?);
    if !there {
        let artifact = side.artifact(pulled).await?;
        registry.push(&target, &tag, artifact).await.map_err(|error| MirrorFailure::of_mirror(&error))?;
    }
    Ok(Carried { chart, version: version.to_owned(), digest: content, crds })
}

/// Where a chart is read from, and what a failure there means.
struct Side<'a> {
    registry: &'a Registry,
    place: &'a Place,
    failed: fn(&MirrorError) -> MirrorFailure,
}

/// A chart as it was pulled.
struct Pulled {
    manifest: Vec<u8>,
    layout: Manifest,
    archive_digest: Digest,
    archive: Vec<u8>,
}

impl Side<'_> {
    async fn chart(&self, content: Digest) -> Result<Pulled, MirrorFailure> {
        let at = At::Digest(content);
        let manifest = self.registry.manifest(self.place, at).await.map_err(|error| (self.failed)(&error))?;
        let damaged = |problem: String| unsupported(&self.place.named(at), &problem);
        let layout = Manifest::parse(&manifest).map_err(damaged)?;
        let descriptor = layout.chart().map_err(damaged)?;
        let archive_digest = descriptor.digest;
        let archive = self.blob(descriptor, chart::PACKED_LIMIT as u64).await?;
        Ok(Pulled { manifest, layout, archive_digest, archive })
    }

    /// Refuses by the stated size before anything is pulled, and by the true one while it is.
    async fn blob(&self, of: &Descriptor, limit: u64) -> Result<Vec<u8>, MirrorFailure> {
        if of.size > limit {
            let what = format!("pull {}", self.place.named(At::Digest(of.digest)));
            return Err((self.failed)(&MirrorError::TooLarge { what, limit }));
        }
        self.registry.blob(self.place, of.digest, limit).await.map_err(|error| (self.failed)(&error))
    }

    fn read(&self, content: Digest, archive: &[u8]) -> Result<Chart, MirrorFailure> {
        let named = self.place.named(At::Digest(content));
        chart::read(archive).map_err(|error| match error {
            ReadError::TooLarge { .. } => MirrorFailure::stalled(Reason::ContentTooLarge, format!("{named}: {error}")),
            ReadError::Unsupported { .. } | ReadError::Damaged { .. } => unsupported(&named, &error.to_string()),
        })
    }

    /// The manifest as it is, with everything that it names.
    async fn artifact(&self, pulled: Pulled) -> Result<Artifact, MirrorFailure> {
        let mut blobs = BTreeMap::from([(pulled.archive_digest, pulled.archive)]);
        for of in pulled.layout.blobs() {
            if let Entry::Vacant(place) = blobs.entry(of.digest) {
                place.insert(self.blob(of, SMALL_BLOB).await?);
            }
        }
        Ok(Artifact::carried(pulled.manifest, blobs.into_iter().collect()))
    }
}

/// A local chart's archive. Argo CD is pointed at its digest; the tag only keeps it from being collected as garbage,
/// and carries that digest, since other values of the same AICR version render other content.
async fn local(
    registry: &Registry,
    release: &Release,
    (name, version, files): (&str, &str, &BTreeMap<String, Vec<u8>>),
    active: Option<&Plan>,
) -> Result<Carried, MirrorFailure> {
    let chart = ChartContent { repository: format!("wrappers/{}", release.id), content: chart::local_content(files)? };
    if let Some(kept) = kept(registry, &chart, active).await? {
        return Ok(kept);
    }
    let archive = chart::local_archive(name, files)?;
    if archive.len() > chart::PACKED_LIMIT {
        let (size, limit) = (archive.len(), chart::PACKED_LIMIT);
        let message =
            format!("the chart of release {} has {size} bytes packed; at most {limit} are carried", release.id);
        return Err(MirrorFailure::stalled(Reason::ContentTooLarge, message));
    }
    let crds = crds(&chart::read(&archive)?);
    let metadata = files.get("Chart.yaml").map(Vec::as_slice).unwrap_or_default();
    let artifact = Artifact::chart(metadata, archive)?;
    let digest = artifact.digest();
    let (target, tag) = (registry.place(&chart.repository), format!("{}-{}", artifact::tag(version), digest.short()));
    let failed = |error: MirrorError| MirrorFailure::of_mirror(&error);
    if !registry.holds(&target, &tag, digest).await.map_err(failed)? {
        registry.push(&target, &tag, artifact).await.map_err(failed)?;
    }
    Ok(Carried { chart, version: version.to_owned(), digest, crds })
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
            crds: set(&["z.example.com", "a.example.com"]),
            unnamed_crds: set(&["templates/b.yaml", &"x".repeat(400)]),
        };
        let found = crds(&chart);
        assert_eq!(found[..2], ["a.example.com", "unnamed in templates/b.yaml"]);
        assert!(found.iter().all(|name| name.len() <= CRD_NAME_LIMIT), "{found:?}");
        assert_eq!(found.len(), 4);
    }
}
