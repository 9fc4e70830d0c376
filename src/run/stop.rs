//! What runs, until the first part ends or a signal comes; then the order in which the rest stops.

use std::{future::Future, time::Duration};

use tokio::{
    task::{JoinError, JoinHandle, JoinSet},
    time::timeout,
};

use super::{RunError, Stages};
use crate::{drain, lead::LeadError};

/// How long all of it may take once told to stop: the last reconcile, the lease, the door; the pod's grace is 30 s.
const LAST: Duration = Duration::from_secs(25);

type Handle<E> = JoinHandle<Result<(), E>>;

/// Every part that runs.
#[derive(Default)]
pub(super) struct Tasks {
    beside: JoinSet<(&'static str, Result<(), RunError>)>,
    driving: Option<Handle<aicr_drive::DriveError>>,
    campaign: Option<Handle<LeadError>>,
    door: Option<Handle<std::io::Error>>,
    plain: Option<Handle<std::io::Error>>,
}

impl Tasks {
    /// One more that runs to the end.
    pub(super) fn beside(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), RunError>> + Send + 'static,
    ) {
        self.beside.spawn(async move { (name, task.await) });
    }

    /// All that writes.
    pub(super) fn driving(&mut self, task: impl Future<Output = Result<(), aicr_drive::DriveError>> + Send + 'static) {
        self.driving = Some(tokio::spawn(task));
    }

    /// The lease.
    pub(super) fn campaign(&mut self, task: impl Future<Output = Result<(), LeadError>> + Send + 'static) {
        self.campaign = Some(tokio::spawn(task));
    }

    /// The webhooks.
    pub(super) fn door(&mut self, task: impl Future<Output = std::io::Result<()>> + Send + 'static) {
        self.door = Some(tokio::spawn(task));
    }

    /// Metrics and probes.
    pub(super) fn plain(&mut self, task: impl Future<Output = std::io::Result<()>> + Send + 'static) {
        self.plain = Some(tokio::spawn(task));
    }

    /// Waits for a signal or the first end, then stops the rest in order.
    pub(super) async fn watch(mut self, stages: Stages) -> Result<(), RunError> {
        let early = tokio::select! {
            Some(ended) = self.beside.join_next() => Some(beside(ended)),
            ended = join(&mut self.driving) => Some(end("the controllers", ended)),
            ended = join(&mut self.campaign) => {
                // First of all: nothing more is written.
                abort(self.driving.as_ref()).await;
                Some(end("the campaign", ended))
            }
            ended = join(&mut self.door) => Some(end("the door", ended)),
            ended = join(&mut self.plain) => Some(end("the metrics listener", ended)),
            signal = drain::signal() => {
                tracing::info!(signal, "told to stop: unready, and the last reconcile is finished");
                None
            }
        };
        if let Some(error) = &early {
            tracing::error!(error = crate::told(error), "a part of the operator has ended; the rest stops");
        }
        let stopped = tokio::select! {
            stopped = timeout(LAST, self.stop(stages)) => stopped.is_ok(),
            _ = drain::signal() => return Err(RunError::Impatient),
        };
        if !stopped {
            tracing::warn!(seconds = LAST.as_secs(), "what had not stopped by now is broken off");
        }
        early.map_or(Ok(()), Err)
    }

    /// Each is told to stop; how it ends no longer changes anything.
    async fn stop(mut self, stages: Stages) {
        stages.drain.begin();
        let hands = async {
            let _ = rest(&mut self.driving).await;
            stages.handover.begin();
            let _ = rest(&mut self.campaign).await;
        };
        let _ = tokio::join!(hands, rest(&mut self.door));
        stages.end.begin();
        let _ = rest(&mut self.plain).await;
    }
}

/// Waits for one that runs, and takes it off.
async fn join<E>(handle: &mut Option<Handle<E>>) -> Result<Result<(), E>, JoinError> {
    let Some(running) = handle else { return std::future::pending().await };
    let ended = running.await;
    *handle = None;
    ended
}

/// The same for one that may have ended already.
async fn rest<E>(handle: &mut Option<Handle<E>>) -> Option<Result<Result<(), E>, JoinError>> {
    if handle.is_some() { Some(join(handle).await) } else { None }
}

async fn abort<E>(handle: Option<&Handle<E>>) {
    if let Some(handle) = handle {
        handle.abort();
        while !handle.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}

/// What it means that a part ended early.
fn end<E: Into<RunError>>(what: &'static str, ended: Result<Result<(), E>, JoinError>) -> RunError {
    match ended {
        Ok(Ok(())) => RunError::Early(what),
        Ok(Err(error)) => error.into(),
        Err(source) => RunError::Broken { what, source },
    }
}

fn beside(ended: Result<(&'static str, Result<(), RunError>), JoinError>) -> RunError {
    match ended {
        Ok((what, Ok(()))) => RunError::Early(what),
        Ok((_, Err(error))) => error,
        Err(source) => RunError::Broken { what: "a task", source },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::drain::{Drain, Listener};

    /// Parts that write down when they stop.
    struct Parts(Arc<Mutex<Vec<&'static str>>>);

    impl Parts {
        fn part<E>(&self, name: &'static str, stop: Listener) -> impl Future<Output = Result<(), E>> + use<E> {
            let seen = Arc::clone(&self.0);
            async move {
                stop.stopping().await;
                seen.lock().unwrap().push(name);
                Ok(())
            }
        }
    }

    #[tokio::test]
    async fn a_lost_lease_stops_all_writing_at_once_and_then_the_door_and_the_probes() {
        let stages = Stages { drain: Drain::new(), handover: Drain::new(), end: Drain::new() };
        let parts = Parts(Arc::default());
        let mut tasks = Tasks::default();
        tasks.driving(parts.part("driving", stages.drain.listener()));
        tasks.campaign(async { Err(LeadError::Lost) });
        tasks.door(parts.part("door", stages.drain.listener()));
        tasks.plain(parts.part("plain", stages.end.listener()));
        assert!(matches!(tasks.watch(stages).await, Err(RunError::Lead(LeadError::Lost))));
        assert_eq!(*parts.0.lock().unwrap(), ["door", "plain"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_is_given_back_after_the_last_reconcile_and_the_probes_answer_to_the_end() {
        let stages = Stages { drain: Drain::new(), handover: Drain::new(), end: Drain::new() };
        let parts = Parts(Arc::default());
        let mut tasks = Tasks::default();
        let (told, reconciled) = (stages.drain.listener(), parts.part("driving", stages.drain.listener()));
        tasks.driving(async move {
            told.stopping().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            reconciled.await
        });
        tasks.campaign(parts.part("campaign", stages.handover.listener()));
        tasks.door(parts.part("door", stages.handover.listener()));
        tasks.plain(parts.part("plain", stages.end.listener()));
        tasks.stop(stages).await;
        let seen = parts.0.lock().unwrap().clone();
        assert_eq!((seen[0], seen[3]), ("driving", "plain"), "{seen:?}");
    }
}
