//! Events: one create each, which never fails what it tells of.

use aicr_decide::report::EventNote;
use k8s_openapi::api::events::v1::Event;
use kube::Api;

use super::{Writer, Written, create};
use crate::{
    error::chain,
    events::{self, About},
};

/// What became of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    /// It was told now.
    Now,
    /// It had been told before.
    Before,
    /// It could not be told.
    Failed,
}

impl Writer {
    /// Tells an Event, once: its name is that of the occurrence.
    pub(crate) async fn announce(&self, about: &About<'_>, note: &EventNote) -> Announced {
        let event = events::body(about, note, &self.instance, self.clock.now());
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api: Api<Event> = self.namespaced(&namespace);
        match create(&api, format!("create Event {}", note.name), &event).await {
            Ok(Written::Done(_)) => Announced::Now,
            Ok(Written::Stale) => Announced::Before,
            Err(error) => {
                tracing::warn!(reason = %note.reason, error = chain(&error), "an Event could not be written");
                Announced::Failed
            }
        }
    }
}
