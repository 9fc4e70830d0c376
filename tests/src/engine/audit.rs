//! What the API server says was asked of it: its audit log, line by line, from a mark on.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

/// The audit log.
pub struct Audit {
    path: PathBuf,
}

/// A moment, and the place in the log at which it was.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    place: u64,
    at: Timestamp,
}

/// One write that the API server took.
#[derive(Clone, Debug)]
pub struct Line {
    /// `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// Plural of the kind.
    pub resource: String,
    /// Name of the object.
    pub name: String,
    /// `status`, or empty.
    pub subresource: String,
    /// What was sent.
    pub body: Value,
    /// When it came in.
    pub received: Timestamp,
    /// When it was answered.
    pub answered: Timestamp,
}

impl Audit {
    /// The log in this file.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Here and now.
    pub fn mark(&self) -> Mark {
        let length = std::fs::metadata(&self.path).map(|file| file.len());
        let place = length.unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
        Mark { place, at: Timestamp::now() }
    }

    /// When each call since the mark came in and was answered, whoever made it; watches are left out.
    pub fn calls_since(&self, mark: Mark) -> Vec<(Timestamp, Timestamp)> {
        let calls = self.lines_since(mark, |line| {
            let event: Value = serde_json::from_str(line).ok()?;
            let is_call = event["stage"] == "ResponseComplete" && event["verb"] != "watch";
            is_call.then(|| received_and_answered(&event)).flatten()
        });
        calls.into_iter().filter(|(received, _)| *received >= mark.at).collect()
    }

    /// What this user wrote since the mark, and the API server took; reads are left out.
    ///
    /// A line is written after the answer: what a watch already told of may come into the log later than the mark. When it came in is
    /// the API server's word, and its clock is this machine's.
    pub fn taken_since(&self, mark: Mark, user: &str) -> Vec<Line> {
        let lines = self.lines_since(mark, |line| taken(line, user));
        lines.into_iter().filter(|line| line.received >= mark.at).collect()
    }

    fn lines_since<T>(&self, mark: Mark, read: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let all = || -> std::io::Result<Vec<T>> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(mark.place))?;
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            Ok(lines.filter_map(|line| read(&line)).collect())
        };
        all().unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }
}

fn received_and_answered(event: &Value) -> Option<(Timestamp, Timestamp)> {
    let time = |field: &str| event[field].as_str()?.parse().ok();
    Some((time("requestReceivedTimestamp")?, time("stageTimestamp")?))
}

fn taken(line: &str, user: &str) -> Option<Line> {
    // Most lines are somebody else's: they are not parsed.
    if !line.contains(user) {
        return None;
    }
    let event: Value = serde_json::from_str(line).ok()?;
    let verb = event["verb"].as_str()?;
    let code = event["responseStatus"]["code"].as_u64()?;
    let writes = matches!(verb, "create" | "update" | "patch" | "delete");
    if event["user"]["username"] != user || event["stage"] != "ResponseComplete" || !writes || code >= 300 {
        return None;
    }
    let (received, answered) = received_and_answered(&event)?;
    let text = |field: &str| event["objectRef"][field].as_str().unwrap_or_default().to_owned();
    Some(Line {
        verb: verb.to_owned(),
        resource: text("resource"),
        name: text("name"),
        subresource: text("subresource"),
        body: event["requestObject"].clone(),
        received,
        answered,
    })
}
