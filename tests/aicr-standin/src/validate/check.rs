//! One check, in the pod of its own that the launcher made: looks at the live cluster and says what it found.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::Value;

use super::launch::{DOCUMENT, VERDICT};
use crate::args::{Flag, Parsed};
use crate::failure::{Failure, api_words};
use crate::{configmap, log, place};

pub(crate) const FLAGS: &[Flag] = &[Flag::one("recipe")];

/// Every Deployment in the namespaces of the recipe must be available.
pub(crate) async fn run(parsed: &Parsed) -> Result<(), Failure> {
    let recipe = place::document(parsed.get("recipe").unwrap_or(DOCUMENT), None).await?;
    let unready = unready(&configmap::client(None).await?, &recipe).await?;
    if unready.is_empty() {
        return Ok(());
    }
    log::plain(&format!("{VERDICT}not available: {}", unready.join(", ")));
    Err(Failure::internal("the check failed"))
}

async fn unready(client: &Client, recipe: &Value) -> Result<Vec<String>, Failure> {
    let entries = recipe["componentRefs"].as_array().into_iter().flatten();
    let namespaces: BTreeSet<&str> = entries.filter_map(|entry| entry["namespace"].as_str()).collect();
    let mut unready = Vec::new();
    for namespace in namespaces {
        let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        let list = api.list(&ListParams::default()).await.map_err(|error| {
            Failure::internal(format!("failed to list deployments in {namespace}: {}", api_words(&error)))
        })?;
        let found = list.items.iter().filter(|deployment| !available(deployment));
        unready.extend(found.map(|d| format!("{namespace}/{}", d.metadata.name.as_deref().unwrap_or_default())));
    }
    Ok(unready)
}

fn available(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let there = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    there >= wanted
}
