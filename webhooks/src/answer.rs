//! A verdict as the AdmissionReview that is sent back.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::{
    review::{Named, Review},
    verdict::{Denial, Verdict, Warning},
};

/// Characters of an object's name that a message shows; Kubernetes has no longer ones.
const NAME_LIMIT: usize = 253;
/// Bytes that an answer without message or patch does not exceed.
const USUAL: usize = 256;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

#[derive(Serialize)]
struct Status {
    code: u16,
    reason: &'static str,
    message: String,
}

/// The body of the answer.
pub(crate) fn body<O: Named>(review: &Review<'_, O>, verdict: &Verdict) -> Result<Vec<u8>, serde_json::Error> {
    let mut response = Response {
        uid: review.uid.as_str(),
        allowed: true,
        status: None,
        warnings: Vec::new(),
        patch_type: None,
        patch: None,
    };
    match verdict {
        Verdict::Allow(warnings) => {
            response.warnings = warnings.iter().map(|warning| Warning::text(*warning)).collect();
        }
        Verdict::Deny(denial) => {
            response.allowed = false;
            response.status = Some(Status {
                code: denial.code.number(),
                reason: denial.code.reason(),
                message: message(review, denial),
            });
        }
        Verdict::Patch(patch) => {
            response.patch_type = Some("JSONPatch");
            response.patch = Some(STANDARD.encode(serde_json::to_vec(patch)?));
        }
    }
    let mut body = Vec::with_capacity(USUAL);
    let answer = Answer { api_version: "admission.k8s.io/v1", kind: "AdmissionReview", response };
    serde_json::to_writer(&mut body, &answer)?;
    Ok(body)
}

/// Object, what is wrong and what to do, rule.
fn message<O: Named>(review: &Review<'_, O>, denial: &Denial) -> String {
    let name: String = review.name().chars().filter(|c| !c.is_control()).take(NAME_LIMIT).collect();
    format!("{} {name}: {} [{}]", review.kind.word(), denial.says, denial.rule.name())
}
