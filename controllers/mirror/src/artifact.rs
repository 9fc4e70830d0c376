//! OCI manifests: those that are carried unchanged, and the one a local chart gets.

use std::collections::BTreeMap;

use aicr_crds::{Digest, digest::canonical};
use aicr_read::ReadError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The media type of every manifest that is carried or made.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The largest manifest, in bytes.
pub(crate) const MANIFEST_LIMIT: usize = 4 << 20;
/// Media type of a Helm chart's `Chart.yaml` as JSON.
const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media type of a Helm chart's archive.
const HELM_CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// A manifest and the blobs it names.
pub(crate) struct Artifact {
    /// The manifest's bytes, from which its digest comes.
    pub(crate) manifest: Vec<u8>,
    /// Its media type.
    pub(crate) content_type: reqwest::header::HeaderValue,
    /// What it names.
    pub(crate) blobs: Vec<(Digest, Vec<u8>)>,
}

/// What Helm takes of a `Chart.yaml`, and where it takes a plain scalar for text: the chart's configuration is read by
/// Helm and Argo CD without that leniency.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct HelmMetadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<Vec<String>>,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keywords: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintainers: Option<Vec<BTreeMap<String, Option<String>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kube_version: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

/// What is read of a manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// One blob that a manifest names.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

impl Manifest {
    /// Reads an image manifest, no index.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("it is no OCI image manifest (line {}, column {})", error.line(), error.column()))
    }

    /// The one layer that is the chart's archive; what else may be there is its signature.
    pub(crate) fn chart(&self) -> Result<&Descriptor, String> {
        if self.config.media_type != HELM_CONFIG {
            return Err("it is no Helm chart: its configuration is of another type".to_owned());
        }
        let mut charts = self.layers.iter().filter(|layer| layer.media_type == HELM_CHART);
        match (charts.next(), charts.next()) {
            (Some(chart), None) => Ok(chart),
            (None, _) | (Some(_), Some(_)) => Err("it is no Helm chart: it has not one chart archive".to_owned()),
        }
    }

    /// Everything that it names, the configuration first.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        std::iter::once(&self.config).chain(&self.layers)
    }
}

impl Artifact {
    /// A manifest with its blobs, as it was pulled.
    pub(crate) fn carried(manifest: Vec<u8>, blobs: Vec<(Digest, Vec<u8>)>) -> Self {
        Self { manifest, content_type: reqwest::header::HeaderValue::from_static(MANIFEST_TYPE), blobs }
    }

    /// A Helm chart of our own making: the same metadata and archive are the same bytes.
    pub(crate) fn chart(metadata: &[u8], archive: Vec<u8>) -> Result<Self, ReadError> {
        let what = "the chart's Chart.yaml";
        let uncanonical = |error: aicr_crds::digest::CanonicalError| ReadError::Damaged {
            what: what.to_owned(),
            problem: error.to_string(),
        };
        let fields: HelmMetadata = aicr_read::yaml::read(what, metadata, aicr_read::yaml::DOCUMENT_LIMIT)?;
        let config = canonical(&fields).map_err(uncanonical)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor(HELM_CONFIG, &config),
            "layers": [descriptor(HELM_CHART, &archive)],
        });
        let manifest = canonical(&manifest).map_err(uncanonical)?;
        let blobs = [config, archive].map(|bytes| (Digest::of(&bytes), bytes));
        Ok(Self::carried(manifest, blobs.into()))
    }

    /// The digest under which a registry knows it.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": Digest::of(bytes), "size": bytes.len()})
}

/// The tag of a version: a tag knows no `+`.
pub(crate) fn tag(version: &str) -> String {
    version.replace('+', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const METADATA: &[u8] = b"apiVersion: v2\nname: tuning\nversion: 1.1.2\n";

    #[test]
    fn a_chart_of_our_own_is_one_that_helm_would_have_pushed() {
        let artifact = Artifact::chart(METADATA, b"archive".to_vec()).unwrap();
        let manifest = Manifest::parse(&artifact.manifest).unwrap();
        assert_eq!(manifest.chart().unwrap().digest, Digest::of(b"archive"));
        assert_eq!(
            manifest.blobs().map(|blob| blob.digest).collect::<Vec<_>>(),
            [artifact.blobs[0].0, Digest::of(b"archive")]
        );
        let config: Value = serde_json::from_slice(&artifact.blobs[0].1).unwrap();
        assert_eq!(config["version"], "1.1.2");
        assert_eq!(artifact.digest(), Artifact::chart(METADATA, b"archive".to_vec()).unwrap().digest());
        assert_ne!(artifact.digest(), Artifact::chart(METADATA, b"other".to_vec()).unwrap().digest());
    }

    #[test]
    fn the_configuration_is_text_where_helm_reads_text() {
        let metadata = b"name: a\nversion: 1.0.0\nappVersion: 26.10\nannotations: {a: true, b: 1.0}\nunknown: {x: 1}\n";
        let artifact = Artifact::chart(metadata, Vec::new()).unwrap();
        let config: Value = serde_json::from_slice(&artifact.blobs[0].1).unwrap();
        let expected = json!({
            "name": "a", "version": "1.0.0", "appVersion": "26.10", "annotations": {"a": "true", "b": "1.0"},
        });
        assert_eq!(config, expected);
    }

    #[rstest]
    #[case::image(HELM_CONFIG, "application/vnd.oci.image.config.v1+json")]
    #[case::other_layer(HELM_CHART, "application/vnd.oci.image.layer.v1.tar+gzip")]
    fn what_is_no_chart_is_refused(#[case] from: &str, #[case] to: &str) {
        let good = String::from_utf8(Artifact::chart(METADATA, Vec::new()).unwrap().manifest).unwrap();
        assert!(Manifest::parse(good.as_bytes()).unwrap().chart().is_ok());
        assert!(Manifest::parse(good.replace(from, to).as_bytes()).unwrap().chart().is_err());
    }

    #[test]
    fn an_index_is_no_manifest() {
        assert!(Manifest::parse(br#"{"schemaVersion":2,"manifests":[]}"#).is_err());
    }

    #[test]
    fn a_plus_is_written_as_helm_does() {
        assert_eq!(tag("1.2.3+build.5"), "1.2.3_build.5");
    }
}
