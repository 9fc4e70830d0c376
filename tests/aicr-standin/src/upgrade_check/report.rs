//! The report as a document and as a table for people.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The document.
pub(super) fn document(from: &str, to: Option<&str>, deployer: Option<&str>, rows: &[Value]) -> Value {
    let failing = rows.iter().filter(|row| row["failsRun"] == json!(true)).count();
    let mut report = json!({
        "from": from,
        "objectNamesCompared": false,
        "components": rows,
        "summary": {"components": rows.len(), "failing": failing},
        "atRisk": {"scanned": false, "reason": "no cluster access requested"},
    });
    for (key, value) in [("to", to), ("deployer", deployer)] {
        if let Some(value) = value {
            report[key] = json!(value);
        }
    }
    report
}

/// The table. Writing to a String cannot fail.
pub(super) fn table(report: &Value) -> String {
    let mut text = "UPGRADE CHECK\n".to_owned();
    for key in ["from", "to", "deployer"] {
        if let Some(value) = report[key].as_str() {
            let _ = writeln!(text, "  {key}: {value}");
        }
    }
    let rows: &[Value] = report["components"].as_array().map_or(&[], Vec::as_slice);
    if rows.is_empty() {
        return text + "\nNO COMPONENT CHANGES\n";
    }
    let header = line(["COMPONENT", "FROM", "TO", "VERDICT", "NOTES"]);
    let _ = write!(text, "\n{header}\n{}\n", "-".repeat(header.len()));
    for row in rows {
        let cell = |key: &str| row[key].as_str().filter(|text| !text.is_empty()).unwrap_or("-");
        let cells = [cell("component"), cell("from"), cell("to"), cell("verdict"), cell("notes")];
        let _ = writeln!(text, "{}", line(cells));
    }
    let deployer = report["deployer"].as_str().unwrap_or("-");
    rows.iter().filter(|row| row["precondition"].is_string() || row["steps"].is_array()).for_each(|row| {
        detail(&mut text, row, deployer);
    });
    let (components, failing) = (&report["summary"]["components"], &report["summary"]["failing"]);
    let _ = writeln!(text, "\n{components} component changes, {failing} need attention");
    text
}

fn line(cells: [&str; 5]) -> String {
    let [component, from, to, verdict, notes] = cells;
    format!("{component:<32} {from:<12} {to:<12} {verdict:<12} {notes}")
}

fn detail(text: &mut String, row: &Value, deployer: &str) {
    let word = |key: &str| row[key].as_str().unwrap_or("-");
    let (name, from, to, verdict) = (word("component"), word("from"), word("to"), word("verdict"));
    let _ = write!(text, "\n{name} {from} -> {to}  ({verdict})\n  {}\n", word("summary"));
    if let Some(precondition) = row["precondition"].as_str() {
        let _ = write!(text, "  PRECONDITION\n    {precondition}\n");
    }
    let _ = writeln!(text, "  STEPS (deployer: {deployer})");
    for (index, step) in row["steps"].as_array().into_iter().flatten().enumerate() {
        let of = |key: &str| step[key].as_str().unwrap_or_default();
        let _ = writeln!(text, "    {}. {}\n       Why: {}", index + 1, of("description"), of("reason"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_sides_say_so() {
        let report = document("a", Some("b"), None, &[]);
        assert_eq!(report["summary"], json!({"components": 0, "failing": 0}));
        assert!(table(&report).contains("NO COMPONENT CHANGES"));
    }

    #[test]
    fn the_last_line_counts_and_a_missing_value_is_a_dash() {
        let rows = [
            json!({"component": "a", "change": "added", "to": "1.0.0", "notes": "n", "failsRun": false}),
            json!({"component": "b", "change": "version", "from": "1.0.0", "to": "2.0.0", "verdict": "unknown", "failsRun": true}),
        ];
        let text = table(&document("a", None, None, &rows));
        assert!(text.ends_with("\n2 component changes, 1 need attention\n"), "{text}");
        let row = text.lines().find(|line| line.starts_with("a ")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["a", "-", "1.0.0", "-", "n"]);
    }
}
