//! Checks of several hosts that are long enough to see the paths.

use crate::places;

#[test]
#[ignore = "slow: four checks, one after the other"]
fn loss_before_one_network_is_theirs() {
    places::loss_before_one_network_is_theirs();
}
