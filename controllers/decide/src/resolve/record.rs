//! What is remembered of failed runs outside their Jobs, so that the bound of three outlives them.

use aicr_crds::reason::Reason;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    jobs::{Class, JobSeen, StageRuns, broke, said},
    verdict::Stage,
};
use crate::message::bounded;

/// Records that are kept, newest last.
pub const RECORDS: usize = 50;
/// Bytes of a failure's text that are remembered.
const TEXT_LIMIT: usize = 2048;

/// The failed runs of one stage and input. Transient ones are not in it: they never count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The stage.
    pub stage: Stage,
    /// The input label.
    pub input: String,
    /// The newest attempt that is in it.
    pub attempt: u32,
    /// How many of class `bounded` there were.
    pub bounded: u32,
    /// Class of the newest.
    pub class: Class,
    /// Its reason when it stalls.
    pub reason: Reason,
    /// What it said.
    pub message: String,
    /// When it ended.
    pub at: Timestamp,
}

/// The record of one stage and input.
pub fn record_of<'a>(records: &'a [RunRecord], stage: Stage, input: &str) -> Option<&'a RunRecord> {
    records.iter().find(|record| record.stage == stage && record.input == input)
}

/// The records with this one, which takes the place of the one before; the oldest make room.
pub fn with_record(mut records: Vec<RunRecord>, record: RunRecord) -> Vec<RunRecord> {
    records.retain(|known| known.stage != record.stage || known.input != record.input);
    records.push(record);
    let surplus = records.len().saturating_sub(RECORDS);
    records.drain(..surplus);
    records
}

impl RunRecord {
    /// What was known, with the finished Jobs that are newer.
    pub(super) fn of(runs: StageRuns<'_>, known: Option<&Self>) -> Option<Self> {
        let mut record = known.cloned();
        for job in runs.mine() {
            if record.as_ref().is_some_and(|record| job.attempt <= record.attempt) {
                continue;
            }
            record = Self::after(record.as_ref(), job).or(record);
        }
        record
    }

    /// The record once this run is in it; `None` where it did not fail, or only for a while.
    fn after(before: Option<&Self>, job: &JobSeen) -> Option<Self> {
        let (failure, at) = broke(job)?;
        let counts = match failure.class {
            Class::Transient => return None,
            Class::Bounded => 1,
            Class::Never | Class::Authorization => 0,
        };
        Some(Self {
            stage: job.stage,
            input: job.input.clone(),
            attempt: job.attempt,
            bounded: before.map_or(0, |before| before.bounded) + counts,
            class: failure.class,
            reason: failure.reason,
            message: bounded(said(job.stage, &failure), TEXT_LIMIT),
            at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(input: &str, attempt: u32) -> RunRecord {
        RunRecord {
            stage: Stage::Render,
            input: input.into(),
            attempt,
            bounded: attempt,
            class: Class::Bounded,
            reason: Reason::AICRInternal,
            message: "m".into(),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn each_stage_and_input_has_one_record_and_the_oldest_make_room() {
        let all = (0..60).fold(Vec::new(), |all, place| with_record(all, record(&format!("i{place}"), 1)));
        assert_eq!((all.len(), all[0].input.as_str()), (RECORDS, "i10"));
        let all = with_record(all, record("i20", 2));
        assert_eq!((all.len(), all[RECORDS - 1].attempt), (RECORDS, 2));
        assert_eq!(record_of(&all, Stage::Render, "i20").map(|record| record.attempt), Some(2));
        assert_eq!(record_of(&all, Stage::Recipe, "i20"), None);
    }

    #[test]
    fn a_record_is_the_same_after_it_was_stored() {
        let one = record("i", 3);
        let text = serde_json::to_string(&one).unwrap();
        assert!(text.contains(r#""stage":"render""#) && text.contains(r#""class":"bounded""#), "{text}");
        assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap(), one);
    }
}
