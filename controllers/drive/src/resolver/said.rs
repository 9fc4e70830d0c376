//! How far the inputs have come: what a verdict means for the conditions, and what discovery found.

use std::{collections::BTreeMap, sync::Arc};

use aicr_crds::{
    Digest,
    plan::{PlanContext, StoredPlan},
    runtime::{Aicr, Discovery, SnapshotRef},
};
use aicr_decide::{
    resolve::{self, Seen, Verdict},
    seen::{Resolution, ResolutionState},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::entries::spec_label;
use crate::watch::ResolvedEntry;

/// Plans by digest, with the time of their ConfigMaps.
type Plans = BTreeMap<Digest, (Timestamp, Arc<StoredPlan>)>;

/// What the verdict says of the inputs; `entries` are what was resolved from the snapshots, newest last.
pub(super) fn resolution(entries: &[ResolvedEntry], plans: &Plans, seen: &Seen<'_>, verdict: &Verdict) -> Resolution {
    let spec = spec_label(&seen.runtime.spec, seen);
    // Never an older plan than the newest that was resolved, also where that one's ConfigMap is gone.
    let last = entries.last().map(|entry| entry.plan).filter(|plan| seen.plans.contains(plan));
    let (state, candidate) = match verdict {
        Verdict::Resolved(digest) => (ResolutionState::Resolved, Some(*digest)),
        Verdict::Stall(reason, message) => {
            (ResolutionState::Stalled { reason: *reason, message: message.clone() }, last)
        }
        Verdict::Run(_)
        | Verdict::StoreSnapshot { .. }
        | Verdict::Record(_)
        | Verdict::Mirror(_)
        | Verdict::DeleteJobs(_)
        | Verdict::Wait(..) => {
            let stands = last.is_some_and(|last| entries.iter().any(|one| one.spec == spec && one.plan == last));
            (ResolutionState::Resolving { message: verdict.message().to_owned(), plan_stands: stands }, last)
        }
    };
    let context = candidate.and_then(|digest| plans.get(&digest)).map(|(_, stored)| &stored.context);
    let generation = seen.runtime.metadata.generation;
    Resolution { state, candidate, discovery: Some(discovery(seen, context)), aicr: aicr(seen), generation }
}

fn discovery(seen: &Seen<'_>, context: Option<&PlanContext>) -> Discovery {
    let count = |nodes: usize| i32::try_from(nodes).unwrap_or(i32::MAX);
    Discovery {
        snapshot: seen.snapshots.last().map(|stored| SnapshotRef {
            config_map: stored.name.clone(),
            taken_at: Time(stored.taken_at),
            cause: stored.record.cause.clone(),
        }),
        criteria: resolve::criteria(seen)
            .or_else(|| context.map(|context| context.criteria.clone()))
            .unwrap_or_default(),
        accelerated_nodes: count(seen.groups.accelerated),
        system_nodes: count(seen.groups.system),
    }
}

/// The AICR that ran last: as the newest snapshot records it.
fn aicr(seen: &Seen<'_>) -> Option<Aicr> {
    let newest = seen.snapshots.last()?;
    let version = newest.reading.as_ref().ok()?.version.clone();
    Some(Aicr { version, image: newest.record.image.clone() })
}
