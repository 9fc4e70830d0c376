//! Processes known by id and start time, so that a recycled id is never signalled.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, process};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// One process of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks between boot and the process's start.
    pub(crate) started: u64,
}

impl Process {
    /// The living process of that id (a zombie is none).
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = Stat::of(pid)?;
        (!stat.is_zombie).then_some(Self { pid, started: stat.started })
    }

    /// This process.
    pub(crate) fn current() -> Option<Self> {
        Self::of(process::id())
    }

    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }

    /// Sends the signal if the process is still the one that was recorded.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return };
        // The descriptor first, then the check: it cannot come to mean another process in between.
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if self.is_alive() {
            // It may end at this very moment; then there is nothing to do.
            pidfd_send_signal(&descriptor, signal).unwrap_or_default();
        }
    }

    pub(crate) fn command(&self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
    }
}

/// Where a process of the lab runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// On the machine, outside the namespaces.
    Outside,
    /// In the lab's network namespace.
    Network,
    /// In the lab's network namespace and the node's mount namespace.
    Node,
}

/// How a part is started, kept so that it can be started again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Spec {
    pub(crate) fn new(name: &str, place: Place, program: impl Into<PathBuf>) -> Self {
        Self { name: name.to_owned(), place, program: program.into(), args: Vec::new(), env: BTreeMap::new() }
    }

    pub(crate) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }
}

/// What `/proc/<pid>/stat` says of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) parent: u32,
    pub(crate) is_zombie: bool,
    pub(crate) started: u64,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name stands in parentheses and may hold spaces and parentheses itself.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
        Some(Self {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Ids of all processes of the machine.
pub(crate) fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Which boot of the machine this is: ids and start times count within one boot only.
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 2 3";
        assert_eq!(Stat::parse(line), Some(Stat { parent: 3, is_zombie: false, started: 4711 }));
    }

    #[test]
    fn a_recycled_id_is_another_process() {
        let mut child = process::Command::new("sleep").arg("60").spawn().unwrap();
        let real = Process::of(child.id()).unwrap();
        let earlier = Process { started: real.started - 1, ..real };
        assert!(real.is_alive() && !earlier.is_alive());
        earlier.signal(Signal::KILL);
        real.signal(Signal::TERM);
        // Had the first signal reached it too, it would have won.
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert!(!real.is_alive());
    }
}
