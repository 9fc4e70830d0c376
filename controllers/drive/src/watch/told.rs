//! For tests: what the API server would tell each watch.

use kube::{Resource, core::Status, runtime::watcher};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Feed, Feeds};

impl Feeds {
    /// An object of this resource is there, changed, or gone; of a resource that nobody watches nobody hears.
    pub(crate) fn tell(&mut self, resource: &str, gone: bool, object: &Value) {
        match resource {
            "clusterruntimes" => tell(&mut self.runtimes, gone, object),
            "configmaps" if object["metadata"]["labels"][aicr_crds::keys::label::ROLE].is_string() => {
                tell(&mut self.documents, gone, object);
            }
            "nodes" => tell(&mut self.nodes, gone, object),
            "jobs" => tell(&mut self.jobs[0], gone, object),
            "customresourcedefinitions" => tell(&mut self.engine.crds, gone, object),
            "applications" => tell(&mut self.engine.applications, gone, object),
            "appprojects" => tell(&mut self.engine.projects, gone, object),
            "secrets" => self.repo_creds.iter_mut().for_each(|feed| tell(feed, gone, object)),
            _ => {}
        }
    }

    /// The API server forbids the watch on Applications.
    pub(crate) fn refuse_applications(&mut self) {
        let forbidden = Status { code: 403, ..Status::failure("no", "Forbidden") };
        self.engine.applications.take(Err(watcher::Error::InitialListFailed(kube::Error::Api(Box::new(forbidden)))));
    }
}

fn tell<K>(feed: &mut Feed<K>, gone: bool, object: &Value)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object.clone()).unwrap();
    feed.take(Ok(if gone { watcher::Event::Delete(object) } else { watcher::Event::Apply(object) }));
}
