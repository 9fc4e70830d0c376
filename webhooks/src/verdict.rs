//! What is answered: allow, deny by a rule, or patch.

use json_patch::Patch;

/// The judgment of one review.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may happen; a person is told these.
    Allow(Vec<Warning>),
    /// It may not.
    Deny(Denial),
    /// It may happen with these changes (mutating webhook only).
    Patch(Patch),
}

impl Verdict {
    /// Allowed, and nothing to say.
    pub const ALLOW: Self = Self::Allow(Vec::new());
}

/// A refusal. Its text is fixed, so that it can never echo a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The rule that refuses.
    pub rule: Rule,
    /// How the client should take it.
    pub code: Code,
    /// What is wrong and what to do, without the object's name.
    pub says: &'static str,
}

/// HTTP status of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 403: final.
    Forbidden,
    /// 409: it rests on what this replica has seen so far; trying again may pass.
    Conflict,
}

impl Code {
    /// The number.
    pub fn number(self) -> u16 {
        match self {
            Self::Forbidden => 403,
            Self::Conflict => 409,
        }
    }

    /// Kubernetes' reason of that number.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Forbidden => "Forbidden",
            Self::Conflict => "Conflict",
        }
    }
}

/// What a person may be surprised by. One line each: the API server drops a warning with a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// An author approved their own change.
    SelfApproval,
    /// `deletionPolicy: Delete`.
    DeletionDeletes,
    /// `validation.deployment: Disabled`.
    ValidationDisabled,
    /// One placement selector contains the other.
    PlacementOverlaps,
}

impl Warning {
    /// Every warning.
    pub const ALL: [Self; 4] =
        [Self::SelfApproval, Self::DeletionDeletes, Self::ValidationDisabled, Self::PlacementOverlaps];

    /// The line.
    pub fn text(self) -> &'static str {
        match self {
            Self::SelfApproval => {
                "you approve a change that you asked for yourself: admission.allowSelfApproval has switched the separation of author and approver off"
            }
            Self::DeletionDeletes => {
                "spec.deletionPolicy is Delete: deleting this ClusterRuntime removes every release once an approver agrees; Orphan leaves the stack running"
            }
            Self::ValidationDisabled => {
                "spec.validation.deployment is Disabled: rollouts succeed without any check that the stack works"
            }
            Self::PlacementOverlaps => {
                "spec.placement: one node selector contains the other, and a node that matches both stalls the runtime with PlacementOverlap"
            }
        }
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Every rule of the door (`design/admission.md`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule { $($(#[$doc])* $name,)+ }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name, as messages end with it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

rules! {
    /// The review must hold what its operation needs.
    Readable,
    /// Rollouts 1: only the operator creates, one unfinished rollout at a time.
    Creation,
    /// Rollouts 2: the spec gains approval, revocation and acknowledgements, and changes in nothing else.
    Immutability,
    /// Rollouts 3: consent carries the requester's name and the time, and is never the operator's.
    Stamp,
    /// Rollouts 4: only approvers consent.
    Approvers,
    /// Rollouts 5: nobody approves what they asked for.
    Separation,
    /// Rollouts 6: what an approval must hold and when it may come.
    Approval,
    /// Rollouts 7: what a revocation must hold and when it may come.
    Revocation,
    /// Rollouts 8: an acknowledgement is for a release that waits for it.
    Acknowledgement,
    /// Rollouts 9: outcome, evidence and progress are the operator's.
    OperatorFields,
    /// Rollouts 10: an unfinished rollout is not deleted.
    Deletion,
    /// Runtimes: the one name.
    RuntimeName,
    /// Runtimes: fields that contradict each other.
    RuntimeSpec,
    /// Runtimes: the operator changes nothing but its finalizer and status.
    RuntimeOperator,
    /// Runtimes: status is the operator's.
    RuntimeStatus,
    /// Runtimes: who changed the spec is stamped, not set.
    Authors,
    /// Applications: only the operator's own, in Argo CD's namespace.
    Ownership,
    /// Applications: project, destination and source.
    Placement,
    /// Applications: cascade, delete mark and deletion only for an approved Remove step.
    Removal,
    /// Applications: an operation syncs the spec's own source.
    ApplicationOperation,
    /// Applications: of status only a termination.
    ApplicationStatus,
    /// Plans: only the operator creates.
    PlanCreation,
    /// Plans: nobody updates.
    PlanImmutability,
    /// Plans: payload, digest, name and schema agree.
    PlanIntegrity,
}

impl Rule {
    /// A final refusal by this rule.
    pub(crate) fn forbids(self, says: &'static str) -> Denial {
        Denial { rule: self, code: Code::Forbidden, says }
    }

    /// A refusal that may pass when tried again.
    pub(crate) fn conflicts(self, says: &'static str) -> Denial {
        Denial { rule: self, code: Code::Conflict, says }
    }
}

impl From<Result<Vec<Warning>, Denial>> for Verdict {
    fn from(judged: Result<Vec<Warning>, Denial>) -> Self {
        match judged {
            Ok(warnings) => Self::Allow(warnings),
            Err(denial) => Self::Deny(denial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_one_line_that_the_api_server_does_not_cut() {
        for warning in Warning::ALL {
            assert!(!warning.text().contains('\n') && warning.text().len() <= 256, "{warning:?}");
        }
    }
}
