//! The door: an admission review in, a verdict out; `judge` is pure, and only the router knows HTTP.

mod answer;
mod applications;
mod authors;
pub mod conditions;
mod fields;
mod known;
mod person;
mod plans;
mod policy;
mod review;
mod rollouts;
mod router;
mod runtimes;
mod stamp;
mod verdict;

use jiff::Timestamp;
use serde::Deserialize;

use review::{Kind, Named, Review};

pub use known::{Known, KnownRollout, RolloutState};
pub use policy::{Approvers, Policy, Separation, service_account};
pub use review::ReviewError;
pub use router::{BODY_LIMIT, Clock, Decision, Door, Observe, router};
pub use verdict::{Code, Denial, Rule, Verdict, Warning};

/// One webhook, with one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// Mutating: stamps consent and authors.
    Approvals,
    /// RuntimeRollouts.
    Rollouts,
    /// ClusterRuntimes.
    Runtimes,
    /// The operator's writes to Applications.
    Applications,
    /// Plan ConfigMaps.
    Plans,
}

impl Webhook {
    /// Every webhook.
    pub const ALL: [Self; 5] = [Self::Approvals, Self::Rollouts, Self::Runtimes, Self::Applications, Self::Plans];

    /// Its name, as configurations and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Rollouts => "rollouts",
            Self::Runtimes => "runtimes",
            Self::Applications => "applications",
            Self::Plans => "plans",
        }
    }

    /// Where the API server sends its reviews.
    pub fn path(self) -> &'static str {
        match self {
            Self::Approvals => "/mutate/approvals",
            Self::Rollouts => "/validate/rollouts",
            Self::Runtimes => "/validate/runtimes",
            Self::Applications => "/validate/applications",
            Self::Plans => "/validate/plans",
        }
    }
}

/// What a review came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the review was a dry run, which moves no metric.
    pub dry_run: bool,
    /// The AdmissionReview to send back.
    pub answer: Vec<u8>,
}

/// Judges the body of one request; an error is no verdict and must be answered with HTTP 400.
pub fn judge(
    webhook: Webhook,
    body: &[u8],
    policy: &Policy,
    known: &Known,
    now: Timestamp,
) -> Result<Judged, ReviewError> {
    match webhook {
        Webhook::Approvals => with(body, &stamp::KINDS, |review| stamp::judge(review, known, now)),
        Webhook::Rollouts => with(body, &[Kind::RuntimeRollout], |review| rollouts::judge(review, policy, known, now)),
        Webhook::Runtimes => with(body, &[Kind::ClusterRuntime], |review| runtimes::judge(review, policy, known, now)),
        Webhook::Applications => {
            with(body, &[Kind::Application], |review| applications::judge(review, policy, known, now))
        }
        Webhook::Plans => with(body, &[Kind::ConfigMap], |review| plans::judge(review, policy)),
    }
}

fn with<'a, O: Deserialize<'a> + Named>(
    body: &'a [u8],
    kinds: &[Kind],
    judge: impl FnOnce(&Review<'a, O>) -> Verdict,
) -> Result<Judged, ReviewError> {
    let review: Review<'a, O> = review::read(body, kinds)?;
    let verdict = judge(&review);
    let answer = answer::body(&review, &verdict)?;
    Ok(Judged { verdict, dry_run: review.dry_run, answer })
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod sample;
