//! The only place that calls write verbs: field managers, preconditions, time bounds and conflicts live here.

mod application;
mod authority;
mod body;
mod document;
mod event;
mod job;
mod ownership;
mod rights;
mod rollout;
mod status;
mod token;

use std::{fmt::Display, future::Future, time::Duration};

use aicr_crds::{ClusterRuntime, RuntimeRollout, application::Application, keys::manager};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use authority::AuthorityWriter;
pub(crate) use document::{RUNS, assessment_map, snapshot_map};
pub(crate) use event::Announced;
pub(crate) use job::Run;
pub(crate) use rights::may;
pub(crate) use rollout::seen_ref;

use crate::{clock::Clock, error::DriveError, settings::DriveSettings};

/// How long one call may take.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(30);

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Written<T> {
    /// It was taken.
    Done(T),
    /// What was decided on is no longer so: changed, gone, or there already. Look again.
    Stale,
}

impl<T> Written<T> {
    /// The same without what was answered.
    pub(crate) fn forget(self) -> Written<()> {
        match self {
            Self::Done(_) => Written::Done(()),
            Self::Stale => Written::Stale,
        }
    }
}

/// Carries out writes.
#[derive(Clone)]
pub(crate) struct Writer {
    client: Client,
    namespace: String,
    engine_namespace: String,
    instance: String,
    clock: Clock,
}

impl Writer {
    /// A writer of this installation.
    pub(crate) fn new(client: Client, settings: &DriveSettings) -> Self {
        Self {
            client,
            namespace: settings.namespace.clone(),
            engine_namespace: settings.decide.engine.namespace.clone(),
            instance: settings.instance.clone(),
            clock: settings.clock,
        }
    }

    fn runtimes(&self) -> Api<ClusterRuntime> {
        Api::all(self.client.clone())
    }

    fn rollouts(&self) -> Api<RuntimeRollout> {
        Api::all(self.client.clone())
    }

    fn applications(&self) -> Api<Application> {
        Api::namespaced(self.client.clone(), &self.engine_namespace)
    }

    fn namespaced<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// A narrow merge patch under our own manager.
async fn merge<K, P>(api: &Api<K>, name: &str, act: impl Display, patch: &P) -> Result<Written<K>, DriveError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
    P: Serialize + std::fmt::Debug,
{
    let params = PatchParams { field_manager: Some(manager::PATCH.to_owned()), ..PatchParams::default() };
    bounded(act, api.patch(name, &params, &Patch::Merge(patch))).await
}

/// A create that fails where the name is taken.
async fn create<K>(api: &Api<K>, act: impl Display, object: &K) -> Result<Written<K>, DriveError>
where
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let params = PostParams { field_manager: Some(manager::APPLY.to_owned()), ..PostParams::default() };
    limited(act, api.create(&params, object), |code| code == 409).await
}

/// A delete of exactly this object; what it owns follows in the background (the default for Jobs would orphan it).
async fn delete<K>(
    api: &Api<K>,
    name: &str,
    act: impl Display,
    uid: &str,
    version: Option<&str>,
) -> Result<Written<()>, DriveError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: version.map(str::to_owned) }),
        ..DeleteParams::default()
    };
    bounded(act, api.delete(name, &params)).await.map(Written::forget)
}

/// Waits for an answer, for as long as one call may take, and sorts conflicts out.
async fn bounded<T>(
    act: impl Display,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<Written<T>, DriveError> {
    limited(act, call, |code| matches!(code, 404 | 409)).await
}

/// The same with the codes that say that what was seen is old; a create that answers 404 lacks its namespace.
async fn limited<T>(
    act: impl Display,
    call: impl Future<Output = Result<T, kube::Error>>,
    stale: fn(u16) -> bool,
) -> Result<Written<T>, DriveError> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Err(_) => Err(DriveError::Timeout { act: act.to_string(), seconds: CALL_LIMIT.as_secs() }),
        Ok(Ok(answer)) => Ok(Written::Done(answer)),
        Ok(Err(kube::Error::Api(status))) if stale(status.code) => {
            tracing::debug!(act = %act, code = status.code, "seen state is old; looking again");
            Ok(Written::Stale)
        }
        Ok(Err(source)) => Err(DriveError::Api { act: act.to_string(), source: Box::new(source) }),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn write_verbs_are_called_here_and_nowhere_else() {
        let verbs = [
            ".patch(",
            ".create(",
            ".replace(",
            ".delete(",
            ".patch_status(",
            ".replace_status(",
            ".delete_collection(",
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        let calls = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            verbs.iter().filter(|verb| text.contains(**verb)).count()
        };
        let (here, elsewhere): (Vec<_>, Vec<_>) = files.iter().partition(|path| path.starts_with(root.join("write")));
        // String::replace takes two arguments and is no write; `.replace(` of an Api takes three.
        let offenders: Vec<_> = elsewhere.into_iter().filter(|path| calls(path) > 0).collect();
        assert!(offenders.is_empty(), "{offenders:?}");
        assert!(here.into_iter().map(calls).sum::<usize>() > 0, "the search finds nothing at all");
    }
}
