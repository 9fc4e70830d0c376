//! Promise 5: when a release may be called ready.

use aicr_crds::rollout::Operation;
use aicr_decide::rollout::{Verdict, Write};

use super::{Broken, Context, Progress};
use crate::event::Gate;

/// Each look for a minute has found it passing.
fn gate_passed(context: &Context<'_>, gate: Gate, release: &str) -> bool {
    let cluster = context.cluster;
    match gate {
        Gate::None => true,
        Gate::Fails | Gate::Outdated => false,
        Gate::Passes => {
            let since = cluster.passing.iter().find(|(id, name, _)| *id == context.id && name == release);
            let minute = jiff::SignedDuration::from_secs(60 - 2 * cluster.tolerance);
            since.is_some_and(|(_, _, since)| cluster.now.duration_since(*since) >= minute)
        }
    }
}

/// Promise 5.
pub(super) fn ready(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    let Verdict::Do(Write::Record { release, entry }, _) = verdict else { return None };
    let step = context.steps().iter().find(|step| step.release == *release)?;
    if !entry.ready || step.operation == Operation::Remove {
        return None;
    }
    let fails = |how: &str| Some(Broken { promise: 5, how: format!("{release} is called ready: {how}") });
    let Some((application, ghost)) = context.view.application(release) else { return fails("it is not there") };
    if progress.flying.map(|place| &context.steps()[place].release) != Some(release) {
        return fails("its step is not in flight");
    }
    let Some((by, at)) = ghost.step else { return fails("nobody wrote it") };
    let Some(judged) = &ghost.judged else { return fails("it was never compared") };
    let print = context.print(release);
    if by != context.id {
        return fails("another rollout wrote it last");
    }
    if judged.at.as_second() + context.cluster.tolerance < at.as_second() {
        return fails("the comparison is older than the write");
    }
    if judged.outdated {
        return fails("an operation ended since the comparison");
    }
    if !judged.healthy || judged.live != Some(application.fingerprint) || judged.live != print {
        return fails("what runs is not healthy or not the target's");
    }
    if application.is_deleting() {
        return fails("it is being deleted");
    }
    if context.seen.facts.trouble.is_some() || application.annotations.skip_reconcile.is_some() {
        return fails("nothing can be known of it");
    }
    if !gate_passed(context, ghost.gate, release) && context.is_current() {
        return fails("its own gate has not passed for a minute");
    }
    (step.operation == Operation::Verify && ghost.synced_for != Some(context.id))
        .then(|| Broken { promise: 5, how: format!("{release} is called verified without a sync of its own") })
}
