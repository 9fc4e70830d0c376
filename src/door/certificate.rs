//! Where the door's certificate comes from, and cert-manager's kept fresh.

use std::{sync::Arc, time::Duration};

use aicr_certs::{CertificateResolver, Mounted, MountedError};
use aicr_drive::Standing;
use jiff::Timestamp;
use tokio::sync::watch;

/// How often the mounted files are looked at: the kubelet itself takes up to a minute.
const TICK: Duration = Duration::from_secs(10);

/// What a replica's certificate needs besides being there.
pub(crate) enum Source {
    /// Our own authority: the leader answers for Secret and caBundle.
    Own(Standing),
    /// cert-manager's, with its injector.
    Mounted,
}

impl Source {
    /// What is missing before reviews can be answered here.
    pub(crate) fn missing(
        &self,
        resolver: &CertificateResolver,
        leading: &watch::Receiver<bool>,
        now: Timestamp,
    ) -> Option<&'static str> {
        let holds = resolver.served().is_some_and(|served| served.validity().not_after > now);
        if !holds {
            return Some("there is no serving certificate");
        }
        match self {
            Self::Own(standing) if *leading.borrow() && !standing.stands() => {
                Some("the webhook configurations do not carry the authority yet")
            }
            Self::Own(_) | Self::Mounted => None,
        }
    }
}

/// Serves what is mounted, and what takes its place, without end; what was served before stays.
pub(crate) async fn mounted(mut files: Mounted, resolver: Arc<CertificateResolver>) {
    let mut told = None;
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let looked = files.look(Timestamp::now());
            (files, looked)
        });
        let Ok((back, looked)) = looked.await else { return };
        files = back;
        told = take(looked, &resolver, told);
        tokio::time::sleep(TICK).await;
    }
}

/// Serves a new pair; tells of a failure once. What was told last.
fn take(
    looked: Result<Option<aicr_certs::Served>, MountedError>,
    resolver: &CertificateResolver,
    told: Option<String>,
) -> Option<String> {
    match looked {
        Ok(None) => told,
        Ok(Some(served)) => {
            resolver.serve(&served);
            let until = served.validity().not_after;
            aicr_drive::metrics::certificate_ends(until);
            tracing::info!(%until, "a new serving certificate");
            None
        }
        Err(error) => {
            let text = crate::told(&error);
            if told.as_ref() != Some(&text) {
                tracing::warn!(error = text, "the mounted certificate cannot be served");
            }
            Some(text)
        }
    }
}
