//! A path with responders in its middle, checked up to each of them.

use crate::segments;

#[test]
#[ignore = "slow: three checks, one after the other"]
fn a_queue_between_two_middles_is_between_them() {
    segments::a_queue_between_two_middles_is_between_them();
}
