//! Point 10: the release's own gate on live objects, for what Argo CD counts as healthy without looking (A53, A54).

use aicr_crds::reason::StepReason;
use jiff::{SignedDuration, Timestamp};

use super::{Action, Expected, Observation};
use crate::{
    facts::{CustomSeen, DaemonSetSeen, Live},
    message::listed,
};

/// How long a gate must pass without a break: `ClusterPolicy` flaps during an upgrade (A55, B73).
pub const GATE_STABLE: SignedDuration = SignedDuration::from_secs(60);
/// How many objects a detail names.
const NAMED: usize = 5;

/// Words of `status.state` that mean ready.
const READY: [&str; 5] = ["ready", "complete", "healthy", "running", "succeeded"];

/// What live objects say against readiness; judged last, so that what Argo CD says comes first.
pub(super) fn gate(expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let live = expected.live;
    if !live.outdated.is_empty() {
        let words = format!("not as rendered although Argo CD says Synced: {}", listed(&live.outdated, NAMED));
        let action = expected.hard_refreshed_at.is_none().then_some(Action::HardRefresh);
        return Some(Observation::of(StepReason::GateNotReady, words).with(action));
    }
    let against = not_passed(live);
    if !against.is_empty() {
        return Some(Observation::of(StepReason::GateNotReady, listed(&against, NAMED)));
    }
    if live.daemon_sets.is_empty() && live.customs.is_empty() {
        return None;
    }
    let until = expected.gate_passed_since.map_or(now + GATE_STABLE, |since| since + GATE_STABLE);
    (now < until).then(|| Observation {
        gate_passes: true,
        ..Observation::of(StepReason::GateNotReady, format!("passes; must do so until {until}"))
    })
}

fn not_passed(live: &Live) -> Vec<String> {
    let sets = live.daemon_sets.iter().filter_map(daemon_set);
    sets.chain(live.customs.iter().filter_map(custom)).collect()
}

fn daemon_set(set: &DaemonSetSeen) -> Option<String> {
    let DaemonSetSeen { name, desired, updated, ready, pods } = set;
    let pods = if pods.is_empty() { String::new() } else { format!(" ({})", listed(pods, NAMED)) };
    if updated < desired {
        return Some(format!("DaemonSet {name}: {updated} of {desired} nodes updated{pods}"));
    }
    (ready < desired).then(|| format!("DaemonSet {name}: {ready} of {desired} nodes ready{pods}"))
}

fn custom(resource: &CustomSeen) -> Option<String> {
    let CustomSeen { name, state, ready, message } = resource;
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    let unready = |state: &&String| !READY.contains(&state.to_lowercase().as_str());
    if let Some(state) = state.as_ref().filter(unready) {
        return Some(format!("{name} is {state}{message}"));
    }
    let ready = ready.as_ref().filter(|ready| *ready != "True")?;
    Some(format!("{name} has Ready={ready}{message}"))
}
