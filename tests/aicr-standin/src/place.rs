//! Where documents are read from and written to: files, ConfigMaps, stdout.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Code, Failure};
use crate::{configmap, faults, log, yaml};

/// The form of a written document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Yaml,
    Json,
    Table,
}

impl Format {
    pub(crate) fn parse(word: Option<&str>, default: Self) -> Result<Self, Failure> {
        match word {
            None => Ok(default),
            Some("yaml") => Ok(Self::Yaml),
            Some("json") => Ok(Self::Json),
            Some("table") => Ok(Self::Table),
            Some(other) => Err(Failure::invalid(format!(
                "unknown output format: \"{other}\", valid formats are: yaml, json, table"
            ))),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Yaml => "yaml",
            Self::Json => "json",
            Self::Table => "txt",
        }
    }
}

/// A place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Stdout,
    File(PathBuf),
    ConfigMap { namespace: String, name: String },
}

impl Place {
    pub(crate) fn parse(word: Option<&str>) -> Result<Self, Failure> {
        let Some(word) = word.filter(|word| *word != "-") else {
            return Ok(Self::Stdout);
        };
        let Some(rest) = word.strip_prefix("cm://") else {
            return Ok(Self::File(PathBuf::from(word)));
        };
        match rest.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self::ConfigMap { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => {
                Err(Failure::invalid(format!("invalid ConfigMap URI \"{word}\": expected cm://namespace/name")))
            }
        }
    }
}

/// The text at a place.
pub(crate) async fn text(word: &str, kubeconfig: Option<&str>) -> Result<String, Failure> {
    if word.starts_with("http://") || word.starts_with("https://") {
        return Err(Failure::invalid(format!("reading {word} is not supported by the stand-in")));
    }
    match Place::parse(Some(word))? {
        Place::ConfigMap { namespace, name } => {
            configmap::read(&configmap::client(kubeconfig).await?, &namespace, &name).await
        }
        Place::Stdout => Err(Failure::invalid("reading from stdin is not supported")),
        Place::File(path) => std::fs::read_to_string(&path).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                Failure::not_found(format!("file not found: open {word}: no such file or directory"))
            } else {
                Failure::internal(format!("failed to read {word}: {error}"))
            }
        }),
    }
}

/// The document at a place; a syntax error is internal, as it is for AICR.
pub(crate) async fn document<T: DeserializeOwned>(word: &str, kubeconfig: Option<&str>) -> Result<T, Failure> {
    decoded(word, &text(word, kubeconfig).await?)
}

/// Reads a document of a named origin.
pub(crate) fn decoded<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, Failure> {
    yaml::read(text)
        .map_err(|error| error.within(Code::Internal, format!("failed to deserialize object from \"{origin}\"")))
}

/// A document to be written.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    /// The flag's word; none is stdout.
    pub(crate) to: Option<&'a str>,
    pub(crate) kind: &'static str,
    pub(crate) format: Format,
    pub(crate) kubeconfig: Option<&'a str>,
}

impl Output<'_> {
    /// Writes a value in YAML or JSON.
    pub(crate) async fn value(&self, value: &Value) -> Result<(), Failure> {
        let text = match self.format {
            Format::Json => yaml::json(value)?,
            Format::Yaml | Format::Table => yaml::text(value)?,
        };
        self.text(&faults::spoil(text)).await
    }

    /// Writes a text as it is.
    pub(crate) async fn text(&self, text: &str) -> Result<(), Failure> {
        match Place::parse(self.to)? {
            Place::Stdout => {
                log::out(text);
                Ok(())
            }
            Place::File(path) => std::fs::write(&path, text).map_err(|error| {
                Failure::internal(format!("failed to create {}: {error}", path.display()))
                    .within(Code::Internal, "failed to serialize output")
            }),
            Place::ConfigMap { namespace, name } => {
                let client = configmap::client(self.kubeconfig).await?;
                configmap::write(&client, (&namespace, &name), self.kind, (self.format, text)).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart_by_their_form() {
        assert_eq!(Place::parse(None).unwrap(), Place::Stdout);
        assert_eq!(Place::parse(Some("-")).unwrap(), Place::Stdout);
        assert_eq!(Place::parse(Some("a.yaml")).unwrap(), Place::File("a.yaml".into()));
        let map = Place::ConfigMap { namespace: "ns".into(), name: "n".into() };
        assert_eq!(Place::parse(Some("cm://ns/n")).unwrap(), map);
        for bad in ["cm://ns", "cm:///n", "cm://ns/", "cm://a/b/c"] {
            assert_eq!(Place::parse(Some(bad)).unwrap_err().exit(), 2, "{bad}");
        }
    }

    #[test]
    fn a_syntax_error_in_a_document_is_internal() {
        let failure = decoded::<Value>("r.yaml", "a: [").unwrap_err();
        assert_eq!(failure.exit(), 8);
        let text = failure.to_string();
        assert!(
            text.starts_with(
                "[INTERNAL] failed to deserialize object from \"r.yaml\": [INVALID_REQUEST] failed to decode YAML:"
            ),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_format_is_refused_with_the_list() {
        assert_eq!(
            Format::parse(Some("xml"), Format::Yaml).unwrap_err().to_string(),
            "[INVALID_REQUEST] unknown output format: \"xml\", valid formats are: yaml, json, table"
        );
    }
}
