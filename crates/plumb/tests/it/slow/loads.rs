//! Loads of lines that are as slow as their subject needs them: `make test` has the shortest of each kind.

use crate::common::side_by_side;
use crate::{available, check_time, sharing, web};

#[test]
#[ignore = "slow: minutes of load"]
fn lines_are_shared_found_and_examined() {
    side_by_side(&[
        &sharing::a_queue_for_all_gives_to_each_flow_and_not_to_each_user,
        &sharing::background_traffic_alone_uses_the_link,
        &available::the_line_is_found_by_losses_too,
        &check_time::a_check_of_a_healthy_line_keeps_its_time,
        &web::a_check_against_a_web_server_names_the_queue,
    ]);
}
