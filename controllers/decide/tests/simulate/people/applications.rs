//! What people and other controllers do to Applications.

use aicr_crds::{
    Digest,
    application::Annotations,
    keys::{annotation, finalizer, label},
};
use aicr_decide::seen::{age_key, outcome};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{argo, cluster::Cluster, ghost::Ghost, hands::annotate, store::Change};

/// What Argo CD holds an Application with whose chart has delete hooks (A132).
const HOOK: &str = "pre-delete-finalizer.argocd.argoproj.io";

impl Cluster {
    pub(super) fn edit(&mut self, release: u8) {
        self.change_application(self.name(release), |application, _| {
            "edited: true\n".clone_into(&mut application.source.values);
            application.fingerprint = Digest::of(b"edited");
            application.source_id = Some(Digest::of(b"edited source"));
        });
    }

    /// Back to what the plan says that its annotation names.
    pub(super) fn undo(&mut self, release: u8) {
        let name = self.name(release);
        let Some((there, _)) = self.truth.application(name) else { return };
        let plan = there.annotations.plan_digest;
        let Some(made) = plan.and_then(|plan| self.family.made(plan, name)).cloned() else { return };
        self.change_application(name, |application, _| {
            application.source = made.source;
            application.fingerprint = made.fingerprint;
            application.source_id = made.source_id;
            let labels = application.metadata.labels.get_or_insert_default();
            labels.insert(label::MANAGED_BY.to_owned(), label::MANAGED_BY_VALUE.to_owned());
        });
    }

    pub(super) fn edit_plan(&mut self, release: u8) {
        let plan = self.plan(release).to_string();
        self.change_application(self.name(release), |application, _| {
            annotate(application, annotation::PLAN_DIGEST, Some(&plan));
        });
    }

    pub(super) fn unlabel(&mut self, release: u8) {
        self.change_application(self.name(release), |application, _| application.metadata.labels = None);
    }

    pub(super) fn delete_held(&mut self, release: u8) {
        let now = self.now;
        self.change_application(self.name(release), |application, ghost| {
            if application.is_deleting() {
                return;
            }
            ghost.is_left = application.annotations.delete_rollout.is_none() && !application.cascades();
            application.metadata.finalizers.get_or_insert_default().push(HOOK.to_owned());
            application.metadata.deletion_timestamp = Some(Time(now));
        });
    }

    pub(super) fn recreate(&mut self, release: u8) {
        let name = self.name(release);
        let Some((application, ghost)) = self.truth.application(name) else { return };
        let (mut application, ghost) = (application.clone(), Ghost { is_left: false, ..ghost.clone() });
        application.metadata.finalizers = None;
        application.metadata.deletion_timestamp = None;
        self.commit(Change::ApplicationGone(name.to_owned()));
        self.create_application(application, ghost);
    }

    pub(super) fn appear(&mut self, release: u8) {
        let name = self.name(release);
        let made = self.family.plans.iter().find_map(|plan| self.family.made(plan.plan.digest(), name));
        if let Some(made) = made.filter(|_| self.truth.application(name).is_none()) {
            let mut application = made.clone();
            annotate(&mut application, annotation::RUNTIME_UID, Some(self.truth.world.uid()));
            application.status = argo::unseen();
            self.create_application(application, Ghost::default());
        }
    }

    pub(super) fn foreign(&mut self, release: u8) {
        let name = self.name(release);
        if self.truth.application(name).is_some() {
            return;
        }
        let Some(made) = self.family.plans.iter().find_map(|plan| self.family.made(plan.plan.digest(), name)) else {
            return;
        };
        let mut application = made.clone();
        application.metadata.labels = None;
        application.annotations = Annotations::default();
        "default".clone_into(&mut application.project);
        application.status = argo::unseen();
        self.create_application(application, Ghost::default());
    }

    pub(super) fn foreign_gone(&mut self, release: u8) {
        let name = self.name(release);
        if self.truth.application(name).is_some_and(|(application, _)| application.project == "default") {
            self.commit(Change::ApplicationGone(name.to_owned()));
        }
    }

    pub(super) fn local_sync(&mut self, release: u8) {
        self.change_application(self.name(release), |application, ghost| {
            if let Some(state) = &mut application.status.operation {
                state.local_manifests = true;
                ghost.live = None;
            }
        });
    }

    /// Out of a backup that was made while a Remove, which did not happen, had marked it.
    pub(super) fn restore(&mut self, release: u8) {
        let ended = self.truth.world.rollouts.iter().filter(|rollout| outcome(rollout).is_some());
        let newest = ended.max_by_key(|rollout| age_key(rollout)).and_then(|rollout| rollout.metadata.name.clone());
        let Some(newest) = newest else { return };
        self.change_application(self.name(release), |application, _| {
            if !application.is_deleting() {
                annotate(application, annotation::DELETE_ROLLOUT, Some(&newest));
                application.metadata.finalizers = Some(vec![finalizer::ARGO_CASCADE[0].to_owned()]);
            }
        });
    }
}
