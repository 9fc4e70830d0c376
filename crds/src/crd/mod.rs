//! Both kinds as the API server is told of them: the derived schema, and the bounds and rules that a type cannot say.

mod columns;
mod rollout;
mod rules;
mod runtime;
mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt as _;

use crate::{ClusterRuntime, RuntimeRollout};

/// The CRD of [`ClusterRuntime`].
pub fn cluster_runtime() -> CustomResourceDefinition {
    complete(ClusterRuntime::crd(), runtime::guard, &columns::of_cluster_runtime())
}

/// The CRD of [`RuntimeRollout`].
pub fn runtime_rollout() -> CustomResourceDefinition {
    complete(RuntimeRollout::crd(), rollout::guard, &columns::of_runtime_rollout())
}

fn complete(
    mut crd: CustomResourceDefinition,
    guard: fn(&mut JSONSchemaProps),
    columns: &[CustomResourceColumnDefinition],
) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        version.additional_printer_columns = Some(columns.to_vec());
        if let Some(schema) = version.schema.as_mut().and_then(|validation| validation.open_api_v3_schema.as_mut()) {
            schema::simplify(schema);
            guard(schema);
        }
    }
    crd
}
