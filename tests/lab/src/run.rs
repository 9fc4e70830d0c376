//! Starting and stopping the parts of a lab, each recorded on disk before anything else happens.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::addresses::NETWORK_NAMESPACE_FILE;
use crate::error::LabError;
use crate::files::{self, FileError};
use crate::interrupt;
use crate::layout::Layout;
use crate::process::{Place, Process, Spec};
use crate::state::State;
use crate::wait::{self, Seen, WaitError};

/// The part that holds the node's mount namespace.
pub(crate) const NODE_ANCHOR: &str = "node";
/// How long a part may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(20);

/// The state of a lab and the file it is kept in.
#[derive(Debug)]
pub(crate) struct Runner {
    layout: Layout,
    state: Mutex<State>,
}

impl Runner {
    pub(crate) fn new(layout: Layout, state: State) -> Self {
        Self { layout, state: Mutex::new(state) }
    }

    /// The state; a panic of another thread does not spoil it, since each change is one assignment.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and writes it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut State)) -> Result<(), LabError> {
        let mut state = self.state();
        change(&mut state);
        state.write(&self.layout.state())
    }

    /// Starts a part and records it.
    pub(crate) fn start(&self, spec: Spec) -> Result<(), LabError> {
        if interrupt::requested() {
            return Err(LabError::Interrupted);
        }
        let log = self.layout.log(&spec.name);
        let output = OpenOptions::new().create(true).append(true).open(&log);
        let output = output.map_err(FileError::new("open", &log))?;
        let errors = output.try_clone().map_err(FileError::new("open", &log))?;
        let mut command = self.command(spec.place, &spec.program);
        command.args(&spec.args).envs(&spec.env).stdin(Stdio::null()).stdout(output).stderr(errors);
        // A group of its own: a Ctrl-C in the terminal reaches the owner, who ends the parts in order.
        command.process_group(0);
        let start = |source| LabError::Start { name: spec.name.clone(), source };
        let mut child = command.spawn().map_err(start)?;
        let process = Process::of(child.id());
        // Reaps it whenever it ends, so that no zombie looks like a living part.
        std::thread::spawn(move || child.wait());
        self.update(|state| state.record(spec, process))
    }

    /// A command in a place of the lab, with the parts' environment and nothing of the machine's.
    pub(crate) fn command(&self, place: Place, program: &std::path::Path) -> Command {
        let mut command = match place {
            Place::Outside => Command::new(program),
            Place::Network | Place::Node => Command::new("nsenter"),
        };
        match place {
            Place::Outside => {}
            Place::Network => {
                command.arg(format!("--net={NETWORK_NAMESPACE_FILE}")).arg("--").arg(program);
            }
            Place::Node => {
                command.arg(format!("--net={NETWORK_NAMESPACE_FILE}"));
                command.arg(format!("--mount={}", self.node_mounts().display())).arg("--").arg(program);
            }
        }
        command.env_clear().env("PATH", self.layout.search_path()).env("LANG", "C.UTF-8");
        command.env("HOME", self.layout.path("home")).current_dir(self.layout.root());
        command
    }

    fn node_mounts(&self) -> PathBuf {
        let pid = self.state().part(NODE_ANCHOR).and_then(|part| part.process).map_or(0, |process| process.pid);
        PathBuf::from(format!("/proc/{pid}/ns/mnt"))
    }

    /// The process of a part; absent when it was stopped or has ended.
    pub(crate) fn process(&self, name: &str) -> Result<Option<Process>, LabError> {
        let state = self.state();
        let part = state.part(name).ok_or_else(|| no_such_part(&state, name))?;
        Ok(part.process.filter(Process::is_alive))
    }

    /// Ends a part by SIGTERM, after 20 s by SIGKILL, and waits for its end.
    pub(crate) fn stop(&self, name: &str) -> Result<(), LabError> {
        self.end(name, Signal::TERM)
    }

    /// Ends a part by SIGKILL and waits for its end.
    pub(crate) fn kill(&self, name: &str) -> Result<(), LabError> {
        self.end(name, Signal::KILL)
    }

    fn end(&self, name: &str, signal: Signal) -> Result<(), LabError> {
        if let Some(process) = self.process(name)? {
            process.signal(signal);
            if wait_for_end(name, process, GRACE).is_err() {
                process.signal(Signal::KILL);
                wait_for_end(name, process, GRACE)?;
            }
        }
        self.update(|state| {
            if let Some(part) = state.parts.iter_mut().find(|part| part.spec.name == name) {
                part.process = None;
            }
        })
    }

    /// Starts a part again as it was started before; one that is alive stays as it is.
    pub(crate) fn restart(&self, name: &str) -> Result<(), LabError> {
        if self.process(name)?.is_some() {
            return Ok(());
        }
        let spec = {
            let state = self.state();
            state.part(name).map(|part| part.spec.clone()).ok_or_else(|| no_such_part(&state, name))?
        };
        self.start(spec)
    }

    /// Waits for a state of a part; when its process ends before, says what it wrote last.
    pub(crate) fn wait_for(
        &self,
        part: &str,
        what: &str,
        bound: Duration,
        mut probe: impl FnMut() -> Result<(), String>,
    ) -> Result<(), LabError> {
        let ended = || format!("{part} has ended; its log ends with\n{}", self.last_lines(part));
        wait::until(what, bound, || match probe() {
            Ok(()) => Seen::Ready(()),
            Err(_) if !matches!(self.process(part), Ok(Some(_))) => Seen::Never(ended()),
            Err(seen) => Seen::NotYet(seen),
        })?;
        Ok(())
    }

    /// The end of a part's log.
    fn last_lines(&self, part: &str) -> String {
        let text = files::read_bytes(&self.layout.log(part)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

fn wait_for_end(name: &str, process: Process, bound: Duration) -> Result<(), WaitError> {
    wait::until(&format!("the end of {name}"), bound, || {
        if process.is_alive() { Seen::NotYet(format!("process {} is alive", process.pid)) } else { Seen::Ready(()) }
    })
}

fn no_such_part(state: &State, name: &str) -> LabError {
    let known: Vec<&str> = state.parts.iter().map(|part| part.spec.name.as_str()).collect();
    LabError::NoSuchPart { name: name.to_owned(), known: known.join(", ") }
}
