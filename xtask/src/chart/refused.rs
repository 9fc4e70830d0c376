//! What the chart refuses, each with the words that say what to do.

use std::path::Path;

use aicr_lab::command::{self, CommandError};

use super::{VALUES, folder, golden};
use crate::error::XtaskError;

/// Values over a set that is taken, and what is said of them.
const REFUSED: [(&str, &[&str], &str); 7] = [
    ("minimal", &["aicr.version=v0.9.9"], "aicr.version v0.9.9 is not supported: this chart takes >=1.0.0, <2.0.0"),
    ("minimal", &["aicr.version=v2.0.0"], "aicr.version v2.0.0 is not supported: this chart takes >=1.0.0, <2.0.0"),
    ("minimal", &["aicr.version=v1.2.0-rc1"], "aicr.version v1.2.0-rc1 is not supported"),
    (
        "earlier",
        &["aicr.version=v1.1.2"],
        "is not of aicr.version v1.1.2: set version, image and validator images together",
    ),
    ("earlier", &["aicr.validatorImages=null"], "aicr.validatorImages is required with validation.enabled"),
    ("minimal", &["aicr.image=registry.example/aicr:v1.1.2"], "is not pinned by digest: append @sha256:DIGEST"),
    ("minimal", &["engine.project=default"], "engine.project must not be default"),
];

/// Has Helm render each, which must fail with these words.
pub(super) fn check(helm: &Path) -> Result<(), XtaskError> {
    REFUSED
        .iter()
        .try_for_each(|(set, values, words)| what_is_wrong_is_refused_with_what_to_do(helm, set, values, words))
}

fn what_is_wrong_is_refused_with_what_to_do(
    helm: &Path,
    set: &str,
    values: &[&str],
    words: &str,
) -> Result<(), XtaskError> {
    let mut template = golden::template(helm, &folder().join("ci").join(format!("{set}{VALUES}")));
    for value in values {
        template.args(["--set", value]);
    }
    let said = match command::output(&mut template) {
        Err(CommandError::Failed { said, .. }) => said,
        Err(error) => return Err(XtaskError::command("helm template")(error)),
        Ok(_) => "it is taken".to_owned(),
    };
    if said.contains(words) {
        return Ok(());
    }
    Err(XtaskError::Refusal { values: values.join(" "), words: words.to_owned(), said })
}
