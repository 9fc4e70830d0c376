//! Objects as somebody knows them: the truth, or an operator's view of it; both are folds of the same changes.

use std::{borrow::Cow, sync::Arc};

use aicr_crds::{
    ClusterRuntime, Digest, RuntimeRollout, RuntimeRolloutStatus,
    application::Application,
    keys::{annotation, label},
    plan::StoredPlan,
    reason::Outcome,
    rollout::{Acknowledgement, Approval, Revocation, Written},
};
use aicr_decide::{
    facts::Report,
    resolve::JobSeen,
    rollout::{Position, written},
    seen::{Assessment, EngineState, Resolution, World, outcome},
};
use jiff::Timestamp;

use crate::{event::Stream, ghost::Ghost};

/// Number of a rollout: its place among all that were ever created.
pub(crate) type Id = usize;

/// Objects as somebody knows them.
#[derive(Clone)]
pub(crate) struct Store {
    /// Everything of the present runtime, as decisions take it.
    pub(crate) world: World,
    /// Whether there is a runtime.
    pub(crate) has_runtime: bool,
    /// Rollouts of runtimes that are gone.
    pub(crate) others: Vec<Arc<RuntimeRollout>>,
    /// What is known of each Application beside what it says, in the order of `world.applications`.
    pub(crate) ghosts: Vec<Arc<Ghost>>,
    places: Vec<Place>,
    /// Whether each rollout has ended, by its number.
    ended: Vec<bool>,
    /// What each has written of itself, by the same.
    written: Vec<Arc<Written>>,
}

#[derive(Clone, Copy)]
enum Place {
    Own(usize),
    Other(usize),
    Gone,
}

/// One change of one object, as a watch delivers it.
#[derive(Clone)]
pub(crate) enum Change {
    Runtime(Arc<ClusterRuntime>),
    RuntimeGone,
    Rollout(Arc<RuntimeRollout>),
    RolloutGone(Id),
    OfRollout(Id, u64, OfRollout),
    Application(Arc<Application>, Arc<Ghost>),
    ApplicationGone(String),
    Plan(Digest, Timestamp, Arc<StoredPlan>),
    PlanUnreadable(Digest),
    PlanGone(Digest),
    Engine(EngineState),
    Resolution(Box<Resolution>),
    Job(Box<JobSeen>),
    JobGone(String),
    Assessment(String, Arc<Assessment>),
    /// What a validation Job reports.
    Report(String, Box<Report>),
    Trouble(Option<String>),
    Lacks(Option<String>),
}

/// What changes of a rollout.
#[derive(Clone)]
pub(crate) enum OfRollout {
    Status(Option<Box<RuntimeRolloutStatus>>),
    Annotation(&'static str, String),
    /// What it has written, and the annotation that says so.
    Wrote(Arc<Written>, String),
    Ended(Outcome, Timestamp),
    Approved(Box<Approval>),
    Revoked(Box<Revocation>),
    Acknowledged(Box<Acknowledgement>),
    Schema(&'static str),
}

impl Change {
    /// The watch that delivers it.
    pub(crate) fn stream(&self) -> Stream {
        match self {
            Self::Runtime(_) | Self::RuntimeGone => Stream::Runtime,
            Self::Rollout(_) | Self::RolloutGone(_) | Self::OfRollout(..) => Stream::Rollouts,
            Self::Application(..) | Self::ApplicationGone(_) => Stream::Applications,
            Self::Plan(..)
            | Self::PlanUnreadable(_)
            | Self::PlanGone(_)
            | Self::Engine(_)
            | Self::Resolution(_)
            | Self::Job(_)
            | Self::JobGone(_)
            | Self::Assessment(..)
            | Self::Report(..)
            | Self::Trouble(_)
            | Self::Lacks(_) => Stream::Documents,
        }
    }
}

impl Store {
    /// Only a runtime, and nothing else.
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            has_runtime: true,
            others: Vec::new(),
            ghosts: Vec::new(),
            places: Vec::new(),
            ended: Vec::new(),
            written: Vec::new(),
        }
    }

    /// The rollout of this number.
    pub(crate) fn rollout(&self, id: Id) -> Option<&RuntimeRollout> {
        match *self.places.get(id)? {
            Place::Own(place) => self.world.rollouts.get(place).map(AsRef::as_ref),
            Place::Other(place) => self.others.get(place).map(AsRef::as_ref),
            Place::Gone => None,
        }
    }

