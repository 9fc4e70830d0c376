//! The whole on real parts: chart, image, Argo CD, registry and the stand-in for AICR, in one story after the other.
//!
//! The stories share one cluster and build on each other: each says what it finds and what it leaves.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]
#![allow(clippy::print_stdout, reason = "figures for the closing note")]

#[path = "whole/bad_input.rs"]
mod bad_input;
#[path = "whole/bad_spec.rs"]
mod bad_spec;
#[path = "whole/door/mod.rs"]
mod door;
#[path = "whole/engine/mod.rs"]
mod engine;
#[path = "whole/first.rs"]
mod first;
#[path = "whole/install.rs"]
mod install;
#[path = "whole/parcel.rs"]
mod parcel;
#[path = "whole/resolution.rs"]
mod resolution;
#[path = "whole/upgrades.rs"]
mod upgrades;
#[path = "whole/waiting_jobs.rs"]
mod waiting_jobs;

use std::process::ExitCode;

use aicr_tests::floor::{self, After};
use aicr_tests::{Stage, tests};
use door::{
    access as door_access, down as door_down, engine as door_engine, lease as door_lease, load as door_load,
    people as door_people, scrape as door_scrape, waiting as door_waiting,
};
use engine::{
    end as engine_end, failure as engine_failure, fetch as engine_fetch, hold as engine_hold, stack as engine_stack,
    validation as engine_validation,
};

#[expect(clippy::too_many_lines, reason = "one list, in the order in which it is told")]
fn main() -> ExitCode {
    floor::run(
        Stage::with_the_operator,
        After::Nothing,
        tests![
            install:
                every_series_is_there_at_zero,
                both_kinds_answer_as_on_the_page;
            door_access: each_identity_may_what_it_needs_and_no_more;
            door_lease: whoever_loses_the_lease_leads_no_more;
            door_people:
                who_may_not_approve_is_told_why,
                what_is_no_approval_is_said,
                revocations_and_acknowledgements_have_their_time,
                what_is_the_operators_is_written_by_nobody_else;
            door_engine:
                the_operator_removes_only_what_an_approved_step_names,
                the_operator_touches_nothing_foreign;
            door_lease: a_lease_that_is_gone_is_taken_up;
            bad_input:
                a_runtime_of_another_name_is_refused,
                overlapping_placements_stall_and_are_named,
                a_selector_without_nodes_is_named,
                a_second_lab_is_refused_and_named,
                output_that_is_no_recipe_is_named,
                a_chart_source_that_does_not_answer_is_named,
                a_registry_that_is_not_there_is_named;
            resolution:
                a_registry_that_goes_and_comes_back_is_waited_for_and_given_nothing_twice,
                a_stage_that_always_fails_has_three_runs_whatever_is_lost,
                a_new_snapshot_gives_three_more_and_another_image_goes_on,
                the_same_inputs_on_the_other_replica_are_the_same_plan;
            waiting_jobs:
                an_image_that_is_not_there_is_named_and_waited_for_by_the_same_job,
                a_namespace_that_lets_no_pod_in_is_named_while_the_earlier_plan_stands,
                credentials_that_are_gone_stall_and_their_return_is_enough,
                a_namespace_that_the_project_lacks_is_named;
            bad_spec:
                a_criterion_that_disagrees_is_named,
                an_override_that_leads_nowhere_is_named,
                an_override_that_arrives_as_another_kind_is_named;
            waiting_jobs: a_persons_own_jobs_were_left_alone_and_five_snapshots_are_kept;
            bad_input: validation_that_is_required_and_not_installed_stalls;
            first:
                inputs_become_a_plan_and_a_rollout_that_waits,
                the_report_of_a_waiting_rollout_reads_as_the_page;
            door_waiting:
                no_author_of_the_change_approves_it,
                a_stored_plan_is_changed_by_nobody;
            door_engine: the_operator_and_people_keep_to_their_part_of_the_runtime;
            door_down: nobody_is_kept_from_what_is_theirs;
            first:
                the_approved_rollout_survives_a_kill_and_the_loss_of_all_status,
                every_release_was_written_once_and_is_healthy,
                no_apply_holds_what_argo_cd_owns,
                the_end_is_told_once,
                the_log_names_what_it_is_about_and_holds_no_secret,
                a_new_snapshot_gives_the_same_plan,
                a_second_login_of_argo_cd_is_named_until_it_is_gone;
            door_load:
                no_review_fails_through_a_rolling_restart,
                no_review_fails_through_another_authority,
                a_wiped_bundle_is_put_back;
            door_lease:
                a_leader_that_is_told_to_stop_hands_over,
                a_leader_that_was_frozen_writes_nothing_more;
            door_scrape: a_prometheus_scrapes_both_replicas;
            upgrades:
                a_namespace_that_the_launcher_relabelled_is_taken_back_by_force_alone,
                the_upgrade_says_which_step_needs_whom,
                a_manual_release_waits_for_its_acknowledgement,
                one_safe_release_without_crds_needs_nobody,
                the_same_output_makes_no_rollout,
                a_wrong_version_stalls_and_is_named;
            engine_hold:
                the_right_image_again_ends_the_stall,
                an_edit_stalls_the_rollout_and_its_undo_resumes_it,
                a_paused_step_is_seen_to_its_end_and_no_other_starts,
                a_project_that_vanishes_holds_the_step_and_ends_nothing,
                an_api_server_that_is_away_for_a_minute_costs_nothing_but_the_minute,
                a_controller_that_compares_nothing_for_long_is_named;
            engine_fetch:
                an_expired_password_of_argo_cds_stops_comparisons_alone,
                a_registry_that_is_away_stops_comparisons_alone;
            engine_hold:
                a_suspended_engine_keeps_what_is_edited_until_it_resumes,
                a_deleted_application_is_written_again;
            engine_end:
                a_revoked_rollout_ends_after_its_step_in_flight,
                an_expired_approval_starts_no_further_step;
            engine_failure:
                a_failed_step_is_retried_to_the_same_content,
                an_operation_for_older_content_is_named_and_ended_after_half_the_time,
                a_sync_of_local_manifests_is_synced_away,
                a_spec_that_argo_cd_refuses_fails_after_its_grace;
            engine_validation:
                what_validation_needs_is_named_and_its_return_is_enough,
                a_component_that_is_switched_off_is_not_required,
                failed_checks_and_other_images_fail_the_rollout_and_are_named;
            bad_spec: what_was_written_as_text_arrives_as_text_in_the_chart;
            engine_stack:
                a_removed_release_leaves_its_definitions_and_can_come_again,
                a_renamed_release_keeps_what_runs;
            parcel:
                a_second_installation_is_refused,
                helm_4_upgrades_rolls_back_and_takes_all_away,
                a_kept_namespace_with_another_label_is_given_back_before_an_install,
                helm_3_installs_beside_a_stack,
                a_new_runtime_beside_a_stack_takes_nothing_over,
                helm_3_upgrades_rolls_back_and_takes_all_away;
            engine_stack:
                an_orphaned_stack_is_adopted_with_approval,
                a_half_moved_stack_outlives_its_runtime_and_is_adopted,
                deletion_with_delete_takes_the_stack_with_approval;
        ],
    )
}
