//! Charts that the bundle itself holds: packed by us, so that the same files are the same archive.

use std::collections::BTreeMap;

use aicr_crds::{
    plan::{ChartContent, Plan},
    reason::Reason,
};
use aicr_read::{bundle::Release, chart};

use super::{Carried, crds, kept};
use crate::{
    artifact::{self, Artifact},
    error::MirrorError,
    failure::MirrorFailure,
    registry::Registry,
};

/// A local chart's archive. Argo CD is pointed at its digest; the tag only keeps it from being collected as garbage,
/// and carries that digest, since other values of the same AICR version render other content.
pub(super) async fn carry(
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
