//! What is seen of one AICR run: where its Job is, why its pod does not run, how it ended and what it wrote.

mod ended;
mod waiting;

use aicr_crds::{keys::label, reason::Reason};
use aicr_decide::resolve::{AicrInstall, JobPhase, JobSeen, LeftOut, Stage, left_out};
use aicr_read::{
    ReadError, image_refs,
    recipe::{self, Recipe},
    snapshot, upgrade,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobCondition},
    core::v1::{ConfigMap, ContainerStateTerminated, Event, Pod},
};

/// Label with the Job's uid on its pods.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// Everything around one Job, all of its namespace; pods and events of other Jobs are passed over.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// Pods.
    pub pods: &'a [Pod],
    /// Events of Jobs and pods.
    pub events: &'a [Event],
    /// The ConfigMap of the Job's name, read after the Job was seen.
    pub output: Option<&'a ConfigMap>,
    /// The AICR that must have run.
    pub aicr: &'a AicrInstall,
    /// The present.
    pub now: Timestamp,
}

/// One of our Jobs as decisions see it; `None` for a Job without our labels.
pub fn job(job: &Job, around: Around<'_>) -> Option<JobSeen> {
    let labels = job.metadata.labels.as_ref()?;
    let stage = Stage::parse(labels.get(label::STAGE)?)?;
    let of = OneJob { job, name: job.metadata.name.as_deref()?, stage, around };
    Some(JobSeen {
        name: of.name.to_owned(),
        stage,
        input: labels.get(label::INPUT)?.clone(),
        attempt: labels.get(label::ATTEMPT)?.parse().ok()?,
        run: labels.get(label::RUN)?.clone(),
        phase: of.phase(),
    })
}

/// Why the pod of a Job that is not ours does not run: of an agent, behind whose launcher it would stay hidden.
pub fn agent(job: &Job, around: Around<'_>) -> Option<String> {
    let name = job.metadata.name.as_deref()?;
    OneJob { job, name, stage: Stage::Snapshot, around }.waiting()
}

struct OneJob<'a> {
    job: &'a Job,
    name: &'a str,
    stage: Stage,
    around: Around<'a>,
}

impl<'a> OneJob<'a> {
    fn phase(&self) -> JobPhase {
        let spec = self.job.spec.as_ref();
        if let Some(complete) = self.condition("Complete") {
            self.succeeded(complete)
        } else if let Some(failed) = self.condition("Failed") {
            self.failed(failed)
        } else if spec.and_then(|spec| spec.suspend) == Some(true) {
            JobPhase::Suspended
        } else {
            JobPhase::Active(self.waiting())
        }
    }

