//! A chart's own default values, with those of the charts nested in it below their names.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{EXPANDED_LIMIT, NESTING_LIMIT, WHAT, has_extension, identity, unpack};
use crate::{
    archive::Files,
    error::{ReadError, quoted},
    values, yaml,
};

/// The longest default values of one chart, in bytes.
const LIMIT: usize = 4 << 20;

type View<'a> = BTreeMap<&'a str, &'a [u8]>;

/// Reads the default values of a packed chart: what stands in `values.yaml`, and below the name or alias of each
/// nested chart what stands in that one's. What the outer chart says counts more.
///
/// # Errors
/// `TooLarge` beyond the limits of a chart or 4 MiB of values, else `Damaged`.
pub fn default_values(tgz: &[u8]) -> Result<Value, ReadError> {
    let mut left = EXPANDED_LIMIT;
    let files = unpack(WHAT, tgz, &mut left)?;
    let view = files.iter().map(|(path, content)| (path.as_str(), content.as_slice())).collect();
    collect(&view, &mut left, NESTING_LIMIT).map(Value::Object)
}

fn collect(files: &View<'_>, left: &mut u64, nesting: usize) -> Result<Map<String, Value>, ReadError> {
    let mut all = own(files)?;
    let packed = packed(files, left)?;
    let mut nested = unpacked(files);
    nested.extend(
        packed.iter().map(|files| files.iter().map(|(path, content)| (path.as_str(), content.as_slice())).collect()),
    );
    if nested.is_empty() {
        return Ok(all);
    }
    let Some(nesting) = nesting.checked_sub(1) else {
        return Err(ReadError::damaged(WHAT, format!("charts nest deeper than {NESTING_LIMIT} levels")));
    };
    let aliases = dependencies(files);
    for view in nested {
        let Some(metadata) = view.get("Chart.yaml") else { continue };
        let (name, _) = identity(&format!("a chart nested in {WHAT}"), metadata)?;
        let below = collect(&view, left, nesting)?;
        if let Some(global) = below.get("global").and_then(Value::as_object) {
            fill(&mut all, "global", global);
        }
        for key in aliases.get(&name).unwrap_or(&vec![name.clone()]) {
            fill(&mut all, key, &below);
        }
    }
    Ok(all)
}

fn own(files: &View<'_>) -> Result<Map<String, Value>, ReadError> {
    let what = "the default values of the chart";
    let Some(bytes) = files.get("values.yaml") else { return Ok(Map::new()) };
    let text = yaml::text(what, bytes, LIMIT)?;
    if values::is_blank(text) {
        return Ok(Map::new());
    }
    match yaml::lenient(text).map_err(|problem| ReadError::damaged(what, problem))? {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ReadError::damaged(what, "they are no map"))
        }
    }
}

/// Nested charts that lie unpacked below `charts/<folder>/`.
fn unpacked<'a>(files: &View<'a>) -> Vec<View<'a>> {
    let mut found: BTreeMap<&str, View<'a>> = BTreeMap::new();
    for (path, content) in files {
        if let Some((folder, below)) = path.strip_prefix("charts/").and_then(|rest| rest.split_once('/')) {
            found.entry(folder).or_default().insert(below, content);
        }
    }
    found.into_values().collect()
}

fn packed(files: &View<'_>, left: &mut u64) -> Result<Vec<Files>, ReadError> {
    let is_packed =
        |path: &str| path.strip_prefix("charts/").is_some_and(|name| !name.contains('/')) && has_extension(path, "tgz");
    let mut found = Vec::new();
    for (path, content) in files.iter().filter(|(path, _)| is_packed(path)) {
        found.push(unpack(&format!("the nested chart {}", quoted(path)), content, left)?);
    }
    Ok(found)
}

