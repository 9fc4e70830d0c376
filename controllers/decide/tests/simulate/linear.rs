//! The time of one decision over the number of releases: figures to read, nothing that passes or fails.

use std::{hint::black_box, sync::Arc, time::Instant};

use aicr_crds::{
    Digest, RuntimeRollout,
    application::Application,
    keys::annotation,
    plan::{Archive, ChartContent, Plan, ReleaseContent, StoredPlan},
    rollout::WrittenEntry,
};
use aicr_decide::{
    rollout,
    runtime::{self, Verdict, Write},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    cluster::Cluster,
    family::{Family, UID, engine},
    history::beginning,
};

const SIZES: [usize; 4] = [18, 100, 256, 1000];

/// Prints the table.
pub(crate) fn run() -> bool {
    println!("{:>9} {:>22} {:>22} {:>22}", "releases", "create the rollout", "next(), half done", "runtime::next()");
    let mut first: Option<[f64; 3]> = None;
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

fn measured(size: usize) -> [f64; 3] {
    let mut cluster = beginning(Arc::new(Family::new(1)));
    let world = &mut cluster.truth.world;
    let stored = plan(size);
    let digest = stored.plan.digest();
    world.plans.insert(digest, (cluster.now, Arc::new(stored)));
    world.resolution.candidate = Some(digest);
    let later = cluster.now + jiff::SignedDuration::from_hours(1);
    let Verdict::Do(Write::CreateRollout(created), _) = runtime::next(world, later) else { return [0.0; 3] };
    let creating = micros(|| drop(black_box(runtime::next(&cluster.truth.world, later))));
    let rollout = half_done(&mut cluster, *created);
    let world = &cluster.truth.world;
    let deciding = micros(|| drop(black_box(rollout::next(&rollout, &world.around(&rollout), later))));
    let looking = micros(|| drop(black_box(runtime::next(world, later))));
    [creating, deciding, looking]
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

/// The rollout with the first half of its steps done.
fn half_done(cluster: &mut Cluster, mut rollout: RuntimeRollout) -> RuntimeRollout {
    rollout.metadata.uid = Some("uid-rollout".to_owned());
    rollout.metadata.creation_timestamp = Some(Time(cluster.now));
    rollout.spec.steps.iter_mut().for_each(|step| step.approval.need = aicr_crds::rollout::Need::NotRequired);
    let world = &mut cluster.truth.world;
    let target = rollout.spec.target_plan_digest.unwrap();
    let stored = Arc::clone(&world.plans[&target].1);
    let half = rollout.spec.steps.len() / 2;
    let mut applications = Vec::new();
    let mut written = rollout::written(&rollout);
    for step in &rollout.spec.steps[..half] {
        let release = stored.plan.release(&step.release).unwrap();
        let name = rollout.metadata.name.as_deref().unwrap_or_default();
        let desired = aicr_crds::application::Desired::new(&engine(), release, target, UID, name).unwrap();
        let application: Application = serde_json::from_value(desired.body(Some(&step.release))).unwrap();
        applications.push(application);
        written.insert(step.release.clone(), WrittenEntry { uid: step.release.clone(), ready: true });
    }
    let text = serde_json::to_string(&written).unwrap();
    rollout.metadata.annotations.get_or_insert_default().insert(annotation::WRITTEN.to_owned(), text);
    world.applications = Arc::new(applications);
    world.rollouts = vec![rollout.clone()];
    rollout
}

fn plan(size: usize) -> StoredPlan {
    let id = |place: usize| format!("release-{place:04}");
    let content = |place: usize| ReleaseContent {
        id: id(place),
        component: id(place),
        namespace: "gpu".to_owned(),
        chart: ChartContent { repository: format!("charts/{}", id(place)), content: Digest::of(b"chart") },
        values: "driver:\n  enabled: true\n".repeat(40),
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
