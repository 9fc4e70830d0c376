//! Kubeconfig files, keys embedded, so that one file is all a client needs.

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::json;

use crate::error::LabError;
use crate::files;
use crate::pki::{Identity, Pki};

/// Writes a kubeconfig (JSON is YAML) for an identity.
pub(crate) fn write(path: &Path, server: &str, pki: &Pki, identity: &Identity) -> Result<(), LabError> {
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {
            "server": server,
            "certificate-authority-data": base64(&pki.path("ca.crt"))?,
        }}],
        "users": [{"name": "lab", "user": {
            "client-certificate-data": base64(&identity.certificate)?,
            "client-key-data": base64(&identity.key)?,
        }}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    });
    if let Some(folder) = path.parent() {
        files::make_dir(folder)?;
    }
    Ok(files::write_whole(path, content.to_string())?)
}

fn base64(path: &Path) -> Result<String, LabError> {
    Ok(BASE64_STANDARD.encode(files::read_bytes(path)?))
}
