//! The scenarios that show nothing which one of `scenarios.rs` does not.

#[test]
#[ignore = "slow"]
fn the_others_are_what_they_say() {
    crate::scenarios::others_agree();
}
