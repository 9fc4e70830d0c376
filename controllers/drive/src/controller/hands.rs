//! What reconciles work with, and what each says of when to look again.

use std::sync::Arc;

use aicr_decide::resolve::JobPlan;
use jiff::{SignedDuration, Timestamp};
use kube::Client;

use super::overtaken::Overtaken;
use crate::{
    credentials::Held,
    error::DriveError,
    gather::Gatherer,
    jobs::objects,
    settings::DriveSettings,
    watch::Watches,
    write::{Run, Writer, Written},
};

/// How soon to look again when what was seen was old and its successor is on its way.
const SOON: SignedDuration = SignedDuration::from_millis(250);

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// When a watch says so.
    OnEvent,
    /// In a moment, or when a watch says so.
    Soon,
    /// At this time, or when a watch says so.
    At(Timestamp),
}

impl Look {
    /// After a write: its own event, or soon where it found something else.
    pub(crate) fn after<T>(written: &Written<T>) -> Self {
        match written {
            Written::Done(_) => Self::OnEvent,
            Written::Stale => Self::Soon,
        }
    }

    pub(super) fn time(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::OnEvent => None,
            Self::Soon => Some(now + SOON),
            Self::At(at) => Some(at),
        }
    }
}

/// What reconciles work with.
pub(crate) struct Hands {
    pub(crate) gather: Gatherer,
    pub(crate) write: Writer,
    /// Of rollouts.
    pub(crate) overtaken: Overtaken,
    /// Of Applications.
    pub(crate) applied: Overtaken,
    settings: Arc<DriveSettings>,
}

impl Hands {
    /// Hands of this installation, which see what these watches tell and hold this token.
    pub(crate) fn new(client: &Client, watches: Arc<Watches>, settings: Arc<DriveSettings>, held: Held) -> Self {
        Self {
            gather: Gatherer::new(client, watches, Arc::clone(&settings), held),
            write: Writer::new(client.clone(), &settings),
            overtaken: Overtaken::default(),
            applied: Overtaken::default(),
            settings,
        }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// The operator's namespace.
    pub(crate) fn namespace(&self) -> &str {
        &self.settings.namespace
    }

    /// When to look again after a write to Argo CD; what was looked up beside the watches is forgotten where it was old.
    pub(crate) fn after<T>(&mut self, written: &Written<T>) -> Look {
        if let Written::Stale = written {
            self.gather.forget();
        }
        Look::after(written)
    }

    /// Makes an AICR Job.
    pub(crate) async fn run_job(&self, plan: &JobPlan) -> Result<Written<()>, DriveError> {
        let settings = &self.settings.jobs;
        let owned = |uid: &str| {
            objects::inputs(plan, settings, uid).into_iter().chain(objects::output(plan, settings, uid)).collect()
        };
        let now = self.now();
        let token = self.gather.docker_config(now);
        if token.is_none() && objects::secret(plan, settings, "", &[]).is_some() {
            let act = format!("create Job {}", plan.name);
            return Err(DriveError::Content { act, problem: "no registry token is held".to_owned() });
        }
        let secret = |uid: &str| objects::secret(plan, settings, uid, token.as_deref().unwrap_or_default());
        let run = Run { job: objects::job(plan, settings, now), owned: &owned, secret: &secret };
        Box::pin(self.write.run_job(run)).await
    }

    /// Deletes a Job by name, as it is seen; one that is gone is gone.
    pub(crate) async fn delete_job(&self, name: &str) -> Result<(), DriveError> {
        let found = self.gather.watches.jobs.iter().find_map(|shelf| shelf.get(name));
        if let Some(job) = found {
            let _ = self.write.delete_job(&job).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_found_old_state_is_looked_at_again_soon() {
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(Look::after(&Written::<()>::Stale).time(now), Some(now + SOON));
        assert_eq!(Look::after(&Written::Done(())).time(now), None);
    }
}
