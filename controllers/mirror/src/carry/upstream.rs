//! Charts of OCI registries: carried byte for byte, manifest included.

use std::collections::{BTreeMap, btree_map::Entry};

use aicr_crds::{
    Digest,
    plan::{ChartContent, Plan},
};
use aicr_read::chart::{self, Chart};

use super::{Carried, crds, kept, unreadable, unsupported};
use crate::{
    artifact::{self, Artifact, Descriptor, Manifest},
    error::MirrorError,
    failure::MirrorFailure,
    place::{At, Place},
    registry::Registry,
};

/// The largest blob of a chart beside its archive, in bytes.
const SMALL_BLOB: u64 = 1 << 20;

/// Brings one chart of an OCI registry below our prefix; its digest there is its digest at the source.
pub(super) async fn carry(
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

    async fn blob(&self, of: &Descriptor, limit: u64) -> Result<Vec<u8>, MirrorFailure> {
        self.registry.blob(self.place, of, limit).await.map_err(|error| (self.failed)(&error))
    }

    fn read(&self, content: Digest, archive: &[u8]) -> Result<Chart, MirrorFailure> {
        chart::read(archive).map_err(|error| unreadable(&self.place.named(At::Digest(content)), &error))
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
