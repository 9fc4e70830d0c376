//! Argo CD's watches: begun when its CRD appears, ended when it goes.

use aicr_crds::application::Application;

use super::{Crd, Feed, Project, shelf::Presence};

/// The CRD's watch, and those that depend on it.
pub(crate) struct EngineFeeds {
    pub(super) crds: Feed<Crd>,
    pub(super) applications: Feed<Application>,
    pub(super) projects: Feed<Project>,
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::{
        Api, Client,
        runtime::watcher::{Config, Event},
    };

    use super::*;
    use crate::watch::{Changes, shelf};

    /// A client whose requests are noted and never answered.
    fn client() -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            noted.lock().unwrap().push(request.uri().path().to_owned());
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        });
        (Client::new(service, "default"), asked)
    }

    #[tokio::test]
    async fn the_watches_begin_when_the_crd_appears_and_end_when_it_goes() {
        let (client, asked) = client();
        let changes = Changes::new();
        let (_, mut crds) = shelf("CustomResourceDefinition", Api::all(client.clone()), Config::default(), &changes);
        let namespaced = || Api::namespaced(client.clone(), "argocd");
        let (_, mut applications) = shelf("Application", namespaced(), Config::default(), &changes);
        let projects = Api::namespaced(client.clone(), "argocd");
        let (_, mut projects) = shelf("AppProject", projects, Config::default(), &changes);
        let mut running = std::pin::pin!(dependents(crds.presence(), &mut applications, &mut projects));
        let count = || asked.lock().unwrap().len();
        let crd: Crd =
            serde_json::from_value(serde_json::json!({ "metadata": { "name": "applications.argoproj.io" } })).unwrap();
        assert!(futures::poll!(running.as_mut()).is_pending());
        assert_eq!(count(), 0, "nothing is asked while the CRD is absent");
        crds.take(Ok(Event::Apply(crd.clone())));
        for _ in 0..20 {
            assert!(futures::poll!(running.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        let begun = count();
        assert!(asked.lock().unwrap().iter().any(|path| path.ends_with("/applications")), "{asked:?}");
        assert!(asked.lock().unwrap().iter().any(|path| path.ends_with("/appprojects")), "{asked:?}");
        crds.take(Ok(Event::Delete(crd.clone())));
        assert!(futures::poll!(running.as_mut()).is_pending());
        crds.take(Ok(Event::Apply(crd)));
        for _ in 0..20 {
            assert!(futures::poll!(running.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        assert!(count() > begun, "and they begin again when it comes back");
    }
}
