//! Taking a lab down, from what is on disk and in the kernel alone: also after a crash of whoever brought it up.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::addresses::NETWORK_NAMESPACE_FILE;
use crate::cgroup;
use crate::command;
use crate::error::LabError;
use crate::files::{self, FileError};
use crate::layout::Layout;
use crate::network;
use crate::preflight;
use crate::process::{self, Process, Stat};
use crate::state::State;
use crate::sysctl;
use crate::traces;
use crate::wait::{self, Seen};

/// How long the parts may take to end by themselves: their data goes anyway.
const GRACE: Duration = Duration::from_secs(4);
/// How long the parents of dead processes may take to notice.
const REAP: Duration = Duration::from_secs(5);
/// How long SIGKILL may take.
const KILL: Duration = Duration::from_secs(30);

/// Takes down whatever lab there is, alive or left over; none is fine.
///
/// # Errors
/// When something of it is still there afterwards.
pub fn down() -> Result<(), LabError> {
    preflight::root()?;
    let layout = Layout::of_this_machine();
    let _lock = lock(&layout)?;
    remove(&layout)
}

/// Held while a lab is brought up or down.
pub(crate) fn lock(layout: &Layout) -> Result<File, LabError> {
    let path = layout.lock();
    if let Some(folder) = path.parent() {
        files::make_dir(folder)?;
    }
    let file = File::create(&path).map_err(FileError::new("open", &path))?;
    file.try_lock().map_err(|_| LabError::Busy)?;
    Ok(file)
}

/// Ends all processes, then removes cgroups, network, settings and files. The caller holds the lock.
pub(crate) fn remove(layout: &Layout) -> Result<(), LabError> {
    let state = State::read(&layout.state()).unwrap_or_else(|error| {
        // Another version's, or damaged: what the kernel knows of the lab is removed all the same.
        eprintln!("lab: {error}");
        None
    });
    end_processes(state.as_ref())?;
    network::remove()?;
    let mut left = Vec::new();
    if let Some(state) = &state {
        if !state.had_pod_cgroup {
            left.extend(cgroup::remove());
        }
        if !state.had_netns_folder {
            network::remove_folder();
        }
        left.extend(sysctl::restore(&state.sysctls));
    }
    keep_logs(layout)?;
    files::remove_dir(layout.root())?;
    left.extend(traces::of(layout));
    if left.is_empty() { Ok(()) } else { Err(LabError::Left { what: left.join(", ") }) }
}

/// Copies the logs to `$AICR_LAB_LOGS`, for whoever wants to read them afterwards.
fn keep_logs(layout: &Layout) -> Result<(), LabError> {
    if let (Some(folder), true) = (std::env::var_os("AICR_LAB_LOGS"), layout.logs().is_dir()) {
        files::make_dir(folder.as_ref())?;
        command::output(Command::new("cp").arg("--recursive").arg(layout.logs()).arg(folder))?;
    }
    Ok(())
}

fn end_processes(state: Option<&State>) -> Result<(), LabError> {
    let recorded: Vec<Process> = match state {
        Some(state) if state.boot == process::boot() => state.processes().collect(),
        Some(_) | None => Vec::new(),
    };
    // All of them, before the first signal: a pod's processes are found through its shim.
    let mut victims = Victims::new(&recorded, Pods::of(state));
    victims.look();
    for process in recorded.iter().rev() {
        process.signal(Signal::TERM);
    }
    let end_alone = wait::in_any_case("the parts' end", GRACE, || match living(&recorded) {
        0 => Seen::Ready(()),
        left => Seen::NotYet(format!("{left} parts")),
    });
    // Whoever does not end by itself is ended below.
    drop(end_alone);
    wait::in_any_case("the end of the lab's processes", KILL, || {
        victims.look();
        let left: Vec<Process> = victims.living();
        for process in &left {
            process.signal(Signal::KILL);
        }
        if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(names(&left)) }
    })?;
    victims.wait_until_reaped();
    Ok(())
}

fn living(processes: &[Process]) -> usize {
    processes.iter().filter(|process| process.is_alive()).count()
}

