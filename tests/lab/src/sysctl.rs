//! Kernel settings of the whole machine that a kubelet changes: kept before, put back after.

use std::collections::BTreeMap;
use std::fs;

/// What `kubelet` writes at its start (its `setupKernelTunables`).
const CHANGED_BY_KUBELET: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// The values as they are.
pub(crate) fn current() -> BTreeMap<String, String> {
    let value = |name: &&str| Some(((*name).to_owned(), read(name)?));
    CHANGED_BY_KUBELET.iter().filter_map(value).collect()
}

/// Puts the values back and returns the names that could not be.
pub(crate) fn restore(values: &BTreeMap<String, String>) -> Vec<String> {
    let is_refused = |(name, value): &(&String, &String)| {
        read(name).as_ref() != Some(*value) && fs::write(path(name), value.as_str()).is_err()
    };
    values.iter().filter(is_refused).map(|(name, _)| format!("kernel setting {name}")).collect()
}

fn read(name: &str) -> Option<String> {
    fs::read_to_string(path(name)).ok().map(|text| text.trim().to_owned())
}

fn path(name: &str) -> String {
    format!("/proc/sys/{name}")
}
