//! Reading a CRD's schema in tests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The schema of the only version.
pub(crate) fn of(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    assert_eq!(crd.spec.versions.len(), 1);
    crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()
}

/// The field at a path of names.
pub(crate) fn at<'schema>(schema: &'schema JSONSchemaProps, path: &str) -> &'schema JSONSchemaProps {
    path.split('.').fold(schema, |field, name| {
        field.properties.as_ref().and_then(|fields| fields.get(name)).unwrap_or_else(|| panic!("{path} is not there"))
    })
}

/// The CEL rules of a field.
pub(crate) fn rules(field: &JSONSchemaProps) -> Vec<&str> {
    field.x_kubernetes_validations.iter().flatten().map(|rule| rule.rule.as_str()).collect()
}

/// Every field below and with this one, each with its path (`[]` for items, `{}` for the values of a map).
pub(crate) fn fields<'schema>(schema: &'schema JSONSchemaProps, path: &str) -> Vec<(String, &'schema JSONSchemaProps)> {
    let mut found = vec![(path.to_owned(), schema)];
    for (name, field) in schema.properties.iter().flatten() {
        found.extend(fields(field, &format!("{path}.{name}")));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        found.extend(fields(item, &format!("{path}[]")));
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
        found.extend(fields(value, &format!("{path}{{}}")));
    }
    found
}
