//! The whole on real parts: chart, image, Argo CD, registry and the stand-in for AICR, in one story after the other.
//!
//! The stories share one cluster and build on each other: each says what it finds and what it leaves.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "whole/bad_input.rs"]
mod bad_input;
#[path = "whole/first.rs"]
mod first;
#[path = "whole/install.rs"]
mod install;
#[path = "whole/upgrades.rs"]
mod upgrades;

use std::process::ExitCode;

use aicr_tests::{Stage, floor, tests};

fn main() -> ExitCode {
    floor::run(
        Stage::with_the_operator,
        tests![
            install:
                every_series_is_there_at_zero,
                both_kinds_answer_as_on_the_page;
            bad_input:
                a_runtime_of_another_name_is_refused,
                overlapping_placements_stall_and_are_named,
                a_selector_without_nodes_is_named,
                a_second_lab_is_refused_and_named,
                output_that_is_no_recipe_is_named,
                a_chart_source_that_does_not_answer_is_named,
                a_registry_that_is_not_there_is_named,
                validation_that_is_required_and_not_installed_stalls;
            first:
                inputs_become_a_plan_and_a_rollout_that_waits,
                the_report_of_a_waiting_rollout_reads_as_the_page,
                the_approved_rollout_survives_a_kill_and_the_loss_of_all_status,
                every_release_was_written_once_and_is_healthy,
                no_apply_holds_what_argo_cd_owns,
                the_end_is_told_once,
                a_new_snapshot_gives_the_same_plan;
            upgrades:
                the_upgrade_says_which_step_needs_whom,
                a_manual_release_waits_for_its_acknowledgement,
                one_safe_release_without_crds_needs_nobody,
                the_same_output_makes_no_rollout,
                a_wrong_version_stalls_and_is_named;
        ],
    )
}
