//! How a failed Job failed: by what its container said, else by what became of its pod.

use aicr_crds::reason::Reason;
use aicr_decide::resolve::{Class, Failure, JobPhase, Stage, launcher_of_agent};
use aicr_read::failure::{self, Ruling};
use k8s_openapi::api::{
    batch::v1::JobCondition,
    core::v1::{ContainerState, ContainerStateTerminated, Event, Pod},
};

use super::{super::objects::MEMORY_LIMIT, OneJob, has_ended, terminated};

/// Pod reasons with which a node takes a pod away.
const TAKEN: [&str; 5] = ["Evicted", "NodeLost", "NodeAffinity", "Preempting", "Terminated"];

/// Events that tell of a pod that could not begin.
const TROUBLE: [&str; 6] =
    ["FailedScheduling", "FailedMount", "Failed", "BackOff", "FailedCreate", "FailedCreatePodSandBox"];

impl OneJob<'_> {
    pub(super) fn failed(&self, condition: &JobCondition) -> JobPhase {
        let deadline = condition.reason.as_deref() == Some("DeadlineExceeded");
        let pod = self.pod();
        // The Job ended before its pod's end arrived here: what the pod says is still to come.
        if !deadline && pod.is_some_and(|pod| !has_ended(pod)) {
            return JobPhase::Active(None);
        }
        let failure = if deadline { self.late() } else { exited(pod, condition) };
        let failure = self.by_agent(failure);
        JobPhase::Failed { failure, at: self.at(condition) }
    }

    /// A launcher whose agent never began waits its whole time and says nothing of the cause; the agent's Events do,
    /// once the launcher has taken agent and pod away. Like any run that never began, it is tried again.
    fn by_agent(&self, failure: Failure) -> Failure {
        let timed_out = self.stage == Stage::Snapshot && failure.reason == Reason::AICRTimeout;
        let agents: Vec<&Event> = self.around.events.iter().filter(|event| self.is_of_agent(event)).collect();
        let says =
            |reason: &[&str], event: &&&Event| event.reason.as_deref().is_some_and(|said| reason.contains(&said));
        let began = agents.iter().any(|event| says(&["Started"], &event));
        match agents.iter().rfind(|event| says(&TROUBLE, event)).filter(|_| timed_out && !began) {
            None => failure,
            Some(event) => {
                let (job, reason) = (event.involved_object.name.as_deref(), event.reason.as_deref());
                let message = event.message.as_deref().unwrap_or_default();
                let text = format!(
                    "the agent {} did not start: {}: {message}",
                    job.unwrap_or_default(),
                    reason.unwrap_or_default()
                );
                Failure {
                    text: aicr_decide::message::bounded(&text, failure::TEXT_LIMIT / 2),
                    class: Class::Transient,
                    ..failure
                }
            }
        }
    }

    /// Whether an Event is about this launcher's agent or its pod.
    fn is_of_agent(&self, event: &Event) -> bool {
        let name = event.involved_object.name.as_deref().unwrap_or_default();
        let of_launcher = |job: &str| launcher_of_agent(job).as_deref() == Some(self.name);
        match event.involved_object.kind.as_deref() {
            Some("Job") => of_launcher(name),
            Some("Pod") => name.rsplit_once('-').is_some_and(|(job, _)| of_launcher(job)),
            Some(_) | None => false,
        }
    }

    /// The deadline passed. A run that never began is tried again without end; the pod is usually gone by now, so
    /// the Events speak for it.
    fn late(&self) -> Failure {
        let seconds = self.stage.deadline_seconds();
        if self.never_began() {
            let cause = self.trouble().map(|cause| format!(": {cause}")).unwrap_or_default();
            return transient(format!("the pod did not start within {seconds} seconds{cause}"));
        }
        ruled(None, format!("the deadline of {seconds} seconds passed"), failure::deadline_exceeded())
    }

    fn never_began(&self) -> bool {
        let pod_began = self.pod().and_then(|pod| pod.status.as_ref()).is_some_and(|status| {
            let begun = |state: &ContainerState| state.running.is_some() || state.terminated.is_some();
            status.container_statuses.iter().flatten().any(|status| status.state.as_ref().is_some_and(begun))
        });
        let started = self.events_of_run(&["Started"]).next().is_some();
        let stuck_pod = self.pod().is_some_and(|pod| !has_ended(pod));
        !pod_began && !started && (stuck_pod || self.events_of_run(&TROUBLE).next().is_some())
    }

    fn trouble(&self) -> Option<String> {
        if let Some(waiting) = self.pod().and_then(|_| self.waiting()) {
            return Some(waiting);
        }
        let last = self.events_of_run(&TROUBLE).last()?;
        let (reason, message) = (last.reason.as_deref()?, last.message.as_deref().unwrap_or_default());
        Some(aicr_decide::message::bounded(format!("{reason}: {message}"), failure::TEXT_LIMIT / 2))
    }

    /// Events of the Job and of its pods, which are named after it.
    fn events_of_run<'b>(&'b self, reasons: &'b [&str]) -> impl Iterator<Item = &'b Event> {
        let prefix = format!("{}-", self.name);
        self.around.events.iter().filter(move |event| {
            let name = event.involved_object.name.as_deref().unwrap_or_default();
            let of_run = match event.involved_object.kind.as_deref() {
                Some("Job") => name == self.name,
                Some("Pod") => name.strip_prefix(&prefix).is_some_and(|suffix| !suffix.contains('-')),
                Some(_) | None => false,
            };
            of_run && event.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
        })
    }
}