    fn rollout_mut(&mut self, id: Id) -> Option<&mut RuntimeRollout> {
        match *self.places.get(id)? {
            Place::Own(place) => self.world.rollouts.get_mut(place).map(Arc::make_mut),
            Place::Other(place) => self.others.get_mut(place).map(Arc::make_mut),
            Place::Gone => None,
        }
    }

    /// Numbers of all rollouts that are there.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let there = |place: &Place| match place {
            Place::Own(_) | Place::Other(_) => true,
            Place::Gone => false,
        };
        self.places.iter().enumerate().filter(move |(_, place)| there(place)).map(|(id, _)| id)
    }

    /// Whether it is the present runtime's.
    pub(crate) fn is_own(&self, id: Id) -> bool {
        self.has_runtime && matches!(self.places.get(id), Some(Place::Own(_)))
    }

    /// Whether a rollout has not ended.
    pub(crate) fn is_unfinished(&self, id: Id) -> bool {
        !matches!(self.places.get(id), None | Some(Place::Gone)) && !self.ended[id]
    }

    /// How far a rollout has come.
    pub(crate) fn position<'a>(&'a self, id: Id, rollout: &'a RuntimeRollout) -> Position<'a> {
        Position::knowing(rollout, Cow::Borrowed(self.written[id].as_ref()), &self.world.applications)
    }

    /// The rollout of this name.
    pub(crate) fn id_of(&self, name: &str) -> Option<Id> {
        self.ids().find(|id| self.rollout(*id).is_some_and(|rollout| rollout.metadata.name.as_deref() == Some(name)))
    }

    /// The Application of this name, with its ghost.
    pub(crate) fn application(&self, name: &str) -> Option<(&Application, &Ghost)> {
        let place = self.world.applications.iter().position(|application| application.name() == name)?;
        Some((self.world.applications[place].as_ref(), self.ghosts[place].as_ref()))
    }

    /// Applies one change.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Runtime(runtime) => self.runtime(runtime),
            Change::RuntimeGone => self.has_runtime = false,
            Change::Rollout(rollout) => self.create(rollout),
            Change::RolloutGone(id) => self.remove(*id),
            Change::OfRollout(id, version, change) => {
                if let Some(rollout) = self.rollout_mut(*id) {
                    rollout.metadata.resource_version = Some(version.to_string());
                    of_rollout(rollout, change);
                    self.ended[*id] |= matches!(change, OfRollout::Ended(..));
                    if let OfRollout::Wrote(record, _) = change {
                        self.written[*id] = Arc::clone(record);
                    }
                }
            }
            Change::Application(application, ghost) => self.write(application, ghost),
            Change::ApplicationGone(name) => {
                if let Some(place) = self.world.applications.iter().position(|one| one.name() == name) {
                    Arc::make_mut(&mut self.world.applications).remove(place);
                    self.ghosts.remove(place);
                }
            }
            Change::Plan(..)
            | Change::PlanUnreadable(_)
            | Change::PlanGone(_)
            | Change::Engine(_)
            | Change::Resolution(_)
            | Change::Job(_)
            | Change::JobGone(_)
            | Change::Assessment(..)
            | Change::Report(..)
            | Change::Trouble(_)
            | Change::Lacks(_) => self.document(change),
        }
    }

    fn document(&mut self, change: &Change) {
        let world = &mut self.world;
        match change {
            Change::Plan(digest, created, stored) => {
                world.unreadable.retain(|(name, _)| *name != aicr_crds::plan::Plan::config_map_name(*digest));
                world.plans.insert(*digest, (*created, Arc::clone(stored)));
            }
            Change::PlanUnreadable(digest) => {
                world.plans.remove(digest);
                let name = aicr_crds::plan::Plan::config_map_name(*digest);
                world.unreadable.push((name, "cannot be read".to_owned()));
            }
            Change::PlanGone(digest) => {
                world.plans.remove(digest);
                world.unreadable.retain(|(name, _)| *name != aicr_crds::plan::Plan::config_map_name(*digest));
            }
            Change::Engine(engine) => world.engine = *engine,
            Change::Resolution(resolution) => world.resolution = (**resolution).clone(),
            Change::Job(job) => {
                world.jobs.retain(|other| other.name != job.name);
                world.jobs.push((**job).clone());
            }
            Change::JobGone(name) => world.jobs.retain(|job| job.name != *name),
            Change::Assessment(key, assessment) => {
                world.assessments.insert(key.clone(), Arc::clone(assessment));
            }
            Change::Report(job, report) => {
                Arc::make_mut(&mut world.facts).validation.reports.insert(job.clone(), (**report).clone());
            }
            Change::Trouble(trouble) => Arc::make_mut(&mut world.facts).trouble.clone_from(trouble),
            Change::Lacks(lacks) => Arc::make_mut(&mut world.facts).validation.lacks.clone_from(lacks),
            Change::Runtime(_)
            | Change::RuntimeGone
            | Change::Rollout(_)
            | Change::RolloutGone(_)
            | Change::OfRollout(..)
            | Change::Application(..)
            | Change::ApplicationGone(_) => {}
        }
    }

    fn runtime(&mut self, runtime: &Arc<ClusterRuntime>) {
        if self.world.runtime.metadata.uid != runtime.metadata.uid {
            let offset = self.others.len();
            self.others.append(&mut self.world.rollouts);
            for place in &mut self.places {
                if let Place::Own(own) = *place {
                    *place = Place::Other(offset + own);
                }
            }
        }
        self.has_runtime = true;
        self.world.runtime = Arc::clone(runtime);
    }

    fn create(&mut self, rollout: &Arc<RuntimeRollout>) {
        self.world.rollout_names.extend(rollout.metadata.name.clone());
        self.ended.push(outcome(rollout).is_some());
        self.written.push(Arc::new(written(rollout)));
        if rollout.spec.runtime.uid == self.world.uid() {
            self.places.push(Place::Own(self.world.rollouts.len()));
            self.world.rollouts.push(Arc::clone(rollout));
        } else {
            self.places.push(Place::Other(self.others.len()));
            self.others.push(Arc::clone(rollout));
        }
    }

    fn remove(&mut self, id: Id) {
        let Some(name) = self.rollout(id).and_then(|rollout| rollout.metadata.name.clone()) else { return };
        self.world.rollout_names.remove(&name);
        let gone = self.places[id];
        self.places[id] = Place::Gone;
        match gone {
            Place::Own(at) => {
                self.world.rollouts.remove(at);
            }
            Place::Other(at) => {
                self.others.remove(at);
            }
            Place::Gone => {}
        }
        for place in &mut self.places {
            match (place, gone) {
                (Place::Own(other), Place::Own(at)) | (Place::Other(other), Place::Other(at)) if *other > at => {
                    *other -= 1;
                }
                (Place::Own(_) | Place::Other(_) | Place::Gone, _) => {}
            }
        }
    }

    fn write(&mut self, application: &Arc<Application>, ghost: &Arc<Ghost>) {
        let place = self.world.applications.iter().position(|one| one.metadata.name == application.metadata.name);
        let all = Arc::make_mut(&mut self.world.applications);
        if let Some(place) = place {
            all[place] = Arc::clone(application);
            self.ghosts[place] = Arc::clone(ghost);
        } else {
            all.push(Arc::clone(application));
            self.ghosts.push(Arc::clone(ghost));
        }
    }
}

fn annotated(rollout: &mut RuntimeRollout, key: &str, value: &str) {
    rollout.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
}

fn of_rollout(rollout: &mut RuntimeRollout, change: &OfRollout) {
    match change {
        OfRollout::Status(status) => rollout.status = status.as_deref().cloned(),
        OfRollout::Annotation(key, value) => annotated(rollout, key, value),
        OfRollout::Wrote(_, text) => annotated(rollout, annotation::WRITTEN, text),
        OfRollout::Ended(outcome, at) => {
            let metadata = &mut rollout.metadata;
            metadata.labels.get_or_insert_default().insert(label::OUTCOME.to_owned(), outcome.to_string());
            metadata.annotations.get_or_insert_default().insert(annotation::FINISHED_AT.to_owned(), at.to_string());
        }
        OfRollout::Approved(approval) => rollout.spec.approval = Some((**approval).clone()),
        OfRollout::Revoked(revocation) => rollout.spec.revocation = Some((**revocation).clone()),
        OfRollout::Acknowledged(entry) => rollout.spec.acknowledgements.push((**entry).clone()),
        OfRollout::Schema(version) => (*version).clone_into(&mut rollout.spec.schema_version),
    }
}
