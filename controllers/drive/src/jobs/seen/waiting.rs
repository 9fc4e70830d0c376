//! Why a Job's pod does not run, in the words of the page.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Event, Pod, PodStatus};

use super::OneJob;

/// How long the Job controller may take to create a pod: with a look every ten seconds, people are told within 30.
const POD_DUE: SignedDuration = SignedDuration::from_secs(15);
/// The longest cause in a message, in bytes.
const CAUSE_LIMIT: usize = 1024;

impl OneJob<'_> {
    /// Why the pod is not running; `None` while it runs or is just starting.
    pub(super) fn waiting(&self) -> Option<String> {
        let name = self.name;
        let Some(pod) = self.pod() else {
            return self.is_overdue().then(|| format!("Job {name} has no pod"));
        };
        let status = pod.status.as_ref()?;
        if let Some(why) = unscheduled(status) {
            return Some(format!("Job {name} is not scheduled: {}", cut(why)));
        }
        if let Some((container, waiting)) = stuck(status) {
            let reason = waiting.reason.as_deref().unwrap_or_default();
            let ContainerStatus { name: container, image, .. } = container;
            let said = waiting.message.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
            return Some(format!(
                "Job {name}: {reason}: {}",
                cut(&format!("container {container}, image {image}{said}"))
            ));
        }
        let mount = starting(status).then(|| self.newest_event(pod, "FailedMount")).flatten()?;
        Some(format!("Job {name}: FailedMount: {}", cut(mount.message.as_deref().unwrap_or_default())))
    }

    fn is_overdue(&self) -> bool {
        let started = self.job.status.as_ref().and_then(|status| status.start_time.as_ref());
        let since = started.or(self.job.metadata.creation_timestamp.as_ref());
        since.is_some_and(|since| self.around.now.duration_since(since.0) > POD_DUE)
    }

    fn newest_event(&self, pod: &Pod, reason: &str) -> Option<&Event> {
        let of_pod = |event: &&Event| {
            event.reason.as_deref() == Some(reason)
                && event.involved_object.kind.as_deref() == Some("Pod")
                && event.involved_object.name == pod.metadata.name
        };
        self.around.events.iter().filter(of_pod).max_by_key(|event| {
            let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|at| at.0);
            series.or(event.last_timestamp.as_ref().map(|at| at.0)).or(event.event_time.as_ref().map(|at| at.0))
        })
    }
}

fn unscheduled(status: &PodStatus) -> Option<&str> {
    let conditions = status.conditions.iter().flatten();
    let mut refused = conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    refused.next().map(|condition| condition.message.as_deref().unwrap_or("no reason given"))
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
}

fn waiting_of(container: &ContainerStatus) -> Option<&ContainerStateWaiting> {
    container.state.as_ref()?.waiting.as_ref()
}

/// Reasons that every container passes through.
fn is_usual(waiting: &ContainerStateWaiting) -> bool {
    matches!(waiting.reason.as_deref(), None | Some("" | "ContainerCreating" | "PodInitializing"))
}

/// The first container that waits for a reason of its own.
fn stuck(status: &PodStatus) -> Option<(&ContainerStatus, &ContainerStateWaiting)> {
    containers(status).find_map(|container| {
        let waiting = waiting_of(container).filter(|waiting| !is_usual(waiting))?;
        Some((container, waiting))
    })
}

/// Whether the pod is placed and no container has begun: then its volumes may be what it waits for.
fn starting(status: &PodStatus) -> bool {
    let begun = |container: &ContainerStatus| {
        container.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    status.phase.as_deref() == Some("Pending") && !containers(status).any(begun)
}

/// A cause on one line, within its limit.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    aicr_decide::message::bounded(&line, CAUSE_LIMIT)
}
