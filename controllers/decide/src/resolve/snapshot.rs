//! When a snapshot is due, what each one records, and what its readings say.

use std::collections::{BTreeMap, BTreeSet};

use aicr_crds::{
    Digest,
    reason::Reason,
    runtime::{Criteria, Placement},
    vocabulary::{Accelerator, Os, Service},
};
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{
    discovery::Groups,
    inputs::{AicrInstall, hash},
};

/// What a snapshot saw of its triggers; recorded beside it, so that none acts twice when status is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// UTC day of the resolution that took it, `2026-11-29`.
    pub day: String,
    /// Hash of the accelerated placement.
    pub placement: String,
    /// AICR image.
    pub image: String,
    /// Distinct accelerated node types.
    pub node_types: BTreeSet<String>,
    /// The active plan's gpu-operator release: its chart's identity.
    pub gpu_operator: Option<String>,
    /// The `resnapshot` token.
    pub token: Option<String>,
    /// What caused it, for people.
    #[serde(default)]
    pub cause: String,
}

/// A snapshot that is stored in the operator namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its ConfigMap.
    pub name: String,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// What it saw.
    pub record: Record,
    /// What it reads, or why it cannot be read.
    pub reading: Result<Reading, (Reason, String)>,
    /// Its text, handed on to `aicr recipe`.
    pub text: String,
    /// Which plan the inputs with this snapshot came to: hash of inputs to plan digest.
    pub resolved: BTreeMap<String, Digest>,
}

/// The readings of a snapshot that resolution rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// AICR version that took it.
    pub version: String,
    /// Kubernetes service.
    pub service: Option<String>,
    /// Accelerator.
    pub accelerator: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Kubernetes version.
    pub kubernetes: Option<String>,
    /// How many nodes it counted.
    pub nodes: Option<u64>,
}

/// The present state of everything that triggers a snapshot.
pub(super) fn present(
    placement: &Placement,
    groups: &Groups,
    aicr: &AicrInstall,
    gpu_operator: Option<Digest>,
    token: Option<String>,
    now: Timestamp,
) -> Record {
    Record {
        day: now.to_zoned(TimeZone::UTC).date().to_string(),
        placement: hash(&placement.accelerated).prefix(16),
        image: aicr.image.clone(),
        node_types: groups.instance_types.clone(),
        gpu_operator: gpu_operator.map(|digest| digest.to_string()),
        token,
        cause: String::new(),
    }
}

/// Why a snapshot is due now, given those that are stored, oldest first; `None` where the newest serves.
pub(super) fn due(stored: &[&Record], present: &Record) -> Option<&'static str> {
    let Some(newest) = stored.last() else { return Some("first resolution") };
    // A token acts once, also when it comes back after another.
    let spent = |token: &String| stored.iter().any(|record| record.token.as_ref() == Some(token));
    let gone_by = [
        (present.token.as_ref().is_some_and(|token| !spent(token)), "requested"),
        (newest.placement != present.placement, "accelerated placement changed"),
        (newest.image != present.image, "AICR image changed"),
        (newest.node_types != present.node_types, "accelerated node types changed"),
        (newest.gpu_operator != present.gpu_operator, "gpu-operator release of the active plan changed"),
        // Of two clocks around midnight, the slower takes no second one.
        (newest.day < present.day, "first resolution of the day"),
    ];
    gone_by.into_iter().find_map(|(due, cause)| due.then_some(cause))
}

/// The criteria as resolved: what is declared, else what is read; or what is missing or in conflict.
pub(super) fn criteria(declared: &Criteria, reading: &Reading) -> Result<Criteria, (Reason, String)> {
    if reading.nodes == Some(0) || reading.kubernetes.is_none() {
        let what = if reading.kubernetes.is_none() { "the Kubernetes version" } else { "any node" };
        return Err((
            Reason::SnapshotIncomplete,
            format!(
                "the snapshot does not hold {what}; look at the nodes and at the snapshot in status.discovery, then request a snapshot"
            ),
        ));
    }
    let pairs = [
        ("service", declared.service.map(Service::as_str), &reading.service),
        ("accelerator", declared.accelerator.map(Accelerator::as_str), &reading.accelerator),
        ("os", declared.os.map(Os::as_str), &reading.os),
    ];
    for (name, declared, read) in pairs {
        match (declared, read) {
            (Some(declared), Some(read)) if declared != read => {
                let message = format!(
                    "criteria.{name} declares {declared}, the snapshot reads {read}; correct the criterion or the nodes"
                );
                return Err((Reason::CriteriaConflict, message));
            }
            (None, None) => {
                let message = format!(
                    "the snapshot does not hold {name}; declare criteria.{name}, or request a snapshot once it can be measured"
                );
                return Err((Reason::SnapshotIncomplete, message));
            }
            (Some(_), _) | (None, Some(_)) => {}
        }
    }
    Ok(Criteria {
        service: declared.service.or_else(|| word(reading.service.as_deref())),
        accelerator: declared.accelerator.or_else(|| word(reading.accelerator.as_deref())),
        os: declared.os.or_else(|| word(reading.os.as_deref())),
    })
}

