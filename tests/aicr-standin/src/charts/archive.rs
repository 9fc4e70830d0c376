//! Chart archives and their OCI form.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use serde_json::json;
use tar::{Builder, EntryType, Header};

use super::Chart;
use crate::oci::{self, Artifact};

/// The archive of a chart: sorted, without times and owners.
pub(super) fn tgz(name: &str, files: &BTreeMap<String, String>) -> std::io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, format!("{name}/{path}"), content.as_bytes())?;
    }
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::default());
    encoder.write_all(&builder.into_inner()?)?;
    encoder.finish()
}

/// The chart as Helm stores it in a registry.
pub(super) fn artifact(chart: &Chart) -> Artifact {
    let config = chart.metadata.clone().into_bytes();
    let manifest = oci::manifest(&json!({
        "config": oci::descriptor("application/vnd.cncf.helm.config.v1+json", &config),
        "layers": [oci::descriptor("application/vnd.cncf.helm.chart.content.v1.tar+gzip", &chart.archive)],
        "annotations": {
            "org.opencontainers.image.title": chart.name,
            "org.opencontainers.image.version": chart.version,
        },
    }));
    Artifact { manifest, blobs: vec![config, chart.archive.clone()] }
}
