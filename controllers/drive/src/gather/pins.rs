//! The images of AICR's checks, held against those that the installation pins.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// Pinned images: name with tag, and digest.
#[derive(Clone, Debug, Default)]
pub(super) struct Pins(BTreeMap<String, String>);

impl Pins {
    /// Of references `REPOSITORY:TAG@DIGEST`; others pin nothing.
    pub(super) fn new(images: &[String]) -> Self {
        let pair = |image: &String| image.split_once('@').map(|(name, digest)| (name.to_owned(), digest.to_owned()));
        Self(images.iter().filter_map(pair).collect())
    }

    /// What speaks against the images that this pod runs, by what the node resolved them to.
    pub(super) fn against(&self, pod: &Pod) -> BTreeSet<String> {
        let status = pod.status.as_ref();
        let all = status.into_iter().flat_map(|status| {
            status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
        });
        all.filter_map(|container| self.refused(container)).collect()
    }

    fn refused(&self, container: &ContainerStatus) -> Option<String> {
        // Empty until the image is pulled.
        let digest = container.image_id.rsplit_once('@').map(|(_, digest)| digest)?;
        if self.0.values().any(|pinned| pinned == digest) {
            return None;
        }
        let name = container.image.split('@').next().unwrap_or_default();
        Some(match self.0.get(name) {
            Some(pinned) => format!("validator image {name} resolved to {digest}, aicr.validatorImages pins {pinned}"),
            None => format!("validator image {name}@{digest} is not pinned in aicr.validatorImages"),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(image: &str, id: &str) -> Pod {
        let container = json!({ "name": "c", "image": image, "imageID": id, "ready": true, "restartCount": 0 });
        serde_json::from_value(json!({ "metadata": {}, "status": { "containerStatuses": [container] } })).unwrap()
    }

    #[test]
    fn an_image_that_is_not_pinned_or_resolved_to_something_else_is_named() {
        let pins = Pins::new(&["g/deployment:v1.1.2@sha256:aa".to_owned(), "g/other:v1".to_owned()]);
        assert!(pins.against(&pod("g/deployment:v1.1.2", "g/deployment@sha256:aa")).is_empty());
        assert!(pins.against(&pod("mirror/deployment:v1.1.2", "mirror/deployment@sha256:aa")).is_empty());
        assert!(pins.against(&pod("g/deployment:v1.1.2", "")).is_empty(), "not pulled yet");
        let said = |image: &str, id: &str| pins.against(&pod(image, id)).into_iter().next().unwrap();
        assert_eq!(
            said("g/deployment:v1.1.2", "g/deployment@sha256:bb"),
            "validator image g/deployment:v1.1.2 resolved to sha256:bb, aicr.validatorImages pins sha256:aa"
        );
        assert_eq!(
            said("g/deployment:v9", "g/deployment@sha256:cc"),
            "validator image g/deployment:v9@sha256:cc is not pinned in aicr.validatorImages"
        );
    }
}
