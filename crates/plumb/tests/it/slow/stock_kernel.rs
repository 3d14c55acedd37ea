//! All that plumb asks of a stock kernel.

use std::time::Duration;

use crate::vm::pass_on_a_stock_kernel;

#[test]
#[ignore = "slow"]
fn does_all_that_plumb_asks_of_it() {
    pass_on_a_stock_kernel("vm::,-vm::shape", Duration::from_secs(1200));
}

/// A shaper with every scheme beside every configuration, and killed at every step of making it: hundreds of processes.
#[test]
#[ignore = "slow"]
fn a_shaper_stands_and_goes_without_a_trace() {
    pass_on_a_stock_kernel("vm::shape", Duration::from_secs(3600));
}
