//! A crash at each write of a whole rollout (B97): the same end, no Application written twice, no double Event.
//!
//! The other side of each write is the soak's: for the API server it is the same place.

use aicr_tests::engine::Engine;
use aicr_tests::engine::crashes::Side;

pub(crate) fn an_install_survives_a_crash_before_each_write(engine: &Engine) {
    engine.crash_installs(Side::Before);
}

pub(crate) fn an_upgrade_survives_a_crash_after_each_write(engine: &Engine) {
    engine.crash_upgrades(Side::After);
}
