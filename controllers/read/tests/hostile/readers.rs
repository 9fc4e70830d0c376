//! The readers of one document each, with a document that they take.

use std::collections::BTreeSet;

use aicr_read::{ReadError, chart, failure, image_refs, index, recipe, snapshot, upgrade, values};

/// What a reader made of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Taken,
    Unsupported,
    TooLarge,
    Damaged,
}

impl Outcome {
    fn of<T>(read: &Result<T, ReadError>) -> Self {
        match read {
            Ok(_) => Self::Taken,
            Err(ReadError::Unsupported { .. }) => Self::Unsupported,
            Err(ReadError::TooLarge { .. }) => Self::TooLarge,
            Err(ReadError::Damaged { .. }) => Self::Damaged,
        }
    }
}

/// One reader and its document.
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) good: &'static str,
    pub(crate) read: fn(&[u8]) -> Outcome,
}

/// Every reader of documents.
pub(crate) const ALL: [Reader; 6] = [
    Reader {
        name: "snapshot",
        good: include_str!("corpus/snapshot.yaml"),
        read: |bytes| Outcome::of(&snapshot::read(bytes)),
    },
    Reader {
        name: "recipe",
        good: include_str!("corpus/recipe.yaml"),
        read: |bytes| Outcome::of(&recipe::read(bytes)),
    },
    Reader {
        name: "report",
        good: include_str!("corpus/report.json"),
        read: |bytes| Outcome::of(&upgrade::read(bytes)),
    },
    Reader { name: "index", good: include_str!("corpus/index.yaml"), read: |bytes| Outcome::of(&index(bytes)) },
    Reader { name: "values", good: include_str!("corpus/values.yaml"), read: check_values },
    Reader { name: "chart", good: include_str!("corpus/Chart.yaml"), read: local_chart },
];

fn index(bytes: &[u8]) -> Result<(), ReadError> {
    let read = index::read(bytes, &BTreeSet::from(["cert-manager", "nfd"]))?;
    for version in ["v1.20.2", "1.20.2", "0.18.3", ""] {
        let _ = read.entry("cert-manager", version).inspect_err(|error| drop(error.to_string()));
        let _ = read.entry("nfd", version)?;
    }
    Ok(())
}

fn check_values(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Damaged };
    match values::check(text) {
        Ok(value) => {
            for path in ["driver.version", "a[0].b", "nodeSelector.nvidia\\.com/gpu", "..", "[", "]"] {
                let _ = aicr_read::path::find(&value, path);
            }
            Outcome::Taken
        }
        Err(values::ValuesError::TooLarge { .. }) => Outcome::TooLarge,
        Err(values::ValuesError::Root { .. } | values::ValuesError::Number { .. }) => Outcome::Unsupported,
        Err(values::ValuesError::Syntax { .. }) => Outcome::Damaged,
    }
}

fn local_chart(bytes: &[u8]) -> Outcome {
    let files =
        [("Chart.yaml".to_owned(), bytes.to_vec()), ("templates/a.yaml".to_owned(), b"kind: ConfigMap\n".to_vec())];
    Outcome::of(&chart::local_content(&files.into()))
}

/// Words that a pod ends with; these have no wrong form.
pub(crate) fn last_words(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = failure::read(Some(3), &text);
    assert!(read.text.len() <= failure::TEXT_LIMIT + 8 && read.cause.len() <= failure::TEXT_LIMIT + 8);
    let _ = image_refs::digest(&text);
}

/// B85: an error output of 200 KiB, with characters of several bytes at every cut and credentials in addresses.
#[test]
fn b85_a_long_error_output_is_cut_between_characters_and_says_no_credentials() {
    for shift in 0..4 {
        let long = "a".repeat(shift) + &"\u{1f600}https://user:hidden@r.example.com/ ".repeat(6_000);
        assert!(long.len() > 200 << 10);
        for message in [
            format!("[cli] command failed: error=[INTERNAL] push {long} exitCode=8\n"),
            format!("{{\"msg\":\"command failed\",\"error\":\"[INTERNAL] push {long}\",\"exitCode\":8}}\n"),
            long.clone(),
        ] {
            let read = failure::read(Some(8), &message);
            assert!(read.text.len() <= failure::TEXT_LIMIT && read.text.contains('\u{2026}'), "{}", read.text.len());
            assert!(!read.text.contains("hidden") && !read.cause.contains("hidden"), "{}", read.text);
        }
    }
}
