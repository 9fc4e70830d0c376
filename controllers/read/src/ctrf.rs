//! The report of `aicr validate`: one entry for each check, in CTRF.

use serde::Deserialize;

use crate::{
    error::{ReadError, quoted},
    names, yaml,
};

/// The most checks of one report.
pub const CHECK_LIMIT: usize = 256;

/// The most characters of a check's name and of its message that are kept.
pub const TEXT_LIMIT: usize = 512;

const WHAT: &str = "the validation report";

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its checks, in order; at most [`CHECK_LIMIT`].
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, at most [`TEXT_LIMIT`] characters.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// What it says, in one line of at most [`TEXT_LIMIT`] characters; may be empty.
    pub message: String,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Passed,
    /// It was not asked.
    Skipped,
    /// It does not hold, or it crashed, or its word is none that this operator knows: never taken for passed.
    Failed,
}

impl Report {
    /// The checks that failed, each with what it says.
    pub fn failed(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| check.status == Status::Failed);
        failed
            .map(|check| {
                if check.message.is_empty() { check.name.clone() } else { format!("{}: {}", check.name, check.message) }
            })
            .collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    report_format: String,
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    summary: Summary,
    tests: Vec<RawCheck>,
}

#[derive(Deserialize)]
struct Summary {
    tests: usize,
}

#[derive(Deserialize)]
struct RawCheck {
    name: String,
    status: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    stdout: Vec<String>,
}

/// Reads a CTRF report, JSON or YAML, of at most 1 MiB.
///
/// # Errors
/// `Unsupported` for another format, `TooLarge`, else `Damaged`: also where the summary counts other checks than there
/// are.
pub fn read(bytes: &[u8]) -> Result<Report, ReadError> {
    let document: Document = yaml::read(WHAT, bytes, yaml::DOCUMENT_LIMIT)?;
    if document.report_format != "CTRF" {
        return Err(ReadError::unsupported(WHAT, quoted(&document.report_format), "CTRF"));
    }
    let Results { summary, tests } = document.results;
    names::count(WHAT, "checks", tests.len(), CHECK_LIMIT)?;
    if summary.tests != tests.len() {
        let problem = format!("its summary counts {} checks, {} stand in it", summary.tests, tests.len());
        return Err(ReadError::damaged(WHAT, problem));
    }
    Ok(Report { checks: tests.into_iter().map(check).collect() })
}

fn check(from: RawCheck) -> Check {
    let status = match from.status.as_str() {
        "passed" => Status::Passed,
        "skipped" => Status::Skipped,
        _ => Status::Failed,
    };
    // What a check printed last is what it has to say where it gives no message.
    let said = from.message.filter(|text| !text.is_empty()).or_else(|| from.stdout.last().cloned());
    Check { name: line(&from.name), status, message: line(&said.unwrap_or_default()) }
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TEXT_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report(tests: &Value, count: usize) -> Result<Report, ReadError> {
        let document = json!({
            "reportFormat": "CTRF", "specVersion": "0.0.1", "generatedBy": "aicr",
            "results": { "tool": { "name": "aicr", "version": "1.1.2" },
                "summary": { "tests": count, "passed": 1, "failed": 0, "skipped": 0, "pending": 0, "other": 0 },
                "tests": tests },
        });
        read(document.to_string().as_bytes())
    }

    #[test]
    fn what_neither_passed_nor_was_skipped_has_failed() {
        let tests = json!([
            { "name": "operator-health", "status": "passed", "duration": 3, "suite": ["deployment"], "stdout": ["ok"] },
            { "name": "expected-resources", "status": "failed", "message": "Deployment gpu/x\n is missing" },
            { "name": "check-nvidia-smi", "status": "other", "stdout": ["starting", "exit code 137"] },
            { "name": "later", "status": "skipped", "message": "skipped - no-cluster mode" },
            { "name": "odd", "status": "wonderful" },
        ]);
        let failed = report(&tests, 5).unwrap().failed();
        assert_eq!(
            failed,
            ["expected-resources: Deployment gpu/x is missing", "check-nvidia-smi: exit code 137", "odd"]
        );
    }

    #[test]
    fn a_report_that_is_cut_or_of_another_kind_is_refused() {
        assert!(matches!(report(&json!([]), 1), Err(ReadError::Damaged { .. })));
        let other = json!({ "reportFormat": "JUnit", "results": { "summary": { "tests": 0 }, "tests": [] } });
        assert!(matches!(read(other.to_string().as_bytes()), Err(ReadError::Unsupported { .. })));
        assert!(matches!(read(b"{}"), Err(ReadError::Damaged { .. })));
    }

    #[test]
    fn a_long_message_is_one_bounded_line() {
        let long = "x".repeat(10_000);
        let tests = json!([{ "name": "a", "status": "failed", "message": long }]);
        assert_eq!(report(&tests, 1).unwrap().checks[0].message.chars().count(), TEXT_LIMIT);
    }
}
