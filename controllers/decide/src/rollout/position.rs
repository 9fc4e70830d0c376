//! How far a rollout has come, found anew from its spec, its `written` annotation and the Applications; never from status.

use std::{borrow::Cow, sync::Arc};

use aicr_crds::{
    RuntimeRollout, RuntimeRolloutStatus,
    application::Application,
    keys::annotation,
    rollout::{Operation, Step, Written, WrittenEntry},
};

/// How far a rollout has come.
#[derive(Clone, Debug)]
pub struct Position<'a> {
    /// The rollout.
    pub rollout: &'a RuntimeRollout,
    /// What it did, as it wrote itself.
    pub written: Cow<'a, Written>,
    /// What status says of it: clocks, and words for people. It may be lost, and is found anew.
    pub status: Option<&'a RuntimeRolloutStatus>,
    /// Place of the step in flight.
    pub in_flight: Option<usize>,
    /// Place of the next step to start, when none is in flight.
    pub next: Option<usize>,
    applications: &'a [Arc<Application>],
    by_name: Vec<&'a Application>,
}

impl<'a> Position<'a> {
    /// Finds it.
    ///
    /// A step is in flight from the moment its Application names this rollout until `written` says it was found ready;
    /// of several that name it the last in order, as it would not have begun before the others were ready.
    pub fn find(rollout: &'a RuntimeRollout, applications: &'a [Arc<Application>]) -> Self {
        Self::knowing(rollout, Cow::Owned(written(rollout)), applications)
    }

    /// The same, where what it wrote has been read.
    pub fn knowing(
        rollout: &'a RuntimeRollout,
        written: Cow<'a, Written>,
        applications: &'a [Arc<Application>],
    ) -> Self {
        let mut by_name: Vec<&Application> = applications.iter().map(AsRef::as_ref).collect();
        by_name.sort_by_key(|application| application.name());
        let status = rollout.status.as_ref();
        let mut position = Self { rollout, written, status, in_flight: None, next: None, applications, by_name };
        let begun = position.steps().iter().rposition(|step| position.is_begun(step));
        let after = begun.map_or(0, |index| index + 1);
        match begun.filter(|index| !position.is_done(*index)) {
            Some(index) => position.in_flight = Some(index),
            None => position.next = (after < position.steps().len()).then_some(after),
        }
        // An Install that was seen and has vanished is begun, not done and not in flight: drift stalls it. A Remove is in
        // flight from its delete on.
        if let Some(index) = position.in_flight.filter(|index| !position.is_moving(*index)) {
            (position.in_flight, position.next) = (None, Some(index));
        }
        position
    }

    /// The same where status was lost: clocks start anew.
    #[must_use]
    pub fn without_status(self) -> Self {
        Self { status: None, ..self }
    }

    /// The steps in order.
    pub fn steps(&self) -> &'a [Step] {
        &self.rollout.spec.steps
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.rollout.metadata.name.as_deref().unwrap_or_default()
    }

    /// The Application of this name, as it is there.
    pub fn application(&self, name: &str) -> Option<&'a Application> {
        let place = self.by_name.partition_point(|application| application.name() < name);
        self.by_name.get(place).copied().filter(|application| application.name() == name)
    }

    /// All Applications.
    pub fn applications(&self) -> impl Iterator<Item = &'a Application> + use<'a> {
        self.applications.iter().map(AsRef::as_ref)
    }

    /// What this rollout wrote of a release.
    pub fn entry(&self, release: &str) -> Option<&WrittenEntry> {
        self.written.get(release)
    }

    /// Whether any step was begun.
    pub fn is_begun_at_all(&self) -> bool {
        self.steps().iter().any(|step| self.is_begun(step))
    }

    /// Whether the step at this place is done.
    pub fn is_done(&self, index: usize) -> bool {
        let Some(step) = self.steps().get(index) else { return false };
        match step.operation {
            Operation::Remove => self.entry(&step.release).is_some() && self.application(&step.release).is_none(),
            Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {
                self.entry(&step.release).is_some_and(|entry| entry.ready)
            }
        }
    }

    /// How many steps are done.
    pub fn done(&self) -> usize {
        self.in_flight.or(self.next).unwrap_or(self.steps().len())
    }

    fn is_begun(&self, step: &Step) -> bool {
        if self.entry(&step.release).is_some() {
            return true;
        }
        match step.operation {
            // The patch only prepares, and `written` precedes the delete.
            Operation::Remove => false,
            Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {
                self.application(&step.release).and_then(|application| application.annotations.rollout.as_deref())
                    == Some(self.name())
            }
        }
    }

    fn is_moving(&self, index: usize) -> bool {
        let step = &self.steps()[index];
        let application = self.application(&step.release);
        match step.operation {
            Operation::Remove => application.is_some_and(Application::is_deleting),
            Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => application.is_some(),
        }
    }
}

/// The `written` annotation; one that cannot be read is as if absent (only the operator may write it).
pub fn written(rollout: &RuntimeRollout) -> Written {
    let text = rollout.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::WRITTEN));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