fn names(processes: &[Process]) -> String {
    let names: Vec<String> = processes.iter().map(|process| format!("{} {}", process.pid, process.command())).collect();
    names.join("; ")
}

/// Whether the pods' cgroup tells who is in a pod of the lab.
#[derive(Debug, Clone, Copy)]
enum Pods {
    InOurCgroup,
    Unknown,
}

impl Pods {
    fn of(state: Option<&State>) -> Self {
        if state.is_some_and(|state| !state.had_pod_cgroup) { Self::InOurCgroup } else { Self::Unknown }
    }
}

/// The processes that belong to the lab: recorded ones, those in its network namespace, those in its pods' cgroup, and
/// all their descendants.
struct Victims {
    found: BTreeSet<Process>,
    /// This process and those it descends from are never among them.
    spared: BTreeSet<u32>,
    pods: Pods,
}

impl Victims {
    fn new(recorded: &[Process], pods: Pods) -> Self {
        let alive = recorded.iter().copied().filter(Process::is_alive);
        let parent = |pid: &u32| Stat::of(*pid).map(|stat| stat.parent).filter(|parent| *parent != 0);
        let spared = std::iter::successors(Some(std::process::id()), parent).collect();
        Self { found: alive.collect(), spared, pods }
    }

    /// Adds whoever is there now.
    fn look(&mut self) {
        let namespace = inode(Path::new(NETWORK_NAMESPACE_FILE));
        let in_pods = match self.pods {
            Pods::InOurCgroup => cgroup::pids(),
            Pods::Unknown => BTreeSet::new(),
        };
        let mut rest: Vec<(Process, u32)> = Vec::new();
        for pid in process::all_pids() {
            let (Some(process), Some(stat)) = (Process::of(pid), Stat::of(pid)) else { continue };
            let net = namespace.and_then(|_| inode(Path::new(&format!("/proc/{pid}/ns/net"))));
            let is_inside = namespace.is_some() && net == namespace;
            if self.spared.contains(&pid) {
                continue;
            }
            if is_inside || in_pods.contains(&pid) {
                self.found.insert(process);
            } else {
                rest.push((process, stat.parent));
            }
        }
        self.add_descendants(rest);
    }

    fn add_descendants(&mut self, mut rest: Vec<(Process, u32)>) {
        let mut parents: BTreeSet<u32> = self.living().iter().map(|process| process.pid).collect();
        loop {
            let (children, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|(_, parent)| parents.contains(parent));
            if children.is_empty() {
                return;
            }
            parents.extend(children.iter().map(|(process, _)| process.pid));
            self.found.extend(children.into_iter().map(|(process, _)| process));
            rest = others;
        }
    }

    /// A dead process stays in the list of processes until its parent, here mostly process 1, has asked for it. Not ours
    /// to enforce: after the bound they are left to it.
    fn wait_until_reaped(&self) {
        let is_listed = |process: &&Process| Stat::of(process.pid).is_some_and(|stat| stat.started == process.started);
        let reaped = wait::in_any_case("the dead processes' end", REAP, || match self.found.iter().find(is_listed) {
            None => Seen::Ready(()),
            Some(process) => Seen::NotYet(process.pid.to_string()),
        });
        drop(reaped);
    }

    fn living(&self) -> Vec<Process> {
        self.found.iter().copied().filter(Process::is_alive).collect()
    }
}

/// Device and inode of a namespace file: equal for all processes in one namespace.
fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_of_a_recorded_process_are_found_and_its_own_ancestors_are_not() {
        let mut shell = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let recorded = Process::of(shell.id()).unwrap();
        let mut victims = Victims::new(&[recorded], Pods::Unknown);
        let child = wait::until("the shell's child", Duration::from_secs(10), || {
            victims.look();
            match victims.living().into_iter().find(|process| process.command() == "sleep 60") {
                Some(child) => Seen::Ready(child),
                None => Seen::NotYet(names(&victims.living())),
            }
        });
        let child = child.unwrap();
        assert!(victims.living().iter().all(|process| process.pid != std::process::id()));
        child.signal(Signal::KILL);
        recorded.signal(Signal::KILL);
        shell.wait().unwrap();
    }
}
