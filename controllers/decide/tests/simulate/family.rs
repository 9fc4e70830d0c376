//! Families: a few plans that can follow each other, and their Applications, made once for many histories.

use std::sync::Arc;

use aicr_crds::{
    Digest,
    application::{Application, Desired, Engine},
    plan::{Archive, ChartContent, Plan, PlanContext, ReleaseContent, StoredPlan},
    rollout::Verdict,
    runtime::{Criteria, DeploymentValidation},
};
use aicr_decide::seen::{Assessment, AssessmentRow};
use jiff::Timestamp;

use crate::chance::Chance;

/// UID of the first runtime.
pub(crate) const UID: &str = "uid-runtime";
/// UID of the one that follows it.
pub(crate) const REBORN: &str = "uid-reborn";

const NAMES: [&str; 7] =
    ["nfd", "cert-manager", "gpu-operator", "gpu-operator-readiness", "network-operator", "nvsentinel", "kueue"];

/// Plans that can follow each other, with everything that is made of them.
pub(crate) struct Family {
    /// The plans.
    pub(crate) plans: Vec<Arc<StoredPlan>>,
    /// Names of all releases.
    pub(crate) releases: Vec<&'static str>,
    /// `spec.rollout.stabilizationWindow`.
    pub(crate) window: &'static str,
    /// Whether validation is required.
    pub(crate) validation: DeploymentValidation,
    /// What AICR assesses of every transition.
    pub(crate) assessment: Arc<Assessment>,
    /// Each release of each plan as an Application.
    applications: Vec<(Digest, String, Application)>,
}

#[derive(Clone, Copy)]
struct Release {
    name: &'static str,
    version: u8,
    values: u8,
    crds: bool,
    namespace: u8,
}

impl Family {
    /// The family of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let count = 3 + chance.below(4);
        let mut first: Vec<Release> = NAMES[..count].iter().map(|name| Release::of(name, &mut chance)).collect();
        if chance.one_in(2) {
            first.retain(|release| release.name != "gpu-operator-readiness");
        }
        let mut all = vec![first];
        for _ in 0..3 {
            let from = all[chance.below(all.len())].clone();
            all.push(varied(from, &mut chance));
        }
        let plans: Vec<Arc<StoredPlan>> =
            all.iter().enumerate().map(|(place, releases)| Arc::new(stored(releases, place))).collect();
        let applications = plans.iter().flat_map(|stored| applications(stored)).collect();
        let mut releases: Vec<&'static str> = all.iter().flatten().map(|release| release.name).collect();
        releases.sort_unstable();
        releases.dedup();
        let verdicts: Vec<Verdict> = (0..NAMES.len()).map(|_| verdict(&mut chance)).collect();
        let assessment = Arc::new(assessment(&verdicts));
        let validation = if chance.one_in(6) { DeploymentValidation::Required } else { DeploymentValidation::Disabled };
        Self { plans, releases, window: chance.pick(&["0s", "30s", "10m"]), validation, assessment, applications }
    }

    /// The Application that this writes.
    pub(crate) fn application(&self, desired: &Desired) -> Application {
        let made = self.made(desired.ownership.plan_digest, &desired.name);
        let same = made.filter(|made| made.fingerprint == desired.fingerprint());
        // A plan that was rebuilt of several is none of the family's.
        same.cloned().unwrap_or_else(|| serde_json::from_value(desired.body(Some("uid"))).unwrap())
    }

    /// A release of a plan as an Application.
    pub(crate) fn made(&self, plan: Digest, release: &str) -> Option<&Application> {
        let found = self.applications.iter().find(|(digest, name, _)| *digest == plan && name == release);
        found.map(|(_, _, application)| application)
    }

    /// Fingerprint of a release in a plan.
    pub(crate) fn print(&self, plan: Digest, release: &str) -> Option<Digest> {
        self.made(plan, release).map(|application| application.fingerprint)
    }
}

impl Release {
    fn of(name: &'static str, chance: &mut Chance) -> Self {
        Self { name, version: 1, values: 1, crds: chance.one_in(4), namespace: 1 }
    }
}

