//! Argo CD's watches: begun when its CRD appears, ended when it goes.

use aicr_crds::application::Application;

use super::{Crd, Feed, Project, shelf::Presence};

/// The CRD's watch, and those that depend on it.
pub(crate) struct EngineFeeds {
    crds: Feed<Crd>,
    applications: Feed<Application>,
    projects: Feed<Project>,
}

impl EngineFeeds {
    pub(super) fn new(crds: Feed<Crd>, applications: Feed<Application>, projects: Feed<Project>) -> Self {
        Self { crds, applications, projects }
    }

    /// Runs them, without end.
    pub(crate) async fn run(&mut self) {
        let presence = self.crds.presence();
        let Self { crds, applications, projects } = self;
        tokio::join!(crds.run(), dependents(presence, applications, projects));
    }
}

async fn dependents(mut presence: Presence, applications: &mut Feed<Application>, projects: &mut Feed<Project>) {
    loop {
        presence.is(true).await;
        tracing::info!("Argo CD's CRD is there: its watches begin");
        tokio::select! {
            ((), ()) = async { tokio::join!(applications.run(), projects.run()) } => {}
            () = presence.is(false) => {}
        }
        tracing::warn!("Argo CD's CRD is gone: its watches end");
        applications.clear();
        projects.clear();
    }
}
