//! The pods' cgroups: who is in them, and their removal.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::components::node;
use crate::wait::{self, Seen};

const CGROUPS: &str = "/sys/fs/cgroup";
/// The kernel lets go of a dead process's cgroup a little later.
const BOUND: Duration = Duration::from_secs(10);

/// Whether any hierarchy has a cgroup of the pods' name.
pub(crate) fn exists() -> bool {
    !places().is_empty()
}

/// Ids of all processes in pods.
pub(crate) fn pids() -> BTreeSet<u32> {
    let cgroups = places().into_iter().flat_map(|place| innermost_first(&place));
    let lists = cgroups.filter_map(|cgroup| fs::read_to_string(cgroup.join("cgroup.procs")).ok());
    lists.flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Removes the pods' cgroups and returns those that stayed.
pub(crate) fn remove() -> Vec<String> {
    let gone = wait::in_any_case("the removal of the pods' cgroups", BOUND, || {
        let left = remove_once();
        if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(left.join(", ")) }
    });
    if gone.is_ok() { Vec::new() } else { remove_once() }
}

fn remove_once() -> Vec<String> {
    let all = places().into_iter().flat_map(|place| innermost_first(&place));
    let refused = all.filter(|cgroup| fs::remove_dir(cgroup).is_err() && cgroup.exists());
    refused.map(|cgroup| format!("cgroup {}", cgroup.display())).collect()
}

/// The pods' cgroup in each hierarchy (v1), or in the one there is (v2).
fn places() -> Vec<PathBuf> {
    let root = Path::new(CGROUPS);
    let mut places = vec![root.join(node::CGROUP)];
    places.extend(fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path().join(node::CGROUP)));
    places.retain(|place| place.is_dir());
    places
}

/// A cgroup and all below it, the innermost first.
fn innermost_first(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut all: Vec<PathBuf> = folders.flat_map(|entry| innermost_first(&entry.path())).collect();
    all.push(root.to_path_buf());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_after_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::create_dir_all(folder.path().join("c")).unwrap();
        let order = innermost_first(folder.path());
        let place = |name: &str| order.iter().position(|path| *path == folder.path().join(name)).unwrap();
        assert_eq!(order.len(), 4);
        assert!(place("a/b") < place("a") && place("a") < place("") && place("c") < place(""));
    }
}
