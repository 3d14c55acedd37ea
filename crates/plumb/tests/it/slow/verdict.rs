//! Kinds of loss, black holes and what a path strips, in labs: `make test` tells them apart in recorded checks of such lines
//! (diagnose/fixtures, corpus).

use crate::common::side_by_side;
use crate::verdict::{
    a_black_hole_down_is_the_finding_and_loses_no_responder,
    a_black_hole_down_without_a_line_is_named, a_black_hole_is_named, a_duplex_mismatch_is_named,
    a_short_queue_is_named_with_its_length, an_option_that_the_path_strips_is_named,
    bursts_of_loss_are_named_with_their_direction, loss_at_random_is_told_from_a_full_queue,
};

#[test]
#[ignore = "slow: a minute of load"]
fn kinds_of_loss_are_told_apart() {
    side_by_side(&[
        &a_black_hole_is_named,
        &a_black_hole_down_is_the_finding_and_loses_no_responder,
        &a_black_hole_down_without_a_line_is_named,
        &bursts_of_loss_are_named_with_their_direction,
        &loss_at_random_is_told_from_a_full_queue,
        &a_short_queue_is_named_with_its_length,
        &a_duplex_mismatch_is_named,
        &an_option_that_the_path_strips_is_named,
    ]);
}