/// A word of one of AICR's vocabularies; one that this operator does not know is left to AICR.
fn word<T: for<'de> Deserialize<'de>>(text: Option<&str>) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text?.to_owned())).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn record() -> Record {
        Record {
            day: "2026-11-29".into(),
            image: "i1".into(),
            placement: "p".into(),
            node_types: ["p5".into()].into(),
            ..Record::default()
        }
    }

    #[rstest]
    #[case::nothing(|_: &mut Record| {}, None)]
    #[case::day(|r: &mut Record| r.day = "2026-11-30".into(), Some("first resolution of the day"))]
    #[case::placement(|r: &mut Record| r.placement = "q".into(), Some("accelerated placement changed"))]
    #[case::image(|r: &mut Record| r.image = "i2".into(), Some("AICR image changed"))]
    #[case::types(|r: &mut Record| r.node_types = BTreeSet::new(), Some("accelerated node types changed"))]
    #[case::release(|r: &mut Record| r.gpu_operator = Some("d".into()), Some("gpu-operator release of the active plan changed"))]
    #[case::token(|r: &mut Record| r.token = Some("1".into()), Some("requested"))]
    fn each_trigger_takes_one_snapshot(#[case] change: fn(&mut Record), #[case] cause: Option<&'static str>) {
        let mut present = record();
        change(&mut present);
        assert_eq!(due(&[&record()], &present), cause);
        assert_eq!(due(&[&present], &present), None);
    }

    #[test]
    fn the_first_resolution_takes_one_and_a_token_taken_away_takes_none() {
        assert_eq!(due(&[], &record()), Some("first resolution"));
        assert_eq!(due(&[&with_token("1")], &record()), None);
    }

    fn with_token(token: &str) -> Record {
        Record { token: Some(token.into()), ..record() }
    }

    #[test]
    fn a_token_acts_once_also_when_it_comes_back_after_another() {
        let (one, two) = (with_token("1"), with_token("2"));
        assert_eq!(due(&[&one, &two], &with_token("1")), None);
        assert_eq!(due(&[&one, &two], &with_token("3")), Some("requested"));
    }

    #[test]
    fn a_clock_that_is_behind_takes_no_snapshot_of_the_day_before() {
        let yesterday = Record { day: "2026-11-28".into(), ..record() };
        assert_eq!(due(&[&record()], &yesterday), None);
    }

    fn reading() -> Reading {
        Reading {
            version: "1.0.0".into(),
            service: Some("eks".into()),
            accelerator: Some("h100".into()),
            os: Some("ubuntu".into()),
            kubernetes: Some("v1.34.4".into()),
            nodes: Some(1),
        }
    }

    #[test]
    fn what_is_read_and_what_is_declared_make_the_criteria() {
        let declared: Criteria = serde_json::from_str(r#"{"accelerator":"h100"}"#).unwrap();
        let expected: Criteria =
            serde_json::from_str(r#"{"service":"eks","accelerator":"h100","os":"ubuntu"}"#).unwrap();
        assert_eq!(criteria(&declared, &reading()), Ok(expected.clone()));
        assert_eq!(criteria(&declared, &Reading { accelerator: None, ..reading() }), Ok(expected));
    }

    #[rstest]
    #[case::conflict(
        reading(),
        r#"{"os":"rhel"}"#,
        Reason::CriteriaConflict,
        "declares rhel, the snapshot reads ubuntu"
    )]
    #[case::no_service(Reading { service: None, ..reading() }, "{}", Reason::SnapshotIncomplete, "declare criteria.service")]
    #[case::no_accelerator(
        Reading { accelerator: None, ..reading() },
        "{}",
        Reason::SnapshotIncomplete,
        "does not hold accelerator; declare criteria.accelerator"
    )]
    #[case::no_os(Reading { os: None, ..reading() }, "{}", Reason::SnapshotIncomplete, "declare criteria.os")]
    #[case::no_nodes(Reading { nodes: Some(0), ..reading() }, "{}", Reason::SnapshotIncomplete, "any node")]
    #[case::no_version(Reading { kubernetes: None, ..reading() }, "{}", Reason::SnapshotIncomplete, "Kubernetes version")]
    fn what_is_missing_or_in_conflict_is_named(
        #[case] reading: Reading,
        #[case] declared: &str,
        #[case] reason: Reason,
        #[case] text: &str,
    ) {
        let (found, message) = criteria(&serde_json::from_str(declared).unwrap(), &reading).unwrap_err();
        assert_eq!(found, reason);
        assert!(message.contains(text), "{message}");
    }
}
