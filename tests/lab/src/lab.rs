//! A lab: brought up, used, taken down.

use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::clean;
use crate::components::{argocd, control_plane, forward, node, registry};
use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use crate::network;
use crate::parts::Parts;
use crate::preflight;
use crate::process::{self, Process};
use crate::run::Runner;
use crate::state::State;
use crate::sysctl;

/// Which parts a lab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// etcd, API server, controller manager.
    ControlPlane,
    /// All of them: also a node that runs pods, a registry, Argo CD.
    Whole,
}

/// Who may use the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryAccess {
    /// Everybody.
    Open,
    /// Whoever has the user and password of [`crate::addresses`].
    Basic,
}

/// Until when a lab lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Process,
    UntilDown,
}

/// How a lab is brought up.
#[derive(Debug, Clone)]
pub struct Options {
    kind: Kind,
    lifetime: Lifetime,
    registry: RegistryAccess,
}

impl Options {
    /// All parts; the registry asks for a password; it ends with this process.
    pub fn whole() -> Self {
        Self { kind: Kind::Whole, lifetime: Lifetime::Process, registry: RegistryAccess::Basic }
    }

    /// Only a control plane; it ends with this process.
    pub fn control_plane_only() -> Self {
        Self { kind: Kind::ControlPlane, ..Self::whole() }
    }

    /// It stays up after this process, until [`crate::down`].
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.lifetime = Lifetime::UntilDown;
        self
    }

    /// Who may use the registry.
    #[must_use]
    pub fn registry(mut self, access: RegistryAccess) -> Self {
        self.registry = access;
        self
    }
}

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    pub(crate) layout: Layout,
    pub(crate) parts: Parts,
    pub(crate) runner: Runner,
    lifetime: Lifetime,
    is_down: bool,
}

impl Lab {
    /// Brings a lab up. What a dead one left is removed first; when it fails, nothing of it is left.
    ///
    /// # Errors
    /// When the machine is not fit, another lab is alive, a part is not built or does not come up.
    pub fn up(options: &Options) -> Result<Self, LabError> {
        let layout = Layout::of_this_machine();
        let parts = Parts::read()?;
        preflight::for_up(&layout, &parts)?;
        let lock = clean::lock(&layout)?;
        preflight::no_live_lab(&layout)?;
        clean::remove(&layout)?;
        let lab = Self::prepare(layout, parts, options)?;
        lab.start(options)?;
        lab.runner.update(|state| state.is_ready = true)?;
        drop(lock);
        Ok(lab)
    }

    /// The lab that is up. Dropping it changes nothing.
    ///
    /// # Errors
    /// When none is up.
    pub fn attach() -> Result<Self, LabError> {
        let layout = Layout::of_this_machine();
        let state = State::read(&layout.state())?.filter(State::is_live).ok_or(LabError::NoLab)?;
        let parts = Parts::read()?;
        let runner = Runner::new(layout.clone(), state);
        Ok(Self { layout, parts, runner, lifetime: Lifetime::UntilDown, is_down: false })
    }

    /// Writes the state before anything is made, so that a crash at any later moment can be cleaned.
    fn prepare(layout: Layout, parts: Parts, options: &Options) -> Result<Self, LabError> {
        // Before anything is made: it may be refused.
        let api_port = forward::free_port()?;
        for folder in [layout.logs(), layout.bin()] {
            files::make_dir(&folder)?;
        }
        let owner = match options.lifetime {
            Lifetime::Process => Process::current(),
            Lifetime::UntilDown => None,
        };
        let state = State {
            boot: process::boot(),
            kind: options.kind,
            owner,
            is_ready: false,
            api_port,
            had_netns_folder: Path::new(network::FOLDER).exists(),
            had_pod_cgroup: cgroup::exists(),
            sysctls: sysctl::current(),
            parts: Vec::new(),
        };
        state.write(&layout.state())?;
        let runner = Runner::new(layout.clone(), state);
        Ok(Self { layout, parts, runner, lifetime: options.lifetime, is_down: false })
    }

    fn start(&self, options: &Options) -> Result<(), LabError> {
        let start = Instant::now();
        let tell = |what: &str| eprintln!("lab: {what} ({:.1} s)", start.elapsed().as_secs_f64());
        self.link_binaries()?;
        network::make()?;
        control_plane::configure(&self.layout, self.runner.state().api_port)?;
        if options.kind == Kind::Whole {
            registry::configure(&self.layout, options.registry)?;
            node::configure(&self.layout)?;
            node::start_anchor(self)?;
        }
        control_plane::start_api(self)?;
        forward::start(self)?;
        tell("API server ready");
        control_plane::start_controllers(self)?;
        if options.kind == Kind::Whole {
            self.start_the_rest(&tell)?;
        }
        tell("up");
        Ok(())
    }

    fn start_the_rest(&self, tell: &dyn Fn(&str)) -> Result<(), LabError> {
        control_plane::start_scheduler(self)?;
        registry::start(self)?;
        registry::start_redis(self)?;
        node::push_images(self)?;
        tell("registry ready");
        node::start(self)?;
        tell("node ready");
        argocd::start(self)?;
        tell("Argo CD ready");
        Ok(())
    }

    /// The names that programs look for: `kubectl`, Argo CD's `helm`, Argo CD itself by the name it is called.
    fn link_binaries(&self) -> Result<(), LabError> {
        let links = [
            ("kubectl", "kubectl"),
            ("crane", "crane"),
            ("helm", "helm3"),
            ("helm4", "helm4"),
            ("argocd-repo-server", "argocd"),
            ("argocd-application-controller", "argocd"),
        ];
        for (name, part) in links {
            files::link(&self.parts.built(part)?.binary(), &self.layout.bin().join(name))?;
        }
        Ok(())
    }

    /// Ends the lab and removes all of it.
    ///
    /// # Errors
    /// When something of it is still there afterwards.
    pub fn down(mut self) -> Result<(), LabError> {
        self.is_down = true;
        let _lock = clean::lock(&self.layout)?;
        clean::remove(&self.layout)
    }
}

impl Drop for Lab {
    /// A lab of this process, and any that did not come up, goes with its value.
    fn drop(&mut self) {
        let is_unfinished = !self.runner.state().is_ready;
        if self.is_down || (self.lifetime == Lifetime::UntilDown && !is_unfinished) {
            return;
        }
        if let Err(error) = clean::remove(&self.layout) {
            eprintln!("lab: {error}");
        }
    }
}
