//! What the installation decides for the door: its flags, as a plain value.

use std::collections::BTreeSet;

use aicr_crds::application::Engine;

use crate::review::User;

/// Everything that is fixed while the process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// User name of the operator's own service account ([`service_account`]).
    pub operator: String,
    /// The operator's namespace, where plans lie.
    pub namespace: String,
    /// Who may approve, revoke and acknowledge.
    pub approvers: Approvers,
    /// Whether authors may approve.
    pub separation: Separation,
    /// Argo CD's namespace, the project, and the registry with its prefix.
    pub engine: Engine,
}

/// People by name and by group; both empty means nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvers {
    /// User names, as the API server reports them.
    pub users: BTreeSet<String>,
    /// Group names.
    pub groups: BTreeSet<String>,
}

/// Whether the approver of a change must be somebody else than its authors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separation {
    /// Yes.
    #[default]
    FourEyes,
    /// No: `admission.allowSelfApproval`, with a warning each time.
    SelfApproval,
}

impl Policy {
    /// Whether the operator asks. By name only: groups of an impersonated account are whatever its impersonator says.
    pub(crate) fn is_operator(&self, user: &User<'_>) -> bool {
        user.name() == self.operator
    }

    /// Whether this person is listed, by name or by a group.
    pub(crate) fn is_approver(&self, user: &User<'_>) -> bool {
        self.approvers.users.contains(user.name())
            || user.groups().iter().any(|group| self.approvers.groups.contains(group.as_str()))
    }
}

/// User name of a service account.
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}