fn exited(pod: Option<&Pod>, condition: &JobCondition) -> Failure {
    let Some(pod) = pod else {
        let message = condition.message.as_deref().unwrap_or("its pod is gone");
        return transient(format!("the pod is gone: {message}"));
    };
    if let Some(taken) = taken(pod) {
        return transient(taken);
    }
    let Some(end) = terminated(pod) else {
        return transient("the pod failed before its container started".to_owned());
    };
    match end.reason.as_deref() {
        Some("OOMKilled") => {
            let text = format!("OOMKilled: the container took more than its memory limit of {MEMORY_LIMIT}");
            ruled(Some(end.exit_code), text, failure::class(Some(137), &failure::read(Some(137), "")))
        }
        // The node came back without knowing how the container ended.
        Some("ContainerStatusUnknown") => transient("the node was lost while the container ran".to_owned()),
        Some(_) | None => said(end),
    }
}

fn said(end: &ContainerStateTerminated) -> Failure {
    let read = failure::read(Some(end.exit_code), end.message.as_deref().unwrap_or_default());
    let ruling = failure::class(Some(end.exit_code), &read);
    ruled(Some(end.exit_code), read.text, ruling)
}

/// Why the pod was taken from its node, if it was.
fn taken(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let reason = status.reason.as_deref().filter(|reason| TAKEN.contains(reason));
    if let Some(reason) = reason {
        return Some(format!("{reason}: {}", status.message.as_deref().unwrap_or("the node took the pod away")));
    }
    let mut conditions = status.conditions.iter().flatten();
    let disrupted = conditions.find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True")?;
    let reason = disrupted.reason.as_deref().unwrap_or("DisruptionTarget");
    Some(format!("{reason}: {}", disrupted.message.as_deref().unwrap_or("the pod was disrupted")))
}

fn transient(text: String) -> Failure {
    Failure { exit: None, text, class: Class::Transient, reason: Reason::AICRInternal }
}

/// Transient failures never stall, so their reason is never shown.
fn ruled(exit: Option<i32>, text: String, ruling: Ruling) -> Failure {
    let class = match ruling.class {
        failure::Class::Never => Class::Never,
        failure::Class::Bounded => Class::Bounded,
        failure::Class::Transient => Class::Transient,
        failure::Class::Authorization => Class::Authorization,
    };
    Failure { exit, text, class, reason: ruling.reason.unwrap_or(Reason::AICRInternal) }
}
