//! How each part is configured and started.

pub(crate) mod argocd;
pub(crate) mod control_plane;
pub(crate) mod forward;
pub(crate) mod node;
pub(crate) mod registry;
