//! What a lab has started and changed, on disk, so that any process can take it down.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::files;
use crate::lab::Kind;
use crate::process::{self, Process, Spec};

/// The state file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// Which boot of the machine the processes belong to.
    pub(crate) boot: String,
    pub(crate) kind: Kind,
    /// The process whose end ends the lab; absent: it stays until it is taken down.
    pub(crate) owner: Option<Process>,
    /// Whether all parts came up.
    pub(crate) is_ready: bool,
    /// Port on 127.0.0.1 that leads to the API server.
    pub(crate) api_port: u16,
    /// Whether `/run/netns` was there before.
    pub(crate) had_netns_folder: bool,
    /// Whether a cgroup with the pods' name was there before: then it is not ours to empty.
    pub(crate) had_pod_cgroup: bool,
    /// Kernel settings of the whole machine as they were before the kubelet changed them.
    pub(crate) sysctls: BTreeMap<String, String>,
    /// In order of start.
    pub(crate) parts: Vec<Running>,
}

/// One started part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) spec: Spec,
    /// Absent when it was stopped.
    pub(crate) process: Option<Process>,
}

impl State {
    /// The state on disk, if there is one.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, LabError> {
        if !path.exists() {
            return Ok(None);
        }
        let state = serde_json::from_str(&files::read(path)?);
        state.map(Some).map_err(|source| LabError::State { path: path.to_path_buf(), source })
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), LabError> {
        let text = serde_json::to_vec_pretty(self);
        let text = text.map_err(|source| LabError::State { path: path.to_path_buf(), source })?;
        Ok(files::write_whole(path, text)?)
    }

    /// Whether somebody still uses this lab: its owner is alive, or it has none and is up.
    pub(crate) fn is_live(&self) -> bool {
        if self.boot != process::boot() {
            return false;
        }
        match &self.owner {
            Some(owner) => owner.is_alive(),
            None => self.is_ready && self.processes().any(|process| process.is_alive()),
        }
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = Process> + '_ {
        self.parts.iter().filter_map(|part| part.process)
    }

    pub(crate) fn part(&self, name: &str) -> Option<&Running> {
        self.parts.iter().find(|part| part.spec.name == name)
    }

    /// Records a started part; one of the same name is replaced in its place.
    pub(crate) fn record(&mut self, spec: Spec, process: Option<Process>) {
        match self.parts.iter_mut().find(|part| part.spec.name == spec.name) {
            Some(part) => *part = Running { spec, process },
            None => self.parts.push(Running { spec, process }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Place;

    fn state(owner: Option<Process>) -> State {
        State {
            boot: process::boot(),
            kind: Kind::Whole,
            owner,
            is_ready: true,
            api_port: 1,
            had_netns_folder: true,
            had_pod_cgroup: false,
            sysctls: BTreeMap::new(),
            parts: Vec::new(),
        }
    }

    #[test]
    fn a_lab_whose_owner_is_dead_is_not_live() {
        let me = Process::current().unwrap();
        assert!(state(Some(me)).is_live());
        assert!(!state(Some(Process { started: me.started + 1, ..me })).is_live());
    }

    #[test]
    fn a_lab_without_owner_is_live_as_long_as_a_part_is() {
        let mut state = state(None);
        assert!(!state.is_live());
        state.record(Spec::new("etcd", Place::Outside, "etcd"), Process::current());
        assert!(state.is_live());
        state.boot = "another boot".to_owned();
        assert!(!state.is_live());
    }

    #[test]
    fn the_state_survives_the_disk_and_a_second_start_replaces_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert!(State::read(&path).unwrap().is_none());
        let mut state = state(None);
        state.record(Spec::new("etcd", Place::Network, "etcd"), None);
        state.record(Spec::new("etcd", Place::Network, "etcd").args(["--x"]), None);
        state.write(&path).unwrap();
        let back = State::read(&path).unwrap().unwrap();
        assert_eq!(back.parts.len(), 1);
        assert_eq!(back.part("etcd").unwrap().spec.args, ["--x"]);
    }
}
