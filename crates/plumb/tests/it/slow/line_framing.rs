//! Lines whose framing is found by floods.

use crate::line_framing::floods_show_the_framing_of_a_line;

#[test]
#[ignore = "slow: minutes of small packets"]
fn floods_show_it() {
    floods_show_the_framing_of_a_line();
}
