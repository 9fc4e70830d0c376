//! Who changes a runtime's spec beyond its two brakes.

use aicr_crds::keys::annotation::SPEC_CHANGED_BY;
use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::json;

use super::{Stampable, set, unset};
use crate::{
    authors::Edit,
    known::Known,
    review::{Review, Text},
    runtimes::BRAKES,
    verdict::Denial,
};

/// The annotation as it must be after this write.
pub(super) fn stamps(
    review: &Review<'_, Stampable<'_>>,
    object: &Stampable<'_>,
    known: &Known,
    now: Timestamp,
) -> Result<Vec<PatchOperation>, Denial> {
    let before = review.old.as_ref().and_then(Stampable::authors);
    let is_edit = review.old.as_ref().is_none_or(|old| !object.spec.same_besides(&old.spec, &BRAKES));
    if !is_edit {
        return Ok(restored(object, before));
    }
    let uid = review.old.as_ref().and_then(|old| old.metadata.uid.as_ref()).map(Text::as_str).unwrap_or_default();
    let edit = Edit { before, user: review.user.name(), runtime_uid: uid, known, now };
    if edit.is_stamped(object.authors()) {
        return Ok(Vec::new());
    }
    let list = edit.after()?;
    // A list of names and times always has a JSON form.
    Ok(vec![annotate(object, &serde_json::to_string(&list).unwrap_or_default())])
}

/// The old value put back: a `kubectl replace` of a file that lacks it must pass.
fn restored(object: &Stampable<'_>, before: Option<&str>) -> Vec<PatchOperation> {
    match (before, object.authors()) {
        (before, after) if before == after => Vec::new(),
        (Some(before), _) => vec![annotate(object, before)],
        (None, _) => vec![unset(["metadata", "annotations", SPEC_CHANGED_BY])],
    }
}

fn annotate(object: &Stampable<'_>, value: &str) -> PatchOperation {
    if object.metadata.annotations.is_some() {
        set(["metadata", "annotations", SPEC_CHANGED_BY], json!(value))
    } else {
        set(["metadata", "annotations"], json!({ SPEC_CHANGED_BY: value }))
    }
}
