//! The pages under `docs/` are held to the code: runbooks to the reasons, conformance to the tests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use aicr_crds::reason::Reason;

fn page(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The entry of each reason: its heading and what stands below.
fn entries(page: &str) -> Vec<(String, String)> {
    page.split("\n### `")
        .skip(1)
        .filter_map(|part| part.split_once("`\n"))
        .map(|(name, body)| (name.into(), body.into()))
        .collect()
}

#[test]
fn every_reason_has_a_runbook_and_every_runbook_a_reason() {
    let entries = entries(&page("runbooks.md"));
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let named: BTreeSet<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, reasons);
    assert_eq!(entries.len(), reasons.len(), "an entry appears twice");
    for (name, body) in &entries {
        for part in ["- **Means**: ", "- **Look at**: ", "- **Do**: "] {
            assert!(body.contains(part), "{name} does not say {part}");
        }
    }
}

/// Every function and every story of the workspace, by name.
fn proofs() -> BTreeSet<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    let mut todo: Vec<PathBuf> = ["controllers", "crds", "webhooks", "plugin", "src", "certs", "tests", "xtask"]
        .iter()
        .map(|room| root.join(room))
        .collect();
    while let Some(path) = todo.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let functions = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            found.extend(functions.map(|(function, _)| function.to_owned()));
        } else if path.with_extension("golden").exists() {
            found.insert(name);
        }
    }
    found
}

/// What is wrong with one proof.
fn objection(proof: &str, known: &BTreeSet<String>) -> Option<String> {
    if let Some(name) = proof.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        return (!known.contains(name)).then(|| format!("{name} does not exist"));
    }
    (!["advice", "heading"].contains(&proof)).then(|| format!("{proof:?} proves nothing"))
}

/// The sentences of the page, each with its proofs.
fn sentences(page: &str) -> Vec<(&str, Vec<&str>)> {
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| ---") && *line != "| sentence | proof |";
    let cells = |line| {
        let row = str::trim_end_matches(line, " |").trim_start_matches("| ");
        row.rsplit_once(" | ").map(|(sentence, proofs)| (sentence, proofs.split(", ").collect()))
    };
    page.lines().filter(is_row).filter_map(cells).collect()
}

#[test]
fn every_sentence_of_the_pages_has_a_proof_that_exists() {
    let page = page("conformance.md");
    let known = &proofs();
    let all = sentences(&page);
    assert!(all.len() > 300, "the pages have more sentences than {}", all.len());
    let wrong = all.iter().flat_map(|(sentence, proofs)| {
        proofs.iter().filter_map(move |proof| Some(format!("{sentence}: {}", objection(proof, known)?)))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A story that no sentence names would go on passing when the sentence that it was written for has changed.
#[test]
fn every_story_proves_a_sentence() {
    let page = page("conformance.md");
    let all = sentences(&page);
    let scenarios = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let names = fs::read_dir(scenarios).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stories: Vec<String> = names
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "txt"))
        .map(|name| format!("`{name}`"))
        .collect();
    assert!(stories.len() > 60, "only {} stories", stories.len());
    let proving: BTreeSet<&str> = all.iter().flat_map(|(_, proofs)| proofs.iter().copied()).collect();
    let idle: Vec<&String> = stories.iter().filter(|story| !proving.contains(story.as_str())).collect();
    assert!(idle.is_empty(), "proves no sentence: {idle:?}");
}
