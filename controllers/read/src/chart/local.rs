//! Local charts of a bundle: what counts as their content, and the archive that is pushed.

use std::collections::BTreeMap;

use aicr_crds::digest::Digest;
use serde::Serialize;
use serde_json::Value;

use crate::{
    archive::{self, Files},
    error::ReadError,
    yaml,
};

const METADATA: &str = "Chart.yaml";

/// AICR stamps its own version here and into `version`, and its component's into the other and into `appVersion`.
const STAMPS: [&str; 2] = ["aicr.run/generated-by", "aicr.run/component-version"];

/// Packs a local chart: sorted, no times, no owners, mode 0644, below a folder named after the chart. The same files
/// give the same bytes.
///
/// # Errors
/// `Damaged` for a path that a tar archive cannot hold.
pub fn local_archive(name: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, ReadError> {
    archive::pack(&format!("the local chart {name}"), name, files)
}

#[derive(Serialize)]
struct Content<'a> {
    files: BTreeMap<&'a str, Digest>,
    chart: Option<Value>,
}

/// The identity of a local chart's content: its files, without what AICR stamps with its own version and with that of
/// the component, unless a template reads it. So a readiness gate stays the same gate while its component moves.
///
/// # Errors
/// `Damaged` if `Chart.yaml` is missing or does not parse.
pub fn local_content(files: &BTreeMap<String, Vec<u8>>) -> Result<Digest, ReadError> {
    let what = "the local chart's Chart.yaml";
    let Some(metadata) = files.get(METADATA) else {
        return Err(ReadError::damaged(what, "it is missing"));
    };
    let mut chart: Value = yaml::read(what, metadata, yaml::DOCUMENT_LIMIT)?;
    let whole = reads_chart(files);
    let Some(fields) = chart.as_object_mut() else {
        return Err(ReadError::damaged(what, "it is no map"));
    };
    if !whole {
        fields.remove("version");
        if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !STAMPS.contains(&key.as_str()));
        }
        if !reads_app_version(files) {
            fields.remove("appVersion");
        }
    }
    let counted = files.iter().filter(|(path, _)| whole || *path != METADATA);
    let content = Content {
        files: counted.map(|(path, bytes)| (path.as_str(), Digest::of(bytes))).collect(),
        chart: (!whole).then_some(chart),
    };
    Digest::of_canonical(&content).map_err(|error| ReadError::damaged(what, error.to_string()))
}

/// Whether a file may see the chart's version: by name, or with the whole chart, its annotations or the whole scope.
/// When in doubt it does, which costs no more than a new archive with an AICR release.
fn reads_chart(files: &Files) -> bool {
    files.iter().filter(|(path, _)| *path != METADATA).any(|(_, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        let chart = text.match_indices(".Chart").any(|(at, found)| shows_version(&text[at + found.len()..]));
        let by_index = text.contains("\"Chart\"") || text.contains("`Chart`");
        chart || by_index || text.lines().any(shows_scope)
    })
}

fn reads_app_version(files: &Files) -> bool {
    files
        .iter()
        .filter(|(path, _)| *path != METADATA)
        .any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("AppVersion"))
}

/// Whether `.Chart` followed by this is more than one harmless field.
fn shows_version(rest: &str) -> bool {
    const HARMLESS: [&str; 9] =
        ["Name", "AppVersion", "Description", "Type", "Keywords", "Home", "Icon", "IsRoot", "KubeVersion"];
    let field: String = rest
        .strip_prefix('.')
        .map(|rest| rest.chars().take_while(char::is_ascii_alphabetic).collect())
        .unwrap_or_default();
    !HARMLESS.contains(&field.as_str())
}

