//! Custom resource definitions in a chart's files, found by lines: a template is no YAML until it is rendered.

use serde_json::Value;

use super::has_extension;

const KIND: &str = "CustomResourceDefinition";

/// What one file defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Literal names, in the file's order.
    pub(super) names: Vec<String>,
    /// Whether there is a definition whose name is not literal.
    pub(super) unnamed: bool,
}

/// Looks for definitions in one file.
pub(super) fn scan(path: &str, content: &[u8]) -> Found {
    let text = String::from_utf8_lossy(content);
    if !text.contains(KIND) {
        return Found::default();
    }
    let mut found = Found::default();
    if has_extension(path, "json")
        && let Ok(value) = serde_json::from_str::<Value>(&text)
    {
        json(&value, &mut found);
        return found;
    }
    for document in text.split("\n---") {
        let lines: Vec<Line<'_>> = document.lines().filter_map(Line::of).collect();
        for (index, line) in lines.iter().enumerate() {
            if line.value_of("kind") == Some(KIND) {
                found.add(name(&lines, index));
            }
        }
    }
    found
}

impl Found {
    fn add(&mut self, name: Option<&str>) {
        match name.filter(|name| is_literal(name)) {
            Some(name) => self.names.push(name.to_owned()),
            None => self.unnamed = true,
        }
    }
}

/// A definition's name is `<plural>.<group>`.
fn is_literal(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    name.len() <= 253 && name.contains('.') && name.chars().all(inner)
}

fn json(value: &Value, found: &mut Found) {
    if let Some(items) = value.get("items").and_then(Value::as_array) {
        for item in items {
            json(item, found);
        }
    } else if value.get("kind").and_then(Value::as_str) == Some(KIND) {
        found.add(value.pointer("/metadata/name").and_then(Value::as_str));
    }
}

/// A line that carries content.
struct Line<'a> {
    indent: usize,
    text: &'a str,
    starts_item: bool,
}

impl<'a> Line<'a> {
    /// Blank lines, comments, document markers and lines of template code alone carry none.
    fn of(line: &'a str) -> Option<Self> {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') || text.starts_with("{{") || text.starts_with("---") {
            return None;
        }
        let indent = line.len() - line.trim_start().len();
        let Some(item) = text.strip_prefix("- ") else {
            return Some(Self { indent, text, starts_item: false });
        };
        let inner = item.trim_start();
        Some(Self { indent: indent + text.len() - inner.len(), text: inner, starts_item: true })
    }

    /// The scalar after this key, without quotes and comment.
    fn value_of(&self, key: &str) -> Option<&'a str> {
        let (found, value) = self.text.split_once(':')?;
        if found.trim_matches(['"', '\'']) != key {
            return None;
        }
        let value = value.split_once(" #").map_or(value, |(value, _)| value);
        Some(value.trim().trim_matches(['"', '\'']))
    }
}

/// The name in the metadata of the object whose kind stands at this line.
fn name<'a>(lines: &[Line<'a>], kind: usize) -> Option<&'a str> {
    let indent = lines[kind].indent;
    let first = |line: &Line<'_>| line.starts_item && line.indent == indent;
    let mut start = kind;
    while start > 0 && !first(&lines[start]) && lines[start - 1].indent >= indent {
        start -= 1;
    }
    let rest = &lines[kind + 1..];
    let length = rest.iter().position(|line| line.indent < indent || first(line)).unwrap_or(rest.len());
    let object = &lines[start..=kind + length];
    let metadata = object.iter().position(|line| line.indent == indent && line.value_of("metadata") == Some(""))?;
    let children = &object[metadata + 1..];
    let child = children.first()?.indent;
    let mut below = children.iter().take_while(|line| line.indent > indent);
    below.find_map(|line| line.value_of("name").filter(|_| line.indent == child))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("kind: CustomResourceDefinition\nmetadata:\n  name: a.x.io\n", &["a.x.io"], false)]
    #[case::kind_last("metadata:\n  name: a.x.io\nspec:\n  names:\n    kind: A\nkind: CustomResourceDefinition\n", &["a.x.io"], false)]
    #[case::quoted("kind: \"CustomResourceDefinition\" # x\nmetadata:\n  labels:\n    name: b\n  name: 'a.x.io'\n", &["a.x.io"], false)]
    #[case::name_of_a_label("kind: CustomResourceDefinition\nmetadata:\n  labels:\n    name: b.x.io\n  annotations: {}\n", &[], true)]
    #[case::guarded("{{- if .Values.crds }}\nkind: CustomResourceDefinition\nmetadata:\n  annotations:\n  {{- with .Values.a }}\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n  name: a.x.io\n{{- end }}\n", &["a.x.io"], false)]
    #[case::computed("kind: CustomResourceDefinition\nmetadata:\n  name: {{ include \"n\" . }}.x.io\n", &[], true)]
    #[case::two_documents("kind: CustomResourceDefinition\nmetadata:\n  name: a.x.io\n---\nkind: CustomResourceDefinition\nmetadata:\n  name: b.x.io\n", &["a.x.io", "b.x.io"], false)]
    #[case::other_document("kind: CustomResourceDefinition\n---\nkind: Role\nmetadata:\n  name: b.x.io\n", &[], true)]
    #[case::list("kind: List\nitems:\n- kind: CustomResourceDefinition\n  metadata:\n    name: a.x.io\n- metadata:\n    name: b.x.io\n  kind: CustomResourceDefinition\n", &["a.x.io", "b.x.io"], false)]
    #[case::no_definition("kind: Role\nrules: [CustomResourceDefinition]\n", &[], false)]
    #[case::commented("# kind: CustomResourceDefinition\n", &[], false)]
    #[case::cut("kind: CustomResourceDefinition", &[], true)]
    #[case::metadata_cut("kind: CustomResourceDefinition\nmetadata:", &[], true)]
    #[case::carriage_returns("kind: CustomResourceDefinition\r\nmetadata:\r\n  name: a.x.io\r\n", &["a.x.io"], false)]
    fn definitions_are_found_by_lines(#[case] text: &str, #[case] names: &[&str], #[case] unnamed: bool) {
        let found = scan("templates/a.yaml", text.as_bytes());
        assert_eq!(found, Found { names: names.iter().map(|name| (*name).to_owned()).collect(), unnamed });
    }

    #[test]
    fn definitions_in_json_are_found() {
        let text = br#"{"items": [{"kind": "CustomResourceDefinition", "metadata": {"name": "a.x.io"}}]}"#;
        assert_eq!(scan("crds/a.json", text).names, ["a.x.io"]);
    }
}
