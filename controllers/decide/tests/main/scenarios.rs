//! Stories: each script in `scenarios/` beside its golden transcript.

use std::fs;

use crate::story::script::run;

#[test]
fn every_script_has_the_transcript_that_was_read_and_agreed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut scripts: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let mut differing = Vec::new();
    for script in scripts {
        let golden = script.with_extension("golden");
        let text = fs::read_to_string(&script).unwrap();
        let Ok(transcript) = std::panic::catch_unwind(|| run(&text) + "\n") else {
            differing.push(format!("--- {} cannot be played", script.display()));
            continue;
        };
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &transcript).unwrap();
        }
        if fs::read_to_string(&golden).unwrap_or_default() != transcript {
            differing.push(format!("--- {}\n{transcript}", script.display()));
        }
    }
    assert!(
        differing.is_empty(),
        "transcripts differ (UPDATE_GOLDEN=1 writes them, to be read):\n{}",
        differing.join("\n")
    );
}
