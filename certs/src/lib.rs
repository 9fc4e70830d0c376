//! The keys: authority, leaf, when to rotate, the rustls resolver. No client, no clock, no tokio.
//!
//! Two providers feed one [`CertificateResolver`]: our own authority, kept in a Secret that all replicas watch
//! ([`Stored`], [`Found`], [`Leaf`], and [`Leader`] for the one who writes), and cert-manager's mounted Secret
//! ([`Mounted`]). `now` is an argument everywhere; key generation blocks and belongs in `spawn_blocking`.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

mod authority;
mod bundle;
mod certificate;
mod found;
mod leader;
mod leaf;
mod mounted;
mod resolver;
mod schedule;
mod service;
mod stored;

pub use authority::{Authority, GenerateError};
pub use bundle::Bundle;
pub use certificate::{CaCertificate, CertificateFault};
pub use found::{Found, Why};
pub use leader::{LOOK_EVERY, Leader, Rotation, SETTLE, Step};
pub use leaf::{IssueError, Leaf, LeafLife, LifeOutOfBounds, Reissue};
pub use mounted::{Mounted, MountedError};
pub use resolver::{CertificateResolver, ConfigError, Served, server_config};
pub use schedule::{Age, BACKDATED, Validity};
pub use service::{NotALabel, ServiceNames};
pub use stored::{CERTIFICATE, KEY, PREVIOUS, Stored};

/// The one TLS provider, given explicitly wherever rustls asks, so that nothing depends on the process default.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
