//! Debian packages: which are missing, and installing them without letting a service start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{Parts, PartsError};
use crate::command::{self, CommandError};
use crate::files::{self, FileError};

/// What Debian's maintainer scripts ask before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// Ours, so that one left by a crash is known again.
const FORBID: &str = "#!/bin/sh\n# Made by the AICR operator's xtask; removed after the installation.\nexit 101\n";

/// The listed packages that are not installed.
///
/// # Errors
/// When `dpkg-query` cannot be run.
pub fn missing_packages(parts: &Parts) -> Result<Vec<String>, PartsError> {
    let mut missing = Vec::new();
    for package in parts.debian() {
        let mut query = Command::new("dpkg-query");
        query.args(["-W", "-f", "${db:Status-Status}", package]);
        match command::output(&mut query) {
            Ok(status) if status.trim() == "installed" => {}
            Ok(_) | Err(CommandError::Failed { .. }) => missing.push(package.clone()),
            Err(source) => return Err(PartsError::command("ask dpkg what is installed")(source)),
        }
    }
    Ok(missing)
}

/// Installs what is missing and returns the names. No service is started.
///
/// # Errors
/// When apt fails.
pub fn install_missing(parts: &Parts) -> Result<Vec<String>, PartsError> {
    let policy = Path::new(POLICY);
    if files::read(policy).is_ok_and(|text| text == FORBID) {
        remove(policy);
    }
    let missing = missing_packages(parts)?;
    if missing.is_empty() {
        return Ok(missing);
    }
    eprintln!("packages: installing {}", missing.join(" "));
    let _policy = Policy::forbid(policy)?;
    apt(&["update", "-q"])?;
    let mut args = vec!["install", "-q", "-y", "--no-install-recommends"];
    args.extend(missing.iter().map(String::as_str));
    apt(&args)?;
    Ok(missing)
}

fn apt(args: &[&str]) -> Result<(), PartsError> {
    let mut apt = Command::new("apt-get");
    apt.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command::output(&mut apt).map(drop).map_err(PartsError::command(format!("apt-get {}", args.join(" "))))
}

/// The policy that forbids starts, as long as it is held; a machine's own policy stays as it is.
struct Policy<'a> {
    made: Option<&'a Path>,
}

impl<'a> Policy<'a> {
    fn forbid(path: &'a Path) -> Result<Self, FileError> {
        if path.exists() {
            return Ok(Self { made: None });
        }
        files::write(path, FORBID)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
            .map_err(FileError::new("make executable", path))?;
        Ok(Self { made: Some(path) })
    }
}

impl Drop for Policy<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.made {
            remove(path);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        eprintln!("packages: {} could not be removed: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_ours_goes_and_one_of_the_machine_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy-rc.d");
        drop(Policy::forbid(&path).unwrap());
        assert!(!path.exists());
        fs::write(&path, "exit 0").unwrap();
        drop(Policy::forbid(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "exit 0");
    }
}