/// Under which keys a nested chart takes its values; charts that nobody names take them under their name.
fn dependencies(files: &View<'_>) -> BTreeMap<String, Vec<String>> {
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        dependencies: Vec<Dependency>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        name: String,
        alias: Option<String>,
    }
    let metadata =
        files.get("Chart.yaml").and_then(|bytes| yaml::read::<Metadata>(WHAT, bytes, yaml::DOCUMENT_LIMIT).ok());
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Dependency { name, alias } in metadata.map(|metadata| metadata.dependencies).unwrap_or_default() {
        let key = alias.filter(|alias| !alias.is_empty()).unwrap_or_else(|| name.clone());
        keys.entry(name).or_default().push(key);
    }
    keys
}

/// Adds below a key what does not stand there yet.
fn fill(all: &mut Map<String, Value>, key: &str, more: &Map<String, Value>) {
    let slot = all.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(fields) = slot {
        merge(fields, more);
    }
}

fn merge(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (into.get_mut(key), value) {
            (None, _) => drop(into.insert(key.clone(), value.clone())),
            (Some(Value::Object(fields)), Value::Object(more)) => merge(fields, more),
            (Some(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::pack;
    use serde_json::json;

    fn chart(rows: &[(&str, &[u8])]) -> Vec<u8> {
        let files = rows.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect();
        pack("c", "top", &files).unwrap()
    }

    #[test]
    fn nested_charts_have_their_values_below_name_or_alias_and_the_outer_ones_count_more() {
        let deep = chart(&[("Chart.yaml", b"name: deep\nversion: 1.0.0\n"), ("values.yaml", b"level: 3\n")]);
        let packed = chart(&[
            ("Chart.yaml", b"name: nfd\nversion: 1.0.0\n"),
            ("values.yaml", b"image: {tag: a, pull: b}\nglobal: {registry: r}\n"),
            ("charts/deep.tgz", &deep),
        ]);
        let whole = chart(&[
            (
                "Chart.yaml",
                b"name: top\nversion: 1.0.0\ndependencies:\n- name: nfd\n  alias: node-feature\n- name: nfd\n",
            ),
            ("values.yaml", b"a: 1\nnode-feature: {image: {tag: mine}}\nflat: {b: 2}\n"),
            ("charts/nfd-1.0.0.tgz", &packed),
            ("charts/flat/Chart.yaml", b"name: flat\nversion: 1.0.0\n"),
            ("charts/flat/values.yaml", b"# only this\nc: 3\n"),
            ("charts/none/README.md", b"no chart"),
        ]);
        let expected = json!({
            "a": 1, "flat": {"b": 2, "c": 3}, "global": {"registry": "r"},
            "node-feature": {"image": {"tag": "mine", "pull": "b"}, "global": {"registry": "r"}, "deep": {"level": 3}},
            "nfd": {"image": {"tag": "a", "pull": "b"}, "global": {"registry": "r"}, "deep": {"level": 3}},
        });
        assert_eq!(default_values(&whole).unwrap(), expected);
    }

    #[test]
    fn values_are_read_as_helm_does() {
        let of = |text: &[u8]| default_values(&chart(&[("values.yaml", text)]));
        assert_eq!(of(b"a: 1\na: 2\n").unwrap(), json!({"a": 2}));
        for blank in [b"".as_slice(), b"# nothing\n", b"---\n", b"null\n"] {
            assert_eq!(of(blank).unwrap(), json!({}));
        }
        assert_eq!(default_values(&chart(&[("README.md", b"")])).unwrap(), json!({}));
        for bad in [b"- a\n".as_slice(), b"a: [\n", b"\xff", b"text\n"] {
            assert!(matches!(of(bad), Err(ReadError::Damaged { .. })));
        }
        assert!(matches!(of(&vec![b'#'; LIMIT + 1]), Err(ReadError::TooLarge { .. })));
    }

    #[test]
    fn nesting_is_bounded() {
        let mut packed = chart(&[("Chart.yaml", b"name: x\nversion: 1.0.0\n")]);
        for _ in 0..=NESTING_LIMIT {
            assert!(default_values(&packed).is_ok());
            packed = chart(&[("Chart.yaml", b"name: x\nversion: 1.0.0\n"), ("charts/x.tgz", &packed)]);
        }
        assert!(default_values(&packed).unwrap_err().to_string().contains("deeper"));
    }
}
