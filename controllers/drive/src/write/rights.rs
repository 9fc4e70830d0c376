//! What the API server would let the operator write: asked beforehand, since a write that is refused comes too late.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};

use super::{Written, bounded};
use crate::error::DriveError;

/// Whether the operator may do this to Applications of the namespace.
pub(crate) async fn may(client: &Client, verb: &str, namespace: &str) -> Result<bool, DriveError> {
    let attributes = ResourceAttributes {
        group: Some("argoproj.io".to_owned()),
        resource: Some("applications".to_owned()),
        namespace: Some(namespace.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let (act, params) = (format!("ask whether to {verb} Applications"), PostParams::default());
    Ok(match bounded(act, api.create(&params, &review)).await? {
        Written::Done(review) => review.status.is_some_and(|status| status.allowed),
        // An API server without the question says nothing of the answer.
        Written::Stale => true,
    })
}
