//! The Job of each stage of resolution, fully specified; and whom a refusal by AICR is blamed on.

use std::collections::BTreeMap;

use aicr_crds::{reason::Reason, runtime::Override};

use super::{
    args,
    next::{Seen, job_name},
    snapshot::Stored,
    verdict::{JobPlan, Output, Stage},
};

/// The snapshot, by AICR's launcher.
pub(super) fn snapshot(seen: &Seen<'_>, input: &str, attempt: u32) -> JobPlan {
    let name = job_name(Stage::Snapshot, input, attempt);
    JobPlan {
        args: args::snapshot(&seen.runtime.spec, seen.install, &name),
        name,
        stage: Stage::Snapshot,
        input: input.to_owned(),
        attempt,
        inputs: BTreeMap::new(),
        output: Output::ConfigMap,
    }
}

/// The recipe of a snapshot.
pub(super) fn recipe(seen: &Seen<'_>, stored: &Stored, input: &str, attempt: u32) -> JobPlan {
    let name = job_name(Stage::Recipe, input, attempt);
    JobPlan {
        args: args::recipe(&seen.runtime.spec, seen.install, &name),
        name,
        stage: Stage::Recipe,
        input: input.to_owned(),
        attempt,
        inputs: [("snapshot.yaml".to_owned(), stored.text.clone())].into(),
        output: Output::ConfigMap,
    }
}

/// The bundle of a recipe; as base, without the overrides: it says which paths exist without them.
pub(super) fn bundle(seen: &Seen<'_>, stage: Stage, recipe: &str, input: &str, attempt: u32) -> JobPlan {
    let spec = &seen.runtime.spec;
    let tag = format!("{stage}-{input}");
    let overrides: &[Override] = match stage {
        Stage::Base => &[],
        Stage::Snapshot | Stage::Recipe | Stage::Render | Stage::Assessment | Stage::Validation => &spec.overrides,
    };
    JobPlan {
        name: job_name(stage, input, attempt),
        stage,
        input: input.to_owned(),
        attempt,
        args: args::bundle(spec, overrides, seen.install, &tag),
        inputs: [("recipe.yaml".to_owned(), recipe.to_owned())].into(),
        output: Output::Registry,
    }
}

/// Words by which AICR speaks of a placement that it refuses.
const PLACEMENT: [&str; 3] = ["toleration", "node selector", "node-selector"];

/// What AICR refuses of a render is the overrides' fault where the same render passed without them, and the
/// placement's where it says so.
pub(super) fn blamed(seen: &Seen<'_>, stage: Stage, reason: Reason, message: String) -> (Reason, String) {
    let renders = match stage {
        Stage::Base | Stage::Render => true,
        Stage::Snapshot | Stage::Recipe | Stage::Assessment | Stage::Validation => false,
    };
    if !renders || reason != Reason::AICRInvalidRequest {
        return (reason, message);
    }
    if stage == Stage::Render && !seen.runtime.spec.overrides.is_empty() {
        return (Reason::InvalidOverride, format!("{message}; correct spec.overrides"));
    }
    let said = message.to_ascii_lowercase();
    if PLACEMENT.iter().any(|word| said.contains(word)) {
        return (Reason::InvalidPlacement, format!("{message}; correct spec.placement"));
    }
    (reason, message)
}

/// An overlay that AICR left out of a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The overlay.
    pub overlay: String,
    /// Why: a constraint with what it expects and what was read, or AICR's own word.
    pub why: String,
}

/// A recipe that is smaller than what was asked for: AICR then exits 0 with fewer components.
pub fn left_out(overlays: &[LeftOut]) -> Option<(Reason, String)> {
    if overlays.is_empty() {
        return None;
    }
    let shown: Vec<String> = overlays.iter().map(|one| format!("{} ({})", one.overlay, one.why)).collect();
    let message = format!(
        "AICR left overlays out of the recipe: {}; correct the criteria or the nodes, then request a snapshot",
        crate::message::listed(&shown, 5)
    );
    Some((Reason::CriteriaConflict, message))
}
