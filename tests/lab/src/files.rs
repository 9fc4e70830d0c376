//! Reading and writing files, with errors that name the file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A file operation that failed.
#[derive(Debug, Error)]
#[error("{act} {}", path.display())]
pub struct FileError {
    act: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl FileError {
    /// Names what was being done, and to which path.
    pub(crate) fn new(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self { act, path, source }
    }
}

pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(FileError::new("read", path))
}

pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(FileError::new("read", path))
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    fs::write(path, content).map_err(FileError::new("write", path))
}

/// Writes beside the file and renames, so that a reader or a crash never meets half a file.
pub(crate) fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    let beside = path.with_extension("new");
    write(&beside, content)?;
    fs::rename(&beside, path).map_err(FileError::new("replace", path))
}

pub(crate) fn make_dir(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(FileError::new("make folder", path))
}

/// Removes a folder and all that is in it; one that is not there is fine.
pub(crate) fn remove_dir(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::new("remove folder", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(crate) fn link(target: &Path, name: &Path) -> Result<(), FileError> {
    std::os::unix::fs::symlink(target, name).map_err(FileError::new("link", name))
}
