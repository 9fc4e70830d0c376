//! Charts of HTTPS Helm repositories: the archive byte for byte, as the chart of an OCI registry.

use aicr_crds::{
    Digest,
    plan::{ChartContent, Plan},
};
use aicr_read::{chart, index::Entry};

use super::{Carried, crds, kept, unreadable, unsupported};
use crate::{
    artifact::{self, Artifact, Descriptor, Manifest},
    error::MirrorError,
    failure::MirrorFailure,
    helm::{HelmChart, Indexes},
    place::{At, Place},
    registry::Registry,
};

/// Brings one chart below our prefix, unless its tag holds that archive already.
pub(super) async fn carry(
    registry: &Registry,
    indexes: &Indexes<'_>,
    wanted: HelmChart<'_>,
    active: Option<&Plan>,
) -> Result<Carried, MirrorFailure> {
    let entry = indexes.entry(wanted)?;
    let repository = format!("charts/{}", wanted.chart);
    let (target, tag) = (registry.place(&repository), artifact::tag(&entry.version));
    let failed = |error: MirrorError| MirrorFailure::of_mirror(&error);
    let held = held(registry, &target, &tag, entry.digest).await.map_err(failed)?;
    let Some(Held { content, archive }) = held else {
        return fetch(registry, wanted, &entry, (repository, &target, &tag)).await;
    };
    let chart = ChartContent { repository, content };
    if let Some(kept) = kept(registry, &chart, active).await? {
        return Ok(kept);
    }
    let bytes = registry.blob(&target, &archive, chart::PACKED_LIMIT as u64).await.map_err(failed)?;
    let read = chart::read(&bytes).map_err(|error| unreadable(&target.named(At::Digest(content)), &error))?;
    Ok(Carried { chart, version: entry.version, digest: content, crds: crds(&read) })
}

/// What a tag of ours holds.
struct Held {
    content: Digest,
    archive: Descriptor,
}

/// The tag's content, where it is this archive; a conflict where it is another.
async fn held(registry: &Registry, target: &Place, tag: &str, wanted: Digest) -> Result<Option<Held>, MirrorError> {
    let Some(content) = registry.digest(target, At::Tag(tag)).await? else { return Ok(None) };
    let manifest = registry.manifest(target, At::Digest(content)).await?;
    let archive = Manifest::parse(&manifest).and_then(|manifest| manifest.chart().cloned());
    match archive {
        Ok(archive) if archive.digest == wanted => Ok(Some(Held { content, archive })),
        other => {
            let found = other.map_or(content, |archive| archive.digest);
            Err(MirrorError::Conflict { place: target.named(At::Tag(tag)), found, wanted })
        }
    }
}

async fn fetch(
    registry: &Registry,
    wanted: HelmChart<'_>,
    entry: &Entry,
    (repository, target, tag): (String, &Place, &str),
) -> Result<Carried, MirrorFailure> {
    let archive = wanted.archive(registry, entry).await.map_err(|error| MirrorFailure::of_source(&error))?;
    let read = chart::read(&archive).map_err(|error| unreadable(&wanted.named(), &error))?;
    if read.name != wanted.chart || read.version != entry.version {
        let problem = format!("the index leads to {} {} instead", read.name, read.version);
        return Err(unsupported(&wanted.named(), &problem));
    }
    let artifact = Artifact::chart(&read.metadata, archive).map_err(|error| unreadable(&wanted.named(), &error))?;
    let content = artifact.digest();
    registry.push(target, tag, artifact).await.map_err(|error| MirrorFailure::of_mirror(&error))?;
    let chart = ChartContent { repository, content };
    Ok(Carried { chart, version: entry.version.clone(), digest: content, crds: crds(&read) })
}
