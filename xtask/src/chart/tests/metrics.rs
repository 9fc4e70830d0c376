//! Alerts and dashboard ask only for what the operator exports.

use std::fs;

use aicr_lab::workspace;

use super::read;

/// Every name of ours in a text, without what Prometheus appends to a histogram's.
fn names(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text
        .match_indices("aicr_operator_")
        .map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_').unwrap_or(rest.len());
            rest[..end].trim_end_matches("_bucket")
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn every_metric_of_alerts_and_dashboard_is_one_that_the_operator_exports() {
    let sources = ["controllers/drive/src/metrics.rs", "src/door/metrics.rs", "src/lead.rs"];
    let sources: String = sources.map(|path| fs::read_to_string(workspace().join(path)).unwrap()).concat();
    for file in ["files/alerts.yaml", "files/dashboard.json"] {
        let text = read(file);
        let names = names(&text);
        assert!(names.len() > 5, "{file}");
        for name in names {
            assert!(sources.contains(&format!("\"{name}\"")), "{file}: {name}");
        }
    }
}

#[test]
fn every_reason_and_outcome_of_an_alert_is_a_word_of_the_operator() {
    let words = fs::read_to_string(workspace().join("crds/src/reason.rs")).unwrap();
    let text = read("files/alerts.yaml");
    let mut count = 0;
    for label in ["reason=\"", "reason!~\"", "outcome=~\""] {
        for (at, _) in text.match_indices(label) {
            let list = text[at + label.len()..].split('"').next().unwrap();
            for word in list.split('|') {
                assert!(words.contains(&format!("        {word},")), "{word}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 6);
}
