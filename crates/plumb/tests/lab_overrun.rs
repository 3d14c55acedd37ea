//! What is made in a laboratory that the machine cannot keep up with says so, and names no other
//! cause.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::network::Network;
use common::words;
use plumb_lab::scenario::Way;

/// A cell that does nothing, but for which large segments are cut into packets.
const SPLITS: &str = r#"{ type = "gilbert_elliott", p = "0%", r = "10%" }"#;

/// Lets connections have more under way than a thread can carry in a tenth of a second.
fn large_buffers(network: &mut Network) {
    for node in ["client", "server"] {
        for variable in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
            network.sysctl(node, variable, "4096 131072 268435456");
        }
    }
}

#[test]
fn what_waits_to_be_read_is_late() {
    let mut network = Network::served_line(SPLITS, SPLITS);
    large_buffers(&mut network);
    let checked = network.measured(&words(
        "rate server --up --streams 8 --duration 3s --budget 20GB",
    ));
    let mark = checked.run.local.lab.expect("measured in a laboratory");
    assert!(mark.overrun, "{mark:?}");
    // Nothing is overdue that was read: the link has no delay, no rate and no queue.
    let up = &checked.stats.links["line"][&Way::Up];
    let late = up.driver.lateness_s.unwrap();
    let transit = up.chain.flows.iter().filter_map(|flow| flow.transit_s);
    let transit = transit.map(|transit| transit.p99).fold(0.0, f64::max);
    assert!(
        late.p99 > 2e-3 && late.p99 > 2.0 * transit,
        "{late:?} {transit}"
    );
}
