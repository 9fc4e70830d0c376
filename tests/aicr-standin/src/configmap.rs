//! Documents in ConfigMaps, as every AICR command reads and writes them: one GET, one forced apply.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use crate::failure::{Code, Failure, api_status, api_words, in_words};
use crate::place::Format;
use crate::release;

const NO_CONFIG: &str = "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT \
                         must be defined";

/// A client by flag, `KUBECONFIG`, the home's file, or the pod's own account.
pub(crate) async fn client(kubeconfig: Option<&str>) -> Result<Client, Failure> {
    let none = |cause: String| Failure::internal(format!("failed to create kubernetes client: {cause}"));
    let config = match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(Path::new(path)).map_err(|error| none(in_words(&error)))?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .map_err(|error| none(in_words(&error)))?
        }
        None => Config::infer().await.map_err(|_| none(NO_CONFIG.into()))?,
    };
    Client::try_from(config).map_err(|error| none(api_words(&error)))
}

/// The document of a ConfigMap.
pub(crate) async fn read(client: &Client, namespace: &str, name: &str) -> Result<String, Failure> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let found = api.get(name).await.map_err(|error| unread(namespace, name, &error))?;
    let data = found.data.unwrap_or_default();
    let format = data.get("format").map_or("yaml", String::as_str);
    data.get(&format!("snapshot.{format}"))
        .cloned()
        .ok_or_else(|| Failure::not_found(format!("ConfigMap {namespace}/{name} has no data key snapshot.{format}")))
}

/// The oldest release takes every failed read for a missing object; newer ones tell the causes apart.
fn unread(namespace: &str, name: &str, error: &kube::Error) -> Failure {
    let oldest = release::oldest();
    let code = match api_status(error) {
        Some(404) => Code::NotFound,
        _ if oldest => Code::NotFound,
        Some(401 | 403) => Code::Unauthorized,
        Some(504) => Code::Timeout,
        Some(_) | None => Code::ServiceUnavailable,
    };
    if api_status(error) == Some(404) && !oldest {
        return Failure::new(code, format!("ConfigMap {namespace}/{name} not found"));
    }
    Failure::new(code, format!("failed to get ConfigMap {namespace}/{name}: {}", api_words(error)))
}

/// Applies a document with AICR's labels and keys; what others own in the ConfigMap stays.
pub(crate) async fn write(
    client: &Client,
    (namespace, name): (&str, &str),
    kind: &str,
    (format, text): (Format, &str),
) -> Result<(), Failure> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                "app.kubernetes.io/name": "aicr",
                "app.kubernetes.io/component": kind,
                "app.kubernetes.io/version": release::stamped(),
            },
        },
        "data": {
            format!("snapshot.{}", format.name()): text,
            "format": format.name(),
            "timestamp": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
    });
    let params = PatchParams::apply("aicr").force();
    api.patch(name, &params, &Patch::Apply(body)).await.map(drop).map_err(|error| {
        Failure::internal(format!("failed to apply ConfigMap: {}", api_words(&error)))
            .within(Code::Internal, format!("failed to serialize to ConfigMap {namespace}/{name}"))
    })
}

/// Adds one to the number in a counting ConfigMap and returns it; a lost race is tried again.
pub(crate) async fn count(client: &Client, namespace: &str, name: &str) -> Result<u32, Failure> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let failed = |error: &kube::Error| Failure::internal(format!("count in {namespace}/{name}: {}", api_words(error)));
    for _ in 0..10 {
        let found = api.get_opt(name).await.map_err(|error| failed(&error))?;
        let exists = found.is_some();
        let mut map = found.unwrap_or_default();
        let data = map.data.get_or_insert_default();
        let runs = data.get("runs").and_then(|runs| runs.parse().ok()).unwrap_or(0u32) + 1;
        data.insert("runs".into(), runs.to_string());
        map.metadata.name = Some(name.to_owned());
        let written = if exists {
            api.replace(name, &PostParams::default(), &map).await
        } else {
            api.create(&PostParams::default(), &map).await
        };
        match written {
            Ok(_) => return Ok(runs),
            Err(error) if api_status(&error) == Some(409) => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    Err(Failure::internal(format!("count in {namespace}/{name}: too many conflicts")))
}
