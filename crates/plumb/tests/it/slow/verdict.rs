//! Kinds of loss, in labs: `make test` tells them apart in recorded checks of such lines (diagnose/fixtures).

use crate::common::side_by_side;
use crate::verdict::{
    a_duplex_mismatch_is_named, a_short_queue_is_named_with_its_length,
    bursts_of_loss_are_named_with_their_direction, loss_at_random_is_told_from_a_full_queue,
};

#[test]
#[ignore = "slow: a minute of load"]
fn kinds_of_loss_are_told_apart() {
    side_by_side(&[
        &bursts_of_loss_are_named_with_their_direction,
        &loss_at_random_is_told_from_a_full_queue,
        &a_short_queue_is_named_with_its_length,
        &a_duplex_mismatch_is_named,
    ]);
}
