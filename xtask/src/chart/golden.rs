//! What the chart renders for a set of values, beside the file that was read and agreed to.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use aicr_lab::command;

use super::{VALUES, folder};
use crate::error::XtaskError;

/// The oldest cluster that the chart takes; Helm 3 renders for an older one by itself.
const KUBE_VERSION: &str = "1.34.0";
/// What a cluster with cert-manager has, asked for by one of the sets.
const CERT_MANAGER: &str = "cert-manager.io/v1";
/// The variable that has the golden files written.
const UPDATE: &str = "UPDATE_GOLDEN";
/// The CRDs are left out: they are generated, and compared with their own source.
const CRDS: &str = "# Source: aicr-operator/templates/crds.yaml";

/// Compares, or writes where `UPDATE_GOLDEN` is set.
pub(super) fn check(helm: &Path, set: &Path) -> Result<(), XtaskError> {
    let path = path(set);
    let rendered = normal(&render(helm, set)?);
    if env::var_os(UPDATE).is_some() {
        return fs::write(&path, rendered).map_err(XtaskError::write(&path));
    }
    let Ok(agreed) = fs::read_to_string(&path) else { return Err(XtaskError::Missing { path }) };
    match first_difference(&agreed, &rendered) {
        None => Ok(()),
        Some((line, agreed, rendered)) => Err(XtaskError::Differs { path, line, agreed, rendered }),
    }
}

/// The golden file of a set.
pub(super) fn path(set: &Path) -> PathBuf {
    let name = set.file_name().unwrap_or_default().to_string_lossy();
    folder().join("ci/golden").join(format!("{}.yaml", name.trim_end_matches(VALUES)))
}

fn render(helm: &Path, set: &Path) -> Result<String, XtaskError> {
    command::output(&mut template(helm, set)).map_err(XtaskError::command("helm template"))
}

/// Renders the chart with this set, for the oldest cluster and with cert-manager.
pub(super) fn template(helm: &Path, set: &Path) -> Command {
    let mut template = Command::new(helm);
    template.args(["template", "aicr-operator"]).arg(folder());
    template.args(["--namespace", "aicr-system", "--kube-version", KUBE_VERSION, "--api-versions", CERT_MANAGER]);
    template.arg("--values").arg(set);
    template
}

/// Without what tells the two Helms apart: blank lines, and the order of kinds that Helm does not know.
fn normal(text: &str) -> String {
    let solid: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let solid = format!("\n{}\n", solid.join("\n"));
    let mut documents: Vec<&str> = solid.split("\n---\n").map(str::trim).collect();
    documents.retain(|document| !document.is_empty() && !document.starts_with(CRDS));
    documents.sort_unstable();
    documents.iter().flat_map(|document| ["---\n", document, "\n"]).collect()
}

/// The first line that is not the same in both: its number from 1, and the two.
fn first_difference(agreed: &str, rendered: &str) -> Option<(usize, String, String)> {
    let (mut agreed, mut rendered) = (agreed.lines(), rendered.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (agreed.next(), rendered.next()) {
            (None, None) => return None,
            (one, other) if one == other => {}
            (one, other) => {
                let word = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
                return Some((line, word(one), word(other)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_and_the_blank_lines_of_a_helm_do_not_count_and_crds_are_left_out() {
        let three = "---\n# Source: b\nkind: B\n\ndata: |\n  ---x\n---\n# Source: a\nkind: A\n";
        let four = format!(
            "---\n# Source: a\nkind: A\n\n---\n# Source: b\nkind: B\ndata: |\n\n  ---x\n---\n{CRDS}\nkind: C\n"
        );
        assert_eq!(normal(three), "---\n# Source: a\nkind: A\n---\n# Source: b\nkind: B\ndata: |\n  ---x\n");
        assert_eq!(normal(three), normal(&four));
    }

    #[test]
    fn a_difference_is_told_with_its_line_and_an_end_is_one() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b".to_owned(), "c".to_owned())));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some((2, "(the end)".to_owned(), "b".to_owned())));
    }
}
