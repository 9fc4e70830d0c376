//! The lab's network namespace: made with a bridge for the node's address, and removed.

use std::path::Path;
use std::process::Command;

use crate::addresses::{BRIDGE, NETWORK_NAMESPACE, NETWORK_NAMESPACE_FILE, NODE_ADDRESS, SERVICE_CIDR};
use crate::command::{self, CommandError};

/// Folder of `ip netns`.
pub(crate) const FOLDER: &str = "/run/netns";

/// Whether a namespace of our name is there.
pub(crate) fn exists() -> bool {
    Path::new(NETWORK_NAMESPACE_FILE).exists()
}

/// Makes the namespace with loopback, the bridge and a route for Services.
pub(crate) fn make() -> Result<(), CommandError> {
    ip(&["netns", "add", NETWORK_NAMESPACE])?;
    let address = format!("{NODE_ADDRESS}/32");
    inside(&["ip", "link", "set", "lo", "up"])?;
    inside(&["ip", "link", "add", BRIDGE, "type", "bridge"])?;
    inside(&["ip", "address", "add", &address, "dev", BRIDGE])?;
    inside(&["ip", "link", "set", BRIDGE, "up"])?;
    // Without it, a process on the node has no way to a Service's address, and kube-proxy never sees the packet.
    inside(&["ip", "route", "add", SERVICE_CIDR, "dev", BRIDGE, "src", NODE_ADDRESS])?;
    inside(&["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"])
}

/// Removes the namespace; its links and tables go along.
pub(crate) fn remove() -> Result<(), CommandError> {
    if exists() {
        ip(&["netns", "delete", NETWORK_NAMESPACE])?;
    }
    Ok(())
}

/// `ip netns add` leaves its folder mounted on itself; undone when we made the folder and nobody else uses it.
pub(crate) fn remove_folder() {
    let is_empty = std::fs::read_dir(FOLDER).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty {
        // Not a mount point is as good as unmounted.
        drop(command::output(Command::new("umount").arg(FOLDER)));
        drop(std::fs::remove_dir(FOLDER));
    }
}

fn ip(args: &[&str]) -> Result<(), CommandError> {
    command::output(Command::new("ip").args(args)).map(drop)
}

fn inside(words: &[&str]) -> Result<(), CommandError> {
    let mut nsenter = Command::new("nsenter");
    nsenter.arg(format!("--net={NETWORK_NAMESPACE_FILE}")).args(words);
    command::output(&mut nsenter).map(drop)
}
