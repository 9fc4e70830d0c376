//! The mirror beside the reconciles: one run at a time, which none of them waits for.

use std::sync::{Arc, Mutex, PoisonError};

use aicr_crds::{
    Digest,
    plan::{Plan, StoredPlan},
};
use aicr_decide::resolve::{AicrInstall, MirrorPlan};
use aicr_mirror::{Around, MirrorFailure, Registry, RegistryConfig, make_plan};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::{error::chain, gather::Namespaces, watch::Changes};

/// One run, with all that it needs.
pub(crate) struct Request {
    /// What to mirror.
    pub(crate) plan: MirrorPlan,
    /// The active plan, whose archives are kept where nothing changed.
    pub(crate) active: Option<Plan>,
    /// UID of the runtime.
    pub(crate) runtime_uid: String,
    /// The AICR that must have rendered it.
    pub(crate) aicr: AicrInstall,
    /// Where releases may go.
    pub(crate) namespaces: Namespaces,
    /// The registry.
    pub(crate) registry: RegistryConfig,
    /// When it was asked for.
    pub(crate) at: Timestamp,
}

/// What a run came to.
pub(crate) type Outcome = Result<StoredPlan, MirrorFailure>;

/// Where the mirror is.
#[derive(Default)]
enum State {
    #[default]
    Idle,
    Running,
    Done(Digest, Box<Outcome>),
}

/// The asking side.
pub(crate) struct Mirror {
    requests: mpsc::Sender<Request>,
    state: Arc<Mutex<State>>,
}

/// The running side.
pub(crate) struct Worker {
    requests: mpsc::Receiver<Request>,
    state: Arc<Mutex<State>>,
    changes: Changes,
}

/// Both sides.
pub(crate) fn mirror(changes: &Changes) -> (Mirror, Worker) {
    let (sender, receiver) = mpsc::channel(1);
    let state = Arc::new(Mutex::new(State::Idle));
    let worker = Worker { requests: receiver, state: Arc::clone(&state), changes: changes.clone() };
    (Mirror { requests: sender, state }, worker)
}

impl Mirror {
    /// What the run for these inputs came to, once; the outcome for other inputs is dropped.
    pub(crate) fn take(&self, inputs: Digest) -> Option<Outcome> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *state) {
            State::Done(of, outcome) => (of == inputs).then_some(*outcome),
            State::Running => {
                *state = State::Running;
                None
            }
            State::Idle => None,
        }
    }

    /// Starts a run, unless one is on its way.
    pub(crate) fn start(&self, request: Request) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Idle) && self.requests.try_send(request).is_ok() {
            *state = State::Running;
        }
    }
}

impl Worker {
    /// Carries out one request after the other, without end.
    pub(crate) async fn run(mut self) {
        while let Some(request) = self.requests.recv().await {
            let inputs = request.plan.inputs;
            let outcome = Box::pin(carry_out(request)).await;
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Done(inputs, Box::new(outcome));
            self.changes.tell();
        }
    }
}

#[cfg(test)]
impl Worker {
    /// The run that was asked for, if any, which came to this.
    pub(crate) fn ended(&mut self, outcome: Outcome) -> Option<Request> {
        let request = self.requests.try_recv().ok()?;
        *self.state.lock().unwrap() = State::Done(request.plan.inputs, Box::new(outcome));
        Some(request)
    }
}

async fn carry_out(request: Request) -> Outcome {
    let Request { plan, active, runtime_uid, aicr, namespaces, registry, at } = request;
    let registry = Registry::new(registry).map_err(|error| MirrorFailure { reason: None, message: chain(&error) })?;
    let allowed = |namespace: &str| namespaces.allow(namespace);
    let around = Around { runtime_uid: &runtime_uid, aicr: &aicr, created: at, namespace_allowed: &allowed };
    let made = make_plan(&registry, &plan, active.as_ref(), &around).await;
    match &made {
        Ok(stored) => tracing::info!(plan = %stored.plan.digest(), "charts are mirrored"),
        Err(failure) => tracing::warn!(reason = ?failure.reason, why = failure.message, "the mirror run failed"),
    }
    made
}
