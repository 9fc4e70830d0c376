//! Log lines on stderr in AICR's three forms: text, JSON and logfmt.

use std::io::Write as _;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::release;

/// The form of the lines, chosen once from flags and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
    Debug,
}

#[derive(Debug, Clone, Copy)]
enum Level {
    Info,
    Warn,
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

static FORM: OnceLock<Form> = OnceLock::new();

/// Sets the form; the first call counts.
pub(crate) fn choose(form: Form) {
    FORM.get_or_init(|| form);
}

pub(crate) fn info(message: &str, keys: &[(&str, Value)]) {
    emit(Level::Info, message, keys);
}

pub(crate) fn warn(message: &str, keys: &[(&str, Value)]) {
    emit(Level::Warn, message, keys);
}

pub(crate) fn error(message: &str, keys: &[(&str, Value)]) {
    emit(Level::Error, message, keys);
}

/// A line that belongs to no log: usage errors and what an agent printed.
pub(crate) fn plain(line: &str) {
    // A closed stderr is no reason to fail the command.
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Writes to stdout; a reader that went away is no failure.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout();
    drop(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

fn emit(level: Level, message: &str, keys: &[(&str, Value)]) {
    plain(&line(*FORM.get_or_init(|| Form::Text), level, message, keys));
}

fn line(form: Form, level: Level, message: &str, keys: &[(&str, Value)]) -> String {
    let time = jiff::Timestamp::now();
    match form {
        Form::Text => text_line(message, keys),
        Form::Json => {
            let mut object = Map::new();
            object.insert("time".into(), json!(time.to_string()));
            object.insert("level".into(), json!(level.name()));
            object.insert("msg".into(), json!(message));
            object.insert("module".into(), json!("aicr"));
            object.insert("version".into(), json!(release::stamped()));
            object.extend(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
            Value::Object(object).to_string()
        }
        Form::Debug => {
            let pairs: Vec<String> = keys.iter().map(|(key, value)| format!(" {key}={value}")).collect();
            let (level, message, version) = (level.name(), json!(message), release::stamped());
            let pairs = pairs.concat();
            format!("time={time} level={level} source=standin msg={message}{pairs} module=aicr version={version}")
        }
    }
}

fn text_line(message: &str, keys: &[(&str, Value)]) -> String {
    let prefix = std::env::var("AICR_LOG_PREFIX").unwrap_or_else(|_| "cli".into());
    let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={}", bare(value))).collect();
    if pairs.is_empty() {
        format!("[{prefix}] {message}")
    } else {
        format!("[{prefix}] {message}: {}", pairs.join(" "))
    }
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_line_has_prefix_message_and_pairs() {
        let keys = [("error", json!("[NOT_FOUND] recipe file not found: /nope.yaml")), ("exitCode", json!(3))];
        assert_eq!(
            line(Form::Text, Level::Error, "command failed", &keys),
            "[cli] command failed: error=[NOT_FOUND] recipe file not found: /nope.yaml exitCode=3"
        );
    }

    #[test]
    fn a_json_line_is_one_object_with_the_keys_beside_the_fixed_ones() {
        let text = line(Form::Json, Level::Error, "command failed", &[("exitCode", json!(3))]);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["level"], &value["module"], &value["exitCode"]),
            (&json!("ERROR"), &json!("aicr"), &json!(3))
        );
        assert!(!text.contains('\n'));
    }
}
