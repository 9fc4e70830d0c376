//! Where the lab and the parts keep their files, all of it outside the checkout.

use std::env;
use std::path::{Path, PathBuf};

/// The lab's folder and the places in it.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The lab of this machine: `$AICR_LAB_DIR`, else `lab` in [`cache`].
    pub fn of_this_machine() -> Self {
        Self { root: folder("AICR_LAB_DIR").unwrap_or_else(|| cache().join("lab")) }
    }

    /// The lab's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A place in the lab's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A place in the lab's folder, as text for command lines and configuration.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state.json")
    }

    /// Beside the folder, so that it outlives the folder's removal.
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.with_extension("lock")
    }

    /// One log file per part, named after it.
    pub fn logs(&self) -> PathBuf {
        self.path("log")
    }

    /// The log of one part.
    pub fn log(&self, part: &str) -> PathBuf {
        self.logs().join(format!("{part}.log"))
    }

    /// The API server's audit log: one JSON event a line.
    pub fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.jsonl")
    }

    /// Administrator, from outside the namespace.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    /// Administrator, from inside the namespace.
    pub fn admin_kubeconfig_inside(&self) -> PathBuf {
        self.path("kubeconfig/admin.kubeconfig")
    }

    /// Folder with `config.json` for the registry (`DOCKER_CONFIG`).
    pub fn docker_config(&self) -> PathBuf {
        self.path("docker")
    }

    /// Links to the binaries under the names that programs look for.
    pub fn bin(&self) -> PathBuf {
        self.path("bin")
    }

    /// `PATH` of every part.
    pub(crate) fn search_path(&self) -> String {
        format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", self.text("bin"))
    }
}

/// `$AICR_PARTS_CACHE`, else `parts` in [`cache`].
pub fn parts_cache() -> PathBuf {
    folder("AICR_PARTS_CACHE").unwrap_or_else(|| cache().join("parts"))
}

/// The folder of this checkout: of the one that cargo runs this in, since checkouts that share a target folder share what
/// is compiled in, too.
pub fn workspace() -> PathBuf {
    let here = folder("CARGO_MANIFEST_DIR").unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    let root = here.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    root.unwrap_or(&here).to_path_buf()
}

/// `aicr-operator` in the person's cache folder.
fn cache() -> PathBuf {
    let home = || folder("HOME").unwrap_or_else(|| PathBuf::from("/var")).join(".cache");
    folder("XDG_CACHE_HOME").unwrap_or_else(home).join("aicr-operator")
}

/// A folder from a variable; a relative one is no folder, as the XDG rules say.
fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
