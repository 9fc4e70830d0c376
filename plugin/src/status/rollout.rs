//! The rollout under way: how far it is, what it waits for, and every release that is not ready.

use aicr_crds::{RuntimeRollout, rollout::ReleaseState};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{seen::Seen, waits::Wait};
use crate::{
    page::Page,
    text::Tone,
    time::{relative, short, stamp},
    view,
};

/// Columns of the bar; it has one for each step where there are fewer.
const BAR: usize = 40;

/// Every unfinished rollout, or the last that ended.
pub(super) fn write(page: &mut Page, seen: &Seen, now: Timestamp) {
    for name in &seen.unreadable {
        page.heading(&format!("Rollout {name}"));
        let text = "written in words that this plugin does not know; use the plugin of the operator's release";
        page.text(2, "", Tone::Waiting, text);
    }
    let mut any = !seen.unreadable.is_empty();
    for rollout in seen.unfinished() {
        any = true;
        unfinished(page, rollout, seen, now);
    }
    if let (false, Some(last)) = (any, seen.last()) {
        ended(page, last, now);
    }
}

fn unfinished(page: &mut Page, rollout: &RuntimeRollout, seen: &Seen, now: Timestamp) {
    let phase = view::phase(rollout).map_or("Pending", aicr_crds::rollout::Phase::as_str);
    page.heading(&format!("Rollout {}", rollout.name_any()));
    page.field("Phase", Tone::Plain, phase);
    page.field("Steps", Tone::Plain, &bar(rollout));
    let status = rollout.status.as_ref();
    if let Some(current) = status.and_then(|status| status.current.as_ref()) {
        let since = short(now.duration_since(current.started_at.0));
        page.field("In flight", Tone::Plain, &format!("{} {}, for {since}", current.operation, current.release));
    }
    if let Some(message) = status.and_then(|status| status.message.as_deref()) {
        page.field("Message", Tone::Plain, message);
    }
    let wait = Wait::of(rollout, seen, now);
    page.field("Waits for", wait.tone(), &wait.to_string());
    for bound in &wait.until {
        page.field("", Tone::Plain, &bound.text(now));
    }
    not_ready(page, rollout);
}

fn ended(page: &mut Page, rollout: &RuntimeRollout, now: Timestamp) {
    let Some(phase) = view::ended(rollout) else { return };
    let status = rollout.status.as_ref();
    let at = status.and_then(|status| status.finished_at.as_ref()).map(|time| time.0);
    let when = at.map(|at| format!(" at {} ({})", stamp(at), relative(at, now))).unwrap_or_default();
    page.heading(&format!("Rollout {}: none is under way, this was the last", rollout.name_any()));
    page.field("Ended", Tone::Plain, &format!("{phase}{when}"));
    if let Some(message) = status.and_then(|status| status.message.as_deref()) {
        page.field("Message", Tone::Plain, message);
    }
    not_ready(page, rollout);
}

/// `[####>.....]  5/10`: steps done, the one in flight, and those to come.
fn bar(rollout: &RuntimeRollout) -> String {
    let steps = &rollout.spec.steps;
    let is_done = |state: Option<ReleaseState>| matches!(state, Some(ReleaseState::Ready | ReleaseState::Removed));
    let done = steps.iter().filter(|step| is_done(view::state(rollout, step))).count();
    let width = steps.len().min(BAR);
    let filled = (done * width).checked_div(steps.len()).unwrap_or_default();
    let in_flight = rollout.status.as_ref().is_some_and(|status| status.current.is_some()) && filled < width;
    let head = if in_flight { ">" } else { "" };
    let rest = ".".repeat(width - filled - head.len());
    format!("[{}{head}{rest}] {done} of {} done", "#".repeat(filled), steps.len())
}

fn not_ready(page: &mut Page, rollout: &RuntimeRollout) {
    let releases = rollout.status.as_ref().map(|status| status.releases.as_slice()).unwrap_or_default();
    let mut label = "Not ready";
    for release in
        releases.iter().filter(|release| !matches!(release.state, ReleaseState::Ready | ReleaseState::Removed))
    {
        let message = release.message.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        let tone = if release.state == ReleaseState::Failed { Tone::Bad } else { Tone::Plain };
        page.field(label, tone, &format!("{} {}{message}", release.release, release.state));
        label = "";
    }
}
