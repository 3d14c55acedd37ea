//! All that plumb asks of a stock kernel.

#[test]
#[ignore = "slow"]
fn does_all_that_plumb_asks_of_it() {
    crate::vm::pass_on_a_stock_kernel("vm::");
}
