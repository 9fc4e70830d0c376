//! Both kinds on a real API server: what it accepts, what it refuses and in which words.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "api/bounds.rs"]
mod bounds;
#[path = "api/columns.rs"]
mod columns;
#[path = "api/immutability.rs"]
mod immutability;
#[path = "api/kinds.rs"]
mod kinds;
#[path = "api/people.rs"]
mod people;
#[path = "api/status.rs"]
mod status;

use std::process::ExitCode;

use aicr_tests::floor::{self, After};
use aicr_tests::{World, tests};

fn main() -> ExitCode {
    floor::run(
        World::with_both_kinds,
        After::Others,
        tests![
            kinds:
                both_kinds_are_served_without_a_complaint,
                a_runtime_is_named_cluster,
                defaults_are_filled_in,
                a_rollout_is_stored_as_it_was_written,
                a_null_is_refused,
                objects_outlive_an_upgrade_of_the_kinds_and_its_downgrade;
            bounds:
                durations_are_checked_with_one_clear_line,
                a_step_may_not_take_longer_than_its_rollout,
                a_pinned_selection_needs_a_digest,
                a_target_agrees_with_its_digest,
                lists_maps_and_texts_are_bounded_in_a_runtime,
                lists_and_texts_are_bounded_in_a_rollout,
                an_override_is_given_once,
                unknown_words_are_refused_with_the_known_ones;
            immutability:
                no_field_of_a_rollout_can_be_changed,
                no_optional_field_of_a_rollout_can_be_added_later,
                no_optional_field_of_a_rollout_can_be_removed_later,
                nothing_can_be_changed_in_the_largest_rollout,
                a_runtime_can_be_changed;
            people:
                an_approval_is_given_once,
                a_revocation_is_given_once,
                acknowledgements_are_added_and_stay,
                the_largest_rollout_takes_its_last_acknowledgement;
            status:
                a_status_write_changes_only_the_status,
                a_spec_write_leaves_the_status,
                the_whole_status_can_be_lost;
            columns:
                a_runtime_shows_its_conditions,
                a_rollout_shows_where_it_is,
        ],
    )
}
