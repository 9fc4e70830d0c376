//! Node groups, counted again only when a node changed in what counts, or the placement did.

use std::sync::{Mutex, PoisonError};

use aicr_crds::runtime::Placement;
use aicr_decide::resolve::{Groups, NodeSeen};

use crate::watch::{Node, Shelf};

/// The last count, with what it was made of.
#[derive(Default)]
pub(super) struct Counted(Mutex<Option<(u64, Placement, Groups)>>);

impl Counted {
    /// The groups of this placement.
    pub(super) fn groups(&self, nodes: &Shelf<Node>, placement: &Placement) -> Groups {
        // Read before the nodes: what changes meanwhile is counted next time.
        let news = nodes.news();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, counted, groups)) = last.as_ref()
            && *of == news
            && counted == placement
        {
            return groups.clone();
        }
        let all = nodes.all();
        let seen = all.iter().map(|node| NodeSeen {
            name: node.metadata.name.as_deref().unwrap_or_default(),
            labels: node.labels(),
            os_image: node.os_image(),
            architecture: node.architecture(),
        });
        let groups = Groups::count(placement, seen);
        *last = Some((news, placement.clone(), groups.clone()));
        groups
    }
}

#[cfg(test)]
mod tests {
    use kube::{
        Api, Client,
        runtime::watcher::{Config, Event},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::watch::{Changes, shelf};

    fn node(pool: &str) -> Node {
        serde_json::from_value(json!({ "metadata": { "name": "n", "labels": { "pool": pool } } })).unwrap()
    }

    fn placement(selector: &Value) -> Placement {
        serde_json::from_value(json!({ "accelerated": { "nodeSelector": selector } })).unwrap()
    }

    #[tokio::test]
    async fn groups_follow_the_nodes_and_the_placement() {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
        });
        let api = Api::all(Client::new(service, "default"));
        let (nodes, mut feed) = shelf("Node", api, Config::default(), &Changes::new());
        let counted = Counted::default();
        let count = |selector: Value| counted.groups(&nodes, &placement(&selector)).accelerated;
        assert_eq!(count(json!({ "pool": "gpu" })), 0);
        feed.take(Ok(Event::Apply(node("gpu"))));
        assert_eq!(count(json!({ "pool": "gpu" })), 1);
        assert_eq!(count(json!({ "pool": "cpu" })), 0);
        feed.take(Ok(Event::Apply(node("cpu"))));
        assert_eq!(count(json!({ "pool": "cpu" })), 1);
        assert_eq!(count(json!({ "pool": "gpu" })), 0);
    }
}
