//! The parts: what `tests/parts` pins, and where each built one lies in the cache.

mod build;
mod debian;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::command::CommandError;
use crate::files::{self, FileError};
use crate::layout;

pub use build::build_missing;
pub use debian::{install_missing, missing_packages};

/// Why the parts are not there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartsError {
    /// A file of the pins or the cache.
    #[error(transparent)]
    File(#[from] FileError),
    /// `parts.json` is not what it should be.
    #[error("read {}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A part is not in the cache.
    #[error("the part {name} is not built; run `cargo xtask parts`")]
    NotBuilt {
        /// The part.
        name: String,
    },
    /// `parts.json` does not know the part.
    #[error("tests/parts/parts.json has no binary {name}")]
    Unknown {
        /// The part.
        name: String,
    },
    /// A build or an installation failed.
    #[error("{act}")]
    Command {
        /// What was being done.
        act: String,
        /// Why it failed.
        #[source]
        source: CommandError,
    },
}

impl PartsError {
    fn command(act: impl Into<String>) -> impl FnOnce(CommandError) -> Self {
        let act = act.into();
        move |source| Self::Command { act, source }
    }
}

/// `tests/parts/parts.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    debian: Vec<String>,
    cargo_deny: String,
    modules: Vec<Module>,
}

/// One Go module file and what is built from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    folder: String,
    version: String,
    ldflags: String,
    binaries: BTreeMap<String, String>,
    files: Option<ModuleFiles>,
}

/// A folder of a required module that is kept beside the binary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModuleFiles {
    module: String,
    path: String,
}

/// One binary, its pins and its place in the cache.
#[derive(Debug, Clone)]
pub struct Part {
    /// Name of the binary.
    pub name: String,
    /// Version of what is built.
    pub version: String,
    /// The folder under `tests/parts` with its module files.
    module: PathBuf,
    package: String,
    ldflags: String,
    files: Option<(String, String)>,
    folder: PathBuf,
}

impl Part {
    /// The binary in the cache.
    pub fn binary(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The folder of the module that is kept beside the binary (Argo CD's CRDs).
    pub fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Whether it is in the cache. A build that was cut leaves nothing under the final name.
    pub fn is_built(&self) -> bool {
        self.binary().is_file()
    }
}

/// All parts of this checkout.
#[derive(Debug)]
pub struct Parts {
    built: Vec<Part>,
    debian: Vec<String>,
    cargo_deny: String,
}

impl Parts {
    /// Reads the pins.
    ///
    /// # Errors
    /// When a file of `tests/parts` cannot be read.
    pub fn read() -> Result<Self, PartsError> {
        Self::read_from(&layout::workspace().join("tests/parts"), &layout::parts_cache())
    }

    fn read_from(pins: &Path, cache: &Path) -> Result<Self, PartsError> {
        let path = pins.join("parts.json");
        let manifest: Manifest = serde_json::from_str(&files::read(&path)?)
            .map_err(|source| PartsError::Manifest { path: path.clone(), source })?;
        let mut parts = Vec::new();
        for module in &manifest.modules {
            parts.extend(parts_of(module, pins, cache)?);
        }
        Ok(Self { built: parts, debian: manifest.debian, cargo_deny: manifest.cargo_deny })
    }

    /// Every part, in build order.
    pub fn all(&self) -> &[Part] {
        &self.built
    }

    /// The parts that are not in the cache.
    pub fn missing(&self) -> Vec<&Part> {
        self.built.iter().filter(|part| !part.is_built()).collect()
    }

    /// Debian packages that the lab needs.
    pub fn debian(&self) -> &[String] {
        &self.debian
    }

    /// The pinned version of cargo-deny.
    pub fn cargo_deny(&self) -> &str {
        &self.cargo_deny
    }

    /// The part of that name, built.
    ///
    /// # Errors
    /// When there is none, or it is not in the cache.
    pub fn built(&self, name: &str) -> Result<&Part, PartsError> {
        let part = self.built.iter().find(|part| part.name == name);
        let part = part.ok_or_else(|| PartsError::Unknown { name: name.to_owned() })?;
        if part.is_built() { Ok(part) } else { Err(PartsError::NotBuilt { name: name.to_owned() }) }
    }
}

fn parts_of(module: &Module, pins: &Path, cache: &Path) -> Result<Vec<Part>, PartsError> {
    let folder = pins.join(&module.folder);
    let pins = [files::read_bytes(&folder.join("go.mod"))?, files::read_bytes(&folder.join("go.sum"))?];
    let part = |(name, package): (&String, &String)| Part {
        name: name.clone(),
        version: module.version.clone(),
        module: folder.clone(),
        package: package.clone(),
        ldflags: module.ldflags.clone(),
        files: module.files.as_ref().map(|files| (files.module.clone(), files.path.clone())),
        folder: cache.join(key(name, package, &module.ldflags, &pins)),
    };
    Ok(module.binaries.iter().map(part).collect())
}

/// Name of a part's folder: its name and a digest of all that decides its bytes.
fn key(name: &str, package: &str, ldflags: &str, pins: &[Vec<u8>]) -> String {
    let mut hash = Sha256::new();
    let fields = [package.as_bytes(), ldflags.as_bytes(), build::FLAGS.join(" ").as_bytes()].map(<[u8]>::to_vec);
    for field in fields.iter().chain(pins) {
        // The length first, so that no two lists of fields give the same bytes.
        hash.update(field.len().to_le_bytes());
        hash.update(field);
    }
    let digest = hash.finalize();
    digest.iter().take(8).fold(format!("{name}-"), |key, byte| format!("{key}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_changes_with_each_pin_and_flag() {
        let pins = || vec![b"mod".to_vec(), b"sum".to_vec()];
        let base = key("a", "p", "-s", &pins());
        assert_eq!(base, key("a", "p", "-s", &pins()));
        assert_ne!(base, key("a", "p2", "-s", &pins()));
        assert_ne!(base, key("a", "p", "-w", &pins()));
        assert_ne!(base, key("a", "p", "-s", &[b"mod".to_vec(), b"sum2".to_vec()]));
        assert_ne!(base, key("a", "p", "-s", &[b"mods".to_vec(), b"um".to_vec()]));
    }

    #[test]
    fn every_part_that_the_lab_starts_is_pinned() {
        let parts = Parts::read().unwrap();
        let names: Vec<_> = parts.all().iter().map(|part| part.name.as_str()).collect();
        for name in ["etcd", "kube-apiserver", "kubelet", "kube-proxy", "argocd", "helm3", "helm4", "crane", "kubectl"]
        {
            assert!(names.contains(&name), "{name} is not in parts.json");
        }
    }

    #[test]
    fn a_part_that_is_not_built_says_what_to_run() {
        let parts = Parts::read_from(&layout::workspace().join("tests/parts"), Path::new("/nonexistent")).unwrap();
        assert_eq!(parts.missing().len(), parts.all().len());
        let text = parts.built("etcd").unwrap_err().to_string();
        assert_eq!(text, "the part etcd is not built; run `cargo xtask parts`");
        assert!(matches!(parts.built("docker"), Err(PartsError::Unknown { .. })));
    }
}