/// Whether the line prints the whole scope, which holds the chart.
fn shows_scope(line: &str) -> bool {
    ["toYaml", "toJson", "toPrettyJson", "toRawJson", "toString", "print"].iter().any(|function| {
        line.match_indices(function).any(|(at, found)| {
            let argument = line[at + found.len()..].split_whitespace().next().unwrap_or_default();
            matches!(argument.trim_end_matches(['}', ')', '-', '|']), "." | "$")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart;
    use rstest::rstest;

    fn chart_files(version: &str, generated_by: &str, template: &str) -> Files {
        let meta = format!(
            "apiVersion: v2\nname: tuning\ntype: application\nversion: {version}\nappVersion: \"2\"\nannotations:\n  \
             aicr.run/component-version: \"2\"\n  aicr.run/generated-by: {generated_by}\n"
        );
        Files::from([
            (METADATA.to_owned(), meta.into_bytes()),
            ("templates/a.yaml".to_owned(), template.as_bytes().to_vec()),
        ])
    }

    fn content(version: &str, template: &str) -> Digest {
        local_content(&chart_files(version, &format!("v{version}"), template)).unwrap()
    }

    #[rstest]
    #[case::rendered("kind: ConfigMap\nmetadata:\n  name: chart\n")]
    #[case::name("name: {{ .Chart.Name }}\n")]
    #[case::app_version("v: {{ $.Chart.AppVersion }}\n")]
    #[case::scoped_yaml("{{ toYaml .Values }}\n")]
    fn another_aicr_version_is_the_same_content(#[case] template: &str) {
        assert_eq!(content("1.0.0", template), content("1.1.2", template));
    }

    #[rstest]
    #[case::version("v: {{ .Chart.Version }}\n")]
    #[case::root_version("v: {{ $.Chart.Version | quote }}\n")]
    #[case::whole("v: {{ toYaml .Chart }}\n")]
    #[case::within("{{ with .Chart }}{{ .Version }}{{ end }}\n")]
    #[case::annotations("v: {{ .Chart.Annotations | toJson }}\n")]
    #[case::index("v: {{ (index . \"Chart\").Version }}\n")]
    #[case::scope("v: {{ toYaml . }}\n")]
    #[case::root_scope("v: {{- toJson $ -}}\n")]
    fn a_template_that_sees_the_version_makes_it_count(#[case] template: &str) {
        assert_ne!(content("1.0.0", template), content("1.1.2", template));
    }

    #[test]
    fn everything_else_counts() {
        let base = chart_files("1.0.0", "v1.0.0", "a: 1\n");
        let digest = local_content(&base).unwrap();
        let mut renamed = base.clone();
        let bytes = renamed.remove("templates/a.yaml").unwrap();
        renamed.insert("templates/b.yaml".to_owned(), bytes);
        for other in [renamed, chart_files("1.0.0", "v1.0.0", "a: 2\n")] {
            assert_ne!(local_content(&other).unwrap(), digest);
        }
    }

    #[rstest]
    #[case::not_read("a: 1\n", true)]
    #[case::read("v: {{ .Chart.AppVersion }}\n", false)]
    fn the_component_s_version_counts_only_where_a_template_reads_it(#[case] template: &str, #[case] same: bool) {
        let one = chart_files("1.0.0", "v1.0.0", template);
        let meta = String::from_utf8(one[METADATA].clone()).unwrap();
        let moved = meta.replace("appVersion: \"2\"", "appVersion: \"3\"").replace("version: \"2\"", "version: \"3\"");
        let mut other = one.clone();
        other.insert(METADATA.to_owned(), moved.into_bytes());
        assert_ne!(one, other);
        assert_eq!(local_content(&one).unwrap() == local_content(&other).unwrap(), same);
    }

    #[test]
    fn a_chart_without_metadata_has_no_content() {
        assert!(local_content(&Files::new()).is_err());
        assert!(local_content(&Files::from([(METADATA.to_owned(), b"a: [".to_vec())])).is_err());
        assert!(local_content(&Files::from([(METADATA.to_owned(), b"- a\n".to_vec())])).is_err());
    }

    #[test]
    fn the_archive_is_a_chart_that_reads_back() {
        let files = chart_files("1.0.0", "v1.0.0", "kind: ConfigMap\n");
        let packed = local_archive("tuning", &files).unwrap();
        assert_eq!(packed, local_archive("tuning", &files).unwrap());
        let chart = chart::read(&packed).unwrap();
        assert_eq!((chart.name.as_str(), chart.version.as_str()), ("tuning", "1.0.0"));
        assert!(local_archive("tuning", &Files::from([("../x".to_owned(), Vec::new())])).is_err());
    }
}
