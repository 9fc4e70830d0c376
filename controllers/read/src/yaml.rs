//! One bounded YAML or JSON document, from bytes to a typed value.
//!
//! JSON is read by the same parser as YAML, so that duplicate keys, a second document, deep nesting and alias bombs
//! are refused in both.

use serde::{
    Deserialize,
    de::{DeserializeOwned, DeserializeSeed},
};

use crate::error::{ReadError, bounded, quoted};

/// The largest document that is read, in bytes: what a ConfigMap can hold.
pub const DOCUMENT_LIMIT: usize = 1 << 20;

/// The deepest nesting that is read, in levels.
pub const DEPTH_LIMIT: usize = 64;

/// How much of a document may be said again by aliases, in YAML events; AICR itself uses none.
const REPLAY_LIMIT: usize = 20_000;

/// Reads exactly one document of at most `limit` bytes; `what` names it in errors.
///
/// Text fields take plain scalars as they are written (`1.10` stays `1.10`).
///
/// # Errors
/// `TooLarge` beyond the limit; `Damaged`, with line and column where known, for everything else.
pub fn read<T: DeserializeOwned>(what: &str, bytes: &[u8], limit: usize) -> Result<T, ReadError> {
    parse(text(what, bytes, limit)?).map_err(|problem| ReadError::damaged(what, problem))
}

/// The bytes as text, within the limit.
pub(crate) fn text<'a>(what: &str, bytes: &'a [u8], limit: usize) -> Result<&'a str, ReadError> {
    bounded(what, bytes.len(), limit)?;
    std::str::from_utf8(bytes)
        .map_err(|error| ReadError::damaged(what, format!("it is not UTF-8 text at byte {}", error.valid_up_to())))
}

/// Parses one document, or says where and why not. The message never quotes the lines around the place: they may
/// hold what nobody should read in a log.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_LIMIT },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAY_LIMIT },
        emit_comments: false,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(&error))
}

/// Parses one document of at most so many nodes into what the seed keeps of it.
pub(crate) fn seeded<'de, S: DeserializeSeed<'de>>(text: &'de str, nodes: usize, seed: S) -> Result<S::Value, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_LIMIT, max_nodes: nodes, max_events: 4 * nodes },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAY_LIMIT },
        emit_comments: false,
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |from| seed.deserialize(from))
        .map_err(|error| explain(&error))
}

/// Parses one document as Helm does the values of a chart: of a key given twice the last one stands.
pub(crate) fn lenient<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_LIMIT },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAY_LIMIT },
        emit_comments: false,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(&error))
}

fn explain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let line: String = text.lines().next().unwrap_or_default().chars().take(300).collect();
    match error.location() {
        Some(place) if !line.contains("line ") => format!("line {}, column {}: {line}", place.line(), place.column()),
        Some(_) | None => line,
    }
}

#[derive(Deserialize)]
struct Header {
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    kind: Option<String>,
}

/// Reads one AICR document of this kind and one of these apiVersions.
pub(crate) fn typed<T: DeserializeOwned>(bytes: &[u8], kind: &str, versions: &[&str]) -> Result<T, ReadError> {
    let what = format!("AICR {kind}");
    let header: Header = read(&what, bytes, DOCUMENT_LIMIT)?;
    let expected = || format!("{kind} of {}", versions.join(" or "));
    let (Some(found_version), Some(found_kind)) = (header.api_version, header.kind) else {
        return Err(ReadError::damaged(what, "it has no apiVersion and kind, so it is no AICR document"));
    };
    if found_kind != kind || !versions.contains(&found_version.as_str()) {
        let found = format!("{} of {}", quoted(&found_kind), quoted(&found_version));
        return Err(ReadError::unsupported(what, found, expected()));
    }
    read(&what, bytes, DOCUMENT_LIMIT)
}

/// A value whose form is not ours to fix, as text: scalars as they are, the rest as JSON, nothing for null.
pub(crate) fn loose(value: Option<serde_json::Value>) -> Option<String> {
    match value? {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text),
        other @ (serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_)) => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::Value;

    fn bomb() -> String {
        let row = |level| vec![format!("*a{level}"); 9].join(", ");
        let levels: Vec<String> = (1..12).map(|level| format!("a{level}: &a{level} [{}]\n", row(level - 1))).collect();
        format!("a0: &a0 [x, x, x, x, x, x, x, x, x]\n{}", levels.concat())
    }

    #[rstest]
    #[case::empty(String::new(), "empty")]
    #[case::blank("\n  \n".to_owned(), "empty")]
    #[case::duplicate_key("a: 1\nb: 2\na: 3\n".to_owned(), "line 3")]
    #[case::duplicate_key_in_json("{\"a\": 1, \"a\": 2}".to_owned(), "line 1")]
    #[case::second_document("a: 1\n---\nb: 2\n".to_owned(), "document")]
    #[case::second_json_document("{\"a\": 1}\n{\"b\": 2}\n".to_owned(), "document")]
    #[case::rest_after_json("{\"a\": 1}}".to_owned(), "column 9")]
    #[case::truncated_json("{\"a\": [1, ".to_owned(), "column 7")]
    #[case::deep_flow("[".repeat(100) + &"]".repeat(100), "Depth")]
    #[case::deep_block((0..100).map(|level| " ".repeat(level) + "a:\n").collect(), "Depth")]
    #[case::alias_bomb(bomb(), "line ")]
    #[case::tab_indent("a:\n\tb: 1\n".to_owned(), "line 2")]
    #[case::infinity("a: .inf\n".to_owned(), "line 1")]
    fn a_trap_is_refused_with_its_place(#[case] text: String, #[case] place: &str) {
        let error = read::<Value>("the trap", text.as_bytes(), DOCUMENT_LIMIT).unwrap_err();
        assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(place), "{error}");
    }

    #[test]
    fn json_is_read_with_its_escapes() {
        let text = r#"{"a":"\u003cb\u003e \ud83d\ude00 \"q\" \\ \/ \n","n":[1,true,null]}"#;
        let value: Value = read("json", text.as_bytes(), DOCUMENT_LIMIT).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn plain_scalars_stay_as_written_in_text_fields() {
        let value: std::collections::BTreeMap<String, String> =
            read("map", b"a: 1.10\nb: 012\nc: no\nd: 0x1F\n", DOCUMENT_LIMIT).unwrap();
        assert_eq!(value.into_values().collect::<Vec<_>>(), ["1.10", "012", "no", "0x1F"]);
    }

    #[test]
    fn size_and_encoding_are_checked_before_anything_is_parsed() {
        assert_eq!(
            read::<Value>("it", b"abcd", 3).unwrap_err(),
            ReadError::TooLarge { what: "it".to_owned(), size: 4, limit: 3 }
        );
        assert!(read::<Value>("it", b"a: \xff", 10).unwrap_err().to_string().contains("byte 3"));
    }

    #[test]
    fn an_error_does_not_quote_the_lines_around_it() {
        let error = read::<Value>("it", b"password: hunter2\npassword: hunter2\n", 100).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn a_header_comment_of_any_length_is_no_obstacle() {
        let text = "# line\n".repeat(500) + "a:\n" + &"  # line\n".repeat(500) + "  b: 1\n";
        assert!(read::<Value>("it", text.as_bytes(), DOCUMENT_LIMIT).is_ok());
    }
}