    /// A condition that is true; a resumed Job keeps `Suspended=False`.
    fn condition(&self, kind: &str) -> Option<&'a JobCondition> {
        let conditions = self.job.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
    }

    /// When it ended.
    fn at(&self, condition: &JobCondition) -> Timestamp {
        let completed = self.job.status.as_ref().and_then(|status| status.completion_time.as_ref());
        completed.or(condition.last_transition_time.as_ref()).map_or(self.around.now, |time| time.0)
    }

    /// Its newest pod.
    fn pod(&self) -> Option<&'a Pod> {
        let mine = self.around.pods.iter().filter(|pod| self.owns(pod));
        mine.max_by_key(|pod| {
            (pod.metadata.creation_timestamp.as_ref().map(|time| time.0), pod.metadata.name.as_deref())
        })
    }

    fn owns(&self, pod: &Pod) -> bool {
        let Some(uid) = self.job.metadata.uid.as_ref() else { return false };
        let labels = pod.metadata.labels.as_ref();
        let labelled = labels.and_then(|labels| labels.get(CONTROLLER_UID)) == Some(uid);
        labelled || pod.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Job" && owner.uid == *uid)
    }

    /// Exit 0. Where the pod's end has not arrived yet, the run counts as active: its message is still to come.
    fn succeeded(&self, complete: &JobCondition) -> JobPhase {
        let pod = self.pod();
        if pod.is_some_and(|pod| !has_ended(pod)) {
            return JobPhase::Active(None);
        }
        let message = pod.and_then(terminated).and_then(|end| end.message.clone()).unwrap_or_default();
        let output = self.around.output.and_then(document);
        let refused = self.refused(&message, output.as_deref());
        JobPhase::Succeeded { message, output, refused, at: self.at(complete) }
    }

    /// Whether what it wrote is of the kind that it should be; nothing is decided on what it says.
    fn refused(&self, message: &str, output: Option<&str>) -> Option<(Reason, String)> {
        let bytes = match (self.stage, output) {
            (Stage::Base | Stage::Render, _) => return image_refs::digest(message).err().as_ref().map(refusal),
            // Its exit is the verdict; the report only says more.
            (Stage::Validation, _) => return None,
            (_, Some(text)) => text.as_bytes(),
            (_, None) => return Some((Reason::AICRInternal, "it wrote no output".to_owned())),
        };
        let version = match self.stage {
            Stage::Snapshot => snapshot::read(bytes).map(|snapshot| Some(snapshot.version)),
            Stage::Recipe => match recipe::read(bytes) {
                Ok(recipe) => {
                    let mismatch = self.mismatch(&recipe.version);
                    return mismatch.or_else(|| left_out(&left_out_of(&recipe)));
                }
                Err(error) => Err(error),
            },
            Stage::Assessment => upgrade::read(bytes).map(|_| None),
            Stage::Validation | Stage::Base | Stage::Render => return None,
        };
        match version {
            Ok(version) => version.and_then(|version| self.mismatch(&version)),
            Err(error) => Some(refusal(&error)),
        }
    }

    fn mismatch(&self, recorded: &str) -> Option<(Reason, String)> {
        let aicr = self.around.aicr;
        (!aicr.is(recorded)).then(|| (Reason::AICRVersionMismatch, aicr.mismatch(recorded)))
    }
}

/// What AICR left out of a recipe: by the constraints that the snapshot does not meet, else by its own words.
fn left_out_of(recipe: &Recipe) -> Vec<LeftOut> {
    let unmet = recipe.constraint_warnings.iter().map(|warning| LeftOut {
        overlay: warning.overlay.clone(),
        why: format!(
            "{} expects {}, the snapshot reads {}",
            warning.constraint,
            warning.expected,
            warning.actual.as_deref().unwrap_or("nothing")
        ),
    });
    let named: Vec<&str> = recipe.constraint_warnings.iter().map(|warning| warning.overlay.as_str()).collect();
    let others = recipe.excluded_overlays.iter().filter(|excluded| !named.contains(&excluded.name.as_str()));
    let others = others.map(|excluded| LeftOut { overlay: excluded.name.clone(), why: excluded.reason.clone() });
    unmet.chain(others).collect()
}

fn refusal(error: &ReadError) -> (Reason, String) {
    let reason = match error {
        ReadError::Unsupported { .. } => Reason::AICRArtifactUnsupported,
        ReadError::TooLarge { .. } => Reason::ContentTooLarge,
        ReadError::Damaged { .. } => Reason::AICRInternal,
    };
    (reason, error.to_string())
}

/// The document that AICR wrote: its `format` key says under which name, as `snapshot.json` for every stage.
pub(super) fn document(map: &ConfigMap) -> Option<String> {
    let data = map.data.as_ref()?;
    let extension = match data.get("format").map(String::as_str) {
        None | Some("yaml") => "yaml",
        Some("json") => "json",
        Some("table" | "txt") => "txt",
        Some(_) => return None,
    };
    let suffix = format!(".{extension}");
    let named = data.get(&format!("snapshot{suffix}"));
    named.or_else(|| data.iter().find(|(key, _)| key.ends_with(&suffix)).map(|(_, text)| text)).cloned()
}

/// The end of the pod's container.
fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find_map(|status| status.state.as_ref()?.terminated.as_ref())
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed")) || terminated(pod).is_some()
}

#[cfg(test)]
mod tests;
