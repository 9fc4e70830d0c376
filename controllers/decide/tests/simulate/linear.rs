//! The time of one decision over the number of releases: figures to read, nothing that passes or fails.

use std::{collections::BTreeMap, hint::black_box, sync::Arc, time::Instant};

use aicr_crds::{
    Digest, RuntimeRollout,
    application::{Application, Desired},
    keys::{annotation, label},
    plan::{Archive, ChartContent, Plan, ReleaseContent, StoredPlan},
    reason::Outcome,
    rollout::{Need, Step, Written, WrittenEntry},
};
use aicr_decide::{
    rollout,
    runtime::{self, Verdict, Write},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    cluster::Cluster,
    family::{Family, UID, engine},
    history::beginning,
};

const SIZES: [usize; 4] = [18, 100, 256, 1000];

/// What is measured, in this order.
const COLUMNS: [&str; 5] =
    ["first rollout made", "next(), half done", "runtime, half done", "runtime, at rest", "upgrade made"];

/// Prints the table.
pub(crate) fn run() -> bool {
    let titles: Vec<String> = COLUMNS.iter().map(|title| format!("{title:>22}")).collect();
    println!("{:>9} {}", "releases", titles.join(" "));
    let mut first: Option<[f64; 5]> = None;
    for size in SIZES {
        let figures = measured(size);
        let base = *first.get_or_insert(figures.map(|figure| figure / 18.0));
        let shown = figures.iter().zip(base).map(|(figure, base)| {
            let each = figure / f64::from(u32::try_from(size).unwrap_or(1)) / base;
            format!("{figure:>12.1} us {each:>5.2} x")
        });
        println!("{size:>9} {}", shown.collect::<Vec<_>>().join(" "));
    }
    println!("(x: time for each release over that at 18)");
    true
}

fn measured(size: usize) -> [f64; 5] {
    let mut cluster = beginning(Arc::new(Family::new(1)));
    let target = wants(&mut cluster, size, 1);
    let later = cluster.now + SignedDuration::from_hours(1);
    let (mut rollout, creating) = created(&cluster, later);
    rollout.metadata.uid = Some("uid-rollout".to_owned());
    rollout.metadata.creation_timestamp = Some(Time(cluster.now));
    rollout.spec.steps.iter_mut().for_each(|step| step.approval.need = Need::NotRequired);
    let half = done(&mut cluster, &rollout, target, size / 2);
    let world = &cluster.truth.world;
    let deciding = micros(|| drop(black_box(rollout::next(&half, &world.around(&half), later))));
    let looking = micros(|| drop(black_box(runtime::next(world, later))));
    let mut whole = done(&mut cluster, &rollout, target, size);
    let ended = (label::OUTCOME.to_owned(), Outcome::Succeeded.to_string());
    whole.metadata.labels.get_or_insert_default().extend([ended]);
    cluster.truth.world.rollouts = vec![Arc::new(whole)];
    let resting = micros(|| drop(black_box(runtime::next(&cluster.truth.world, later))));
    wants(&mut cluster, size, 2);
    let (_, upgrading) = created(&cluster, later);
    [creating, deciding, looking, resting, upgrading]
}

/// A plan of this many releases becomes the candidate.
fn wants(cluster: &mut Cluster, size: usize, values: usize) -> Digest {
    let stored = plan(size, values);
    let digest = stored.plan.digest();
    let world = &mut cluster.truth.world;
    world.plans.insert(digest, (cluster.now, Arc::new(stored)));
    world.resolution.candidate = Some(digest);
    digest
}

/// The rollout that is made now, and the time that this takes.
fn created(cluster: &Cluster, now: Timestamp) -> (RuntimeRollout, f64) {
    let world = &cluster.truth.world;
    match runtime::next(world, now) {
        Verdict::Do(Write::CreateRollout(created), _) => {
            (*created, micros(|| drop(black_box(runtime::next(world, now)))))
        }
        other @ (Verdict::Do(..) | Verdict::Wait(..)) => panic!("no rollout is made: {other:?}"),
    }
}

/// The least of several runs: what the decision takes when nothing else is in its way.
#[allow(clippy::disallowed_methods, reason = "the figures are times; nothing depends on them")]
fn micros(mut run: impl FnMut()) -> f64 {
    let each = |_| {
        let since = Instant::now();
        run();
        since.elapsed().as_secs_f64() * 1e6
    };
    (0..30).map(each).fold(f64::INFINITY, f64::min)
}

/// The rollout with its first steps done, as the cluster then is.
fn done(cluster: &mut Cluster, rollout: &RuntimeRollout, target: Digest, steps: usize) -> RuntimeRollout {
    let mut rollout = rollout.clone();
    let world = &mut cluster.truth.world;
    let stored = Arc::clone(&world.plans[&target].1);
    let name = rollout.metadata.name.clone().unwrap_or_default();
    let made = |step: &Step| {
        let release = stored.plan.release(&step.release).unwrap();
        let desired = Desired::new(&engine(), release, target, UID, &name).unwrap();
        let application: Application = serde_json::from_value(desired.body(Some(&step.release))).unwrap();
        Arc::new(application)
    };
    let first = &rollout.spec.steps[..steps];
    world.applications = Arc::new(first.iter().map(made).collect());
    let entry = |step: &Step| (step.release.clone(), WrittenEntry { uid: step.release.clone(), ready: true });
    let written: Written = first.iter().map(entry).collect::<BTreeMap<_, _>>();
    let text = serde_json::to_string(&written).unwrap();
    rollout.metadata.annotations.get_or_insert_default().insert(annotation::WRITTEN.to_owned(), text);
    world.rollouts = vec![Arc::new(rollout.clone())];
    rollout
}

fn plan(size: usize, values: usize) -> StoredPlan {
    let id = |place: usize| format!("release-{place:04}");
    let content = |place: usize| ReleaseContent {
        id: id(place),
        component: id(place),
        namespace: "gpu".to_owned(),
        chart: ChartContent { repository: format!("charts/{}", id(place)), content: Digest::of(b"chart") },
        values: format!("v: {values}\n{}", "driver:\n  enabled: true\n".repeat(40)),
        depends_on: place.checked_sub(1).map(id).into_iter().collect(),
        readiness_gate: false,
    };
    let archive = |place: usize| Archive {
        id: id(place),
        version: "1.0.0".to_owned(),
        digest: Digest::of(id(place).as_bytes()),
        crds: vec![],
    };
    let plan = Plan::new((0..size).map(content).collect(), (0..size).map(archive).collect()).unwrap();
    let family = Family::new(1);
    StoredPlan { plan, recipe: None, context: family.plans[0].context.clone() }
}
