//! A plan rebuilt from the Applications alone: for a lost ConfigMap, and for adoption.

use aicr_crds::{
    Digest,
    application::{Application, Ownership},
    plan::{Plan, PlanContext, StoredPlan},
    runtime::Criteria,
};
use jiff::Timestamp;

use super::{
    place::{Place, Places, owned},
    verdict::{Verdict, Why, Write},
};
use crate::seen::World;

/// A rebuilt plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rebuilt {
    /// The plan.
    pub(crate) plan: Plan,
    /// The plans that wrote the Applications; one, or several after an orphaning mid-rollout.
    pub(crate) written_by: Vec<Digest>,
}

/// Rebuilds; the message names object and field of what stands against it.
pub(crate) fn rebuild(world: &World, applications: &[&Application]) -> Result<Rebuilt, String> {
    let prefix = &world.settings.engine.repository;
    let mut parts = Vec::new();
    let mut written_by = Vec::new();
    for application in applications {
        let ownership = Ownership::read(application).map_err(|error| error.to_string())?;
        if ownership.fingerprint != application.fingerprint || application.foreign_source {
            return Err(format!("Application {}: source, values or destination were edited", application.name()));
        }
        let rebuilt = ownership.rebuild(application, prefix).ok_or_else(|| {
            format!("Application {}: spec.source.repoURL is not below oci://{prefix} at a digest", application.name())
        })?;
        written_by.push(ownership.plan_digest);
        parts.push((ownership.order, rebuilt));
    }
    parts.sort_by(|(one, (first, _)), (other, (second, _))| (one, &first.id).cmp(&(other, &second.id)));
    let (contents, archives) = parts.into_iter().map(|(_, rebuilt)| rebuilt).unzip();
    written_by.sort();
    written_by.dedup();
    let known = world.plans.values().map(|(_, stored)| &stored.plan);
    let plan = Plan::new_among(contents, archives, known).map_err(|error| error.to_string())?;
    match written_by.as_slice() {
        [one] if *one != plan.digest() => {
            Err(format!("the Applications rebuild to {} instead of plan {one}, which wrote them", plan.digest()))
        }
        _ => Ok(Rebuilt { plan, written_by }),
    }
}

/// The plan as it is stored for this runtime, without a recipe.
pub(crate) fn stored(world: &World, plan: Plan, now: Timestamp) -> StoredPlan {
    let context = PlanContext {
        runtime_uid: world.uid().to_owned(),
        aicr_version: None,
        aicr_image: None,
        snapshot: None,
        inputs: None,
        criteria: Criteria::default(),
        created: now,
    };
    StoredPlan { plan, recipe: None, context }
}

/// The active plan's digest where its ConfigMap is gone.
pub(crate) fn lost(world: &World) -> Option<Digest> {
    // Without an engine no Application is seen, and nothing could be rebuilt.
    world.active().filter(|active| !world.engine.is_absent() && !world.plans.contains_key(active))
}

/// The lost active plan, rebuilt to the same digest; else why that is not possible.
pub(crate) fn recovered(world: &World, active: Digest) -> Result<Plan, String> {
    let name = Plan::config_map_name(active);
    let cause = |why: String| format!("[NOT_FOUND] plan {name} is missing and cannot be rebuilt: {why}");
    let all: Vec<&Application> = owned(world).collect();
    let places = Places::of(world);
    let astray = all.iter().find(|application| match places.place(application) {
        Place::At { plan, .. } => plan != active,
        Place::Contradiction(_) | Place::Nowhere => true,
    });
    if let Some(application) = astray {
        return Err(cause(format!("Application {} is at another plan", application.name())));
    }
    // A `plan-digest` that has not followed yet still names the plan before: the digest decides.
    let rebuilt = rebuild(world, &all).map_err(cause)?;
    if rebuilt.plan.digest() == active {
        Ok(rebuilt.plan)
    } else {
        Err(format!(
            "[NOT_FOUND] plan {name} is missing, and the Applications rebuild to {} instead of {active}",
            rebuilt.plan.digest()
        ))
    }
}

/// Writes the lost active plan back.
pub(super) fn next(world: &World, now: Timestamp) -> Option<Verdict> {
    let plan = recovered(world, lost(world)?).ok()?;
    Some(Verdict::Do(Write::RebuildPlan(Box::new(stored(world, plan, now))), Why::Upkeep))
}
