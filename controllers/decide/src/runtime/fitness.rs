//! Whether a plan can be rolled out now.

use std::sync::Arc;

use aicr_crds::{
    Digest,
    plan::{Plan, StoredPlan},
    reason::Reason,
    runtime::DeploymentValidation,
};

use crate::seen::World;

/// The plan, or why it cannot be rolled out; `validation` is the rollout's own, or the runtime's for one to come.
pub fn fitness(
    world: &World,
    digest: Digest,
    validation: DeploymentValidation,
) -> Result<&Arc<StoredPlan>, (Reason, String)> {
    let name = || Plan::config_map_name(digest);
    if let Some((name, why)) = world.unreadable.iter().find(|(unreadable, _)| *unreadable == name()) {
        return Err((Reason::PlanUnreadable, format!("plan {name}: {why}")));
    }
    let Some((_, stored)) = world.plans.get(&digest) else {
        return Err((
            Reason::NotFound,
            format!("[NOT_FOUND] plan {} is missing; pin a plan that exists, or return to Automatic", name()),
        ));
    };
    let owner = &stored.context.runtime_uid;
    if owner != world.uid() {
        let message = format!(
            "plan {} records runtime {owner}, this runtime is {}; pin another plan, or return to Automatic",
            name(),
            world.uid()
        );
        return Err((Reason::PlanOfAnotherRuntime, message));
    }
    if validation == DeploymentValidation::Disabled {
        return Ok(stored);
    }
    if stored.recipe.is_none() {
        let message = format!(
            "plan {} was rebuilt from the Applications and has no recipe, and deployment validation is Required; \
             change the inputs, pin another plan, or set spec.validation.deployment: Disabled",
            name()
        );
        return Err((Reason::PlanWithoutRecipe, message));
    }
    if !world.settings.validation_installed {
        let message = "deployment validation is Required and not installed; set spec.validation.deployment: Disabled";
        return Err((Reason::ValidationUnavailable, message.to_owned()));
    }
    Ok(stored)
}