/// What AICR assesses of every transition: one verdict for each release that moves.
fn assessment(verdicts: &[Verdict]) -> Assessment {
    let steps = |verdict: Verdict| match verdict {
        Verdict::Manual => vec!["check".to_owned(), "apply".to_owned(), "verify".to_owned()],
        Verdict::Safe | Verdict::Blocked | Verdict::Unknown | Verdict::Unversioned => vec!["apply".to_owned()],
    };
    let row = |verdict: Verdict| AssessmentRow {
        verdict: Some(verdict),
        explanation: "as it is".to_owned(),
        steps: steps(verdict),
    };
    let rows = NAMES.iter().zip(verdicts).map(|(name, verdict)| ((*name).to_owned(), row(*verdict)));
    Assessment { config_map: "aicr-assessment".to_owned(), digest: Digest::of(b"report"), rows: rows.collect() }
}

fn verdict(chance: &mut Chance) -> Verdict {
    let all = [(8, Verdict::Safe), (4, Verdict::Manual), (1, Verdict::Unknown), (1, Verdict::Unversioned)];
    if chance.one_in(60) { Verdict::Blocked } else { chance.weighted(&all) }
}

fn varied(mut releases: Vec<Release>, chance: &mut Chance) -> Vec<Release> {
    for _ in 0..=chance.below(3) {
        let at = chance.below(releases.len());
        match chance.below(12) {
            0..=5 => releases[at].version += 1,
            6..=8 => releases[at].values += 1,
            9 if releases.len() > 2 => {
                releases.remove(at);
            }
            10 => releases.extend(missing(&releases, chance)),
            _ if chance.one_in(6) => releases[at].namespace += 1,
            _ => releases[at].crds = !releases[at].crds,
        }
    }
    releases
}

fn missing(releases: &[Release], chance: &mut Chance) -> Option<Release> {
    let absent: Vec<&'static str> =
        NAMES.iter().copied().filter(|name| releases.iter().all(|release| release.name != *name)).collect();
    (!absent.is_empty()).then(|| Release::of(chance.pick(&absent), chance))
}

fn stored(releases: &[Release], place: usize) -> StoredPlan {
    let (mut contents, mut archives): (Vec<ReleaseContent>, Vec<Archive>) = (vec![], vec![]);
    for release in releases {
        let Release { name, version, values, crds, namespace } = *release;
        let digest = Digest::of(format!("{name} {version} {crds}").as_bytes());
        let component = name.strip_suffix("-readiness").unwrap_or(name);
        contents.push(ReleaseContent {
            id: name.to_owned(),
            component: component.to_owned(),
            namespace: format!("{component}-{namespace}"),
            chart: ChartContent { repository: format!("charts/{name}"), content: digest },
            values: format!("v: {values}\n"),
            depends_on: contents.last().map(|before| vec![before.id.clone()]).unwrap_or_default(),
            readiness_gate: name.ends_with("-readiness"),
        });
        let names = if crds { vec![format!("things.{name}.test")] } else { vec![] };
        archives.push(Archive { id: name.to_owned(), version: format!("{version}.0.0"), digest, crds: names });
    }
    let context = PlanContext {
        runtime_uid: UID.to_owned(),
        aicr_version: None,
        aicr_image: None,
        snapshot: None,
        inputs: None,
        criteria: Criteria::default(),
        created: Timestamp::UNIX_EPOCH,
    };
    StoredPlan { plan: Plan::new(contents, archives).unwrap(), recipe: Some(format!("recipe {place}")), context }
}

fn applications(stored: &StoredPlan) -> Vec<(Digest, String, Application)> {
    let made = |release| {
        let desired = Desired::new(&engine(), release, stored.plan.digest(), UID, "").unwrap();
        let application = serde_json::from_value(desired.body(Some("uid"))).unwrap();
        (stored.plan.digest(), desired.name, application)
    };
    stored.plan.releases().map(made).collect()
}

/// Where everything lies.
pub(crate) fn engine() -> Engine {
    Engine { namespace: "argocd".into(), project: "aicr".into(), repository: "registry.test/aicr".into() }
}
