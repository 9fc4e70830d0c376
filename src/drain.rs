//! How the process stops: a signal, then unready, then everything ends what it is at.

use tokio::{
    signal::unix::{SignalKind, signal as listen},
    sync::watch,
};

/// Tells everybody to stop.
pub(crate) struct Drain(watch::Sender<bool>);

/// Hears of it.
#[derive(Clone)]
pub(crate) struct Listener(watch::Receiver<bool>);

impl Drain {
    /// Nobody is told yet.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// One more that will hear.
    pub(crate) fn listener(&self) -> Listener {
        Listener(self.0.subscribe())
    }

    /// Tells everybody, now.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Listener {
    /// Whether it has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once it has begun; a process that loses its drain stops too.
    pub(crate) async fn stopping(mut self) {
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}

/// Waits for the next SIGTERM or SIGINT; its name.
pub(crate) async fn signal() -> &'static str {
    let (Ok(mut terminate), Ok(mut interrupt)) = (listen(SignalKind::terminate()), listen(SignalKind::interrupt()))
    else {
        tracing::warn!("signals cannot be listened to");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_listens_is_told_also_when_it_comes_late() {
        let drain = Drain::new();
        let early = drain.listener();
        assert!(!early.is_stopping());
        drain.begin();
        assert!(early.is_stopping());
        early.stopping().await;
        drain.listener().stopping().await;
    }
}
