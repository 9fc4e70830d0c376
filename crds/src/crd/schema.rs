//! Edits of a CRD's schema by path, so that a bound or a rule is written beside the name of the field that it guards.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::rules::{self, Rule};

/// The longest label key: a prefix of 253, a slash and a name of 63 characters.
const LABEL_KEY: u16 = 317;
/// The longest label value.
const LABEL_VALUE: i64 = 63;

/// The field at a path of names, such as `spec.selection`.
///
/// A name that is not there becomes a field without type, which a test refuses.
pub(super) fn at<'schema>(schema: &'schema mut JSONSchemaProps, path: &str) -> &'schema mut JSONSchemaProps {
    path.split('.')
        .fold(schema, |field, name| field.properties.get_or_insert_default().entry(name.to_owned()).or_default())
}

/// Edits the items of a list.
pub(super) fn items(list: &mut JSONSchemaProps, edit: impl FnOnce(&mut JSONSchemaProps)) {
    let mut item = match list.items.take() {
        Some(JSONSchemaPropsOrArray::Schema(item)) => item,
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => Box::default(),
    };
    edit(&mut item);
    list.items = Some(JSONSchemaPropsOrArray::Schema(item));
}

/// Adds a rule.
pub(super) fn require(field: &mut JSONSchemaProps, rule: Rule) {
    field.x_kubernetes_validations.get_or_insert_default().push(rule.into());
}

/// A list whose items are told apart by these fields; two alike are refused.
pub(super) fn keyed_by(list: &mut JSONSchemaProps, keys: &[&str]) {
    list.x_kubernetes_list_type = Some("map".to_owned());
    list.x_kubernetes_list_map_keys = Some(keys.iter().map(|&key| key.to_owned()).collect());
}

/// A map of node labels: how many it may hold, and what a key and a value may be.
pub(super) fn labels(map: &mut JSONSchemaProps, least: i64, most: i64) {
    map.min_properties = Some(least).filter(|&least| least > 0);
    map.max_properties = Some(most);
    map.additional_properties = Some(JSONSchemaPropsOrBool::Schema(Box::new(JSONSchemaProps {
        type_: Some("string".to_owned()),
        max_length: Some(LABEL_VALUE),
        pattern: Some(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$".to_owned()),
        ..JSONSchemaProps::default()
    })));
    require(map, rules::label_keys(LABEL_KEY));
}

/// A text of so many characters.
pub(super) fn text(field: &mut JSONSchemaProps, least: i64, most: i64) {
    field.min_length = Some(least).filter(|&least| least > 0);
    field.max_length = Some(most);
}

/// One of these words.
pub(super) fn words(field: &mut JSONSchemaProps, words: &[&str]) {
    field.enum_ = Some(words.iter().map(|&word| JSON(word.into())).collect());
}

/// What holds everywhere: no titles, no `nullable`, and lists that have one owner as a whole.
///
/// Without `nullable` the API server refuses a null, so that a field is there or not, for every rule and every digest.
pub(super) fn simplify(schema: &mut JSONSchemaProps) {
    schema.title = None;
    schema.nullable = None;
    if schema.items.is_some() {
        schema.x_kubernetes_list_type = Some("atomic".to_owned());
        items(schema, simplify);
    }
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(simplify);
}
