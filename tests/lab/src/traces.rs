//! What of a lab can be seen on the machine: all of it while it is up, nothing after it was taken down.

use std::fs;
use std::path::Path;

use crate::addresses::{BRIDGE, NETWORK_NAMESPACE};
use crate::layout::Layout;
use crate::network;
use crate::process::{self, Process};

/// The lab's traces on this machine, one a line of text; empty when no lab is up or left over.
pub fn traces() -> Vec<String> {
    of(&Layout::of_this_machine())
}

pub(crate) fn of(layout: &Layout) -> Vec<String> {
    let mut found = processes(layout);
    found.extend(mounts(layout));
    if network::exists() {
        found.push(format!("network namespace {NETWORK_NAMESPACE}"));
    }
    let links = [BRIDGE, "cni0"].into_iter().filter(|link| Path::new("/sys/class/net").join(link).exists());
    found.extend(links.map(|link| format!("link {link}")));
    if layout.root().exists() {
        found.push(format!("folder {}", layout.root().display()));
    }
    found
}

/// Processes that work in the lab's folder, as every part is started.
fn processes(layout: &Layout) -> Vec<String> {
    let is_own = |process: &Process| {
        let folder = fs::read_link(format!("/proc/{}/cwd", process.pid));
        process.pid != std::process::id() && folder.is_ok_and(|folder| folder.starts_with(layout.root()))
    };
    let own = process::all_pids().into_iter().filter_map(Process::of).filter(is_own);
    own.map(|process| format!("process {} {}", process.pid, process.command())).collect()
}

fn mounts(layout: &Layout) -> Vec<String> {
    let root = layout.root().to_string_lossy().into_owned();
    let list = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = list.lines().filter_map(|line| line.split(' ').nth(1));
    let own = points.filter(|point| Path::new(point).starts_with(&root) || point.ends_with(NETWORK_NAMESPACE));
    own.map(|point| format!("mount {point}")).collect()
}
