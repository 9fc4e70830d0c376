//! Building the parts that are not in the cache, one after the other.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Part, Parts, PartsError};
use crate::command;
use crate::files::{self, FileError};
use crate::layout;

/// Flags of every build; part of the key.
pub(super) const FLAGS: [&str; 3] = ["-trimpath", "-mod=readonly", "-buildvcs=false"];

/// How often the person sees that a build is still running.
const SHOW_EVERY: Duration = Duration::from_secs(30);

/// Builds what is missing and returns how many parts that were. Only one build runs at a time on a machine; a second
/// waits for the first.
///
/// # Errors
/// When a build fails or the cache cannot be written.
pub fn build_missing(parts: &Parts) -> Result<usize, PartsError> {
    if parts.missing().is_empty() {
        return Ok(0);
    }
    let cache = layout::parts_cache();
    files::make_dir(&cache)?;
    let _lock = lock(&cache.join("lock"))?;
    // Asked again under the lock: the build we waited for may have made them.
    let missing = parts.missing();
    let start = Instant::now();
    for (index, part) in missing.iter().enumerate() {
        let label = format!("parts {}/{}: {} {}", index + 1, missing.len(), part.name, part.version);
        build(part, &label, start)?;
    }
    Ok(missing.len())
}

/// Held until dropped.
fn lock(path: &Path) -> Result<File, PartsError> {
    let file = File::create(path).map_err(FileError::new("open", path))?;
    if file.try_lock().is_err() {
        eprintln!("parts: another build is running, waiting for it");
        file.lock().map_err(FileError::new("lock", path))?;
    }
    Ok(file)
}

fn build(part: &Part, label: &str, start: Instant) -> Result<(), PartsError> {
    let minutes = || start.elapsed().as_secs_f64() / 60.0;
    eprintln!("{label} ({:.1} min so far)", minutes());
    files::make_dir(&part.folder)?;
    let beside = part.folder.join("building");
    let mut shown = Instant::now();
    let mut tick = || {
        if shown.elapsed() >= SHOW_EVERY {
            shown = Instant::now();
            eprintln!("{label} ({:.1} min so far)", minutes());
        }
    };
    let mut go = go(part);
    go.arg("build").args(FLAGS).args(["-ldflags", &part.ldflags, "-o"]).arg(&beside).arg(&part.package);
    command::shown_while(&mut go, &mut tick).map_err(PartsError::command(format!("build {}", part.name)))?;
    keep_files(part)?;
    fs::rename(&beside, part.binary()).map_err(FileError::new("rename", &beside))?;
    Ok(())
}

/// Copies the module's folder that the part needs at run time.
fn keep_files(part: &Part) -> Result<(), PartsError> {
    let Some((module, path)) = &part.files else { return Ok(()) };
    let act = || PartsError::command(format!("find the files of {module}"));
    let folder = command::output(go(part).args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]));
    let folder = folder.map_err(act())?;
    let source = Path::new(folder.trim()).join(path);
    files::remove_dir(&part.files())?;
    files::make_dir(&part.files())?;
    for entry in fs::read_dir(&source).map_err(FileError::new("list", &source))? {
        let from = entry.map_err(FileError::new("list", &source))?.path();
        let Some(name) = from.file_name().filter(|_| from.is_file()) else { continue };
        files::write(&part.files().join(name), files::read_bytes(&from)?)?;
    }
    Ok(())
}

fn go(part: &Part) -> Command {
    let mut command = Command::new("go");
    command.current_dir(&part.module).env("CGO_ENABLED", "0").env_remove("GOFLAGS");
    command
}
