//! From a rendered bundle to a plan: read, check, carry, assemble.

use aicr_crds::{
    plan::{Plan, PlanContext, ReleaseContent, StoredPlan},
    runtime::Override,
};
use aicr_decide::resolve::{AicrInstall, MirrorPlan};
use aicr_read::bundle::{self, Bundle};
use jiff::Timestamp;

use crate::{
    carry::{self, Carried},
    checks,
    failure::MirrorFailure,
    overrides,
    registry::Registry,
};

/// What a plan needs to know beside the bundle.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// UID of the runtime it is resolved for.
    pub runtime_uid: &'a str,
    /// The AICR that must have rendered it.
    pub aicr: &'a AicrInstall,
    /// When it is made.
    pub created: Timestamp,
    /// Whether a release may go to a namespace.
    pub namespace_allowed: &'a (dyn Fn(&str) -> bool + Send + Sync),
}

/// Makes the plan of a rendered bundle: reads it from the registry, checks it, and carries its charts below the
/// registry's prefix. What is there is not pushed again, and what is the same in the active plan keeps its archive.
///
/// # Errors
/// See [`MirrorFailure`]. Charts that were carried before the failure stay in the registry.
pub async fn make_plan(
    registry: &Registry,
    mirror: &MirrorPlan,
    active: Option<&Plan>,
    around: &Around<'_>,
) -> Result<StoredPlan, MirrorFailure> {
    let layer = registry.bundle(mirror.bundle).await.map_err(|error| MirrorFailure::of_bundle(&error))?;
    let bundle = bundle::read(&layer)?;
    drop(layer);
    let wanted = checks::bundle(&bundle, around)?;
    let sought = base(registry, mirror, &bundle).await?;
    tracing::debug!(releases = wanted.len(), "charts are mirrored");
    let carried = carry::all(registry, &wanted, active).await?;
    overrides::against_defaults(registry, &bundle, &carried, &sought).await?;
    let plan = assemble(&bundle, &carried)?;
    let recipe = String::from_utf8_lossy(&bundle.recipe_bytes).into_owned();
    let context = PlanContext {
        runtime_uid: around.runtime_uid.to_owned(),
        aicr_version: Some(around.aicr.version.clone()),
        aicr_image: Some(around.aicr.image.clone()),
        snapshot: Some(mirror.snapshot.clone()),
        inputs: Some(mirror.inputs),
        criteria: mirror.criteria.clone(),
        created: around.created,
    };
    Ok(StoredPlan { plan, recipe: Some(recipe), context })
}

/// The overrides whose path the render without them does not have; the chart's defaults may.
async fn base<'a>(
    registry: &Registry,
    mirror: &'a MirrorPlan,
    rendered: &Bundle,
) -> Result<Vec<&'a Override>, MirrorFailure> {
    let Some(digest) = mirror.base.filter(|_| !mirror.overrides.is_empty()) else { return Ok(Vec::new()) };
    let layer = registry.bundle(digest).await.map_err(|error| MirrorFailure::of_bundle(&error))?;
    overrides::against_base(&mirror.overrides, &bundle::read(&layer)?, rendered)
}

fn assemble(bundle: &Bundle, carried: &[Carried]) -> Result<Plan, MirrorFailure> {
    let (releases, archives) = bundle
        .releases
        .iter()
        .zip(carried)
        .map(|(release, carried)| {
            let content = ReleaseContent {
                id: release.id.clone(),
                component: release.component.clone(),
                namespace: release.namespace.clone(),
                chart: carried.chart.clone(),
                values: release.values.clone(),
                depends_on: release.depends_on.clone(),
                readiness_gate: release.readiness_gate,
            };
            (content, carried.archive(&release.id))
        })
        .unzip();
    Ok(Plan::new(releases, archives)?)
}
