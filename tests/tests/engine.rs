//! The whole drive loop on a real API server, with an Argo CD played by the test.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "engine/crashes.rs"]
mod crashes;
#[path = "engine/field.rs"]
mod field;
#[path = "engine/leaders.rs"]
mod leaders;
#[path = "engine/processes.rs"]
mod processes;
#[path = "engine/rollouts.rs"]
mod rollouts;
#[path = "engine/troubles.rs"]
mod troubles;

use std::process::ExitCode;

use aicr_tests::engine::Engine;
use aicr_tests::floor::{self, After};
use aicr_tests::tests;

fn main() -> ExitCode {
    floor::run(
        Engine::up,
        After::Others,
        tests![
            rollouts:
                six_releases_are_installed_in_order_each_written_once,
                an_upgrade_a_gate_an_install_and_a_removal_are_one_rollout,
                a_step_takes_two_statuses_and_two_records;
            crashes:
                an_install_survives_a_crash_before_each_write,
                an_upgrade_survives_a_crash_after_each_write;
            troubles:
                an_approval_given_while_every_watch_is_dead_is_seen,
                a_step_goes_on_after_410_garbage_and_resets_of_every_watch,
                a_rollout_comes_through_429_5xx_and_answers_that_are_lost,
                a_step_goes_on_when_the_api_server_comes_back,
                a_reconcile_that_fails_is_told_and_conditions_keep_what_was_seen,
                nothing_is_done_twice_when_watches_tell_late;
            leaders:
                two_leaders_write_each_step_once,
                replicas_that_are_cut_off_in_turn_come_to_the_same_end,
                replicas_whose_clocks_are_ten_minutes_apart_come_to_the_same_end;
            field:
                a_removal_waits_for_a_project_that_is_gone,
                a_suspension_that_the_crd_prunes_is_said_to_be_refused,
                a_write_to_an_application_that_is_gone_creates_none,
                an_operation_for_other_content_is_named_and_ended_after_half_the_time;
            processes:
                a_token_is_refreshed_by_the_leader_alone_and_each_failure_is_logged,
                an_orphaning_that_cannot_list_applications_waits_and_only_the_log_says_so;
        ],
    )
}
