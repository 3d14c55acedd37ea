//! What is made in a laboratory that the machine cannot keep up with says so, and names no other
//! cause.

use crate::common::measured::even_disturbed;
use crate::common::network::Network;
use crate::common::{stderr, words};
use plumb_model::direction::OneDirection;
use plumb_model::results::Outcome;

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
    large_buffers(network.in_real_time());
    let command = words("rate server --up --streams 8 --duration 3s --budget 20GB");
    let checked = even_disturbed(|| network.measured(&command));
    let mark = checked.run.local.lab.expect("measured in a laboratory");
    assert!(mark.overrun, "{mark:?}");
    // Nothing is overdue that was read: the link has no delay, no rate and no queue.
    let up = &checked.stats.links["line"][&OneDirection::Up];
    let late = up.driver.lateness_s.unwrap();
    let transit = up.chain.flows.iter().filter_map(|flow| flow.transit_s);
    let transit = transit.map(|transit| transit.p99).fold(0.0, f64::max);
    assert!(
        late.p99 > 2e-3 && late.p99 > 2.0 * transit,
        "{late:?} {transit}"
    );
}

#[test]
fn ends_that_get_no_processor_are_an_overrun() {
    // Both ways through two links in a row: four threads carry, of real-time priority, and senders
    // and receivers have what they leave. A machine that can do it fills the links.
    const RATE_BPS: f64 = 2e9;
    let cells = r#"{ type = "shaper", rate = "2gbit", queue = "fq_codel" }"#;
    let mut network = Network::default();
    for node in ["client", "router", "server"] {
        network.node(node, "");
    }
    network.set("router", "forward = true");
    let cells = format!("up = [{cells}]\ndown = [{cells}]");
    network.link("near", ["client", "router"], &cells);
    network.link("far", ["router", "server"], &cells);
    network.serves("server").in_real_time();
    let command = words("rate server --both --streams 4 --duration 3s --budget 20GB");
    let checked = even_disturbed(|| network.measured(&command));
    let mark = checked.run.local.lab.expect("measured in a laboratory");
    let results = checked.run.measurements.iter();
    let rates = results.filter_map(|measurement| match &measurement.outcome {
        Outcome::Throughput(rate) => Some(rate.bps),
        _ => None,
    });
    let least = rates.fold(f64::INFINITY, f64::min);
    let is_full = least >= 0.95 * RATE_BPS * 1448.0 / 1514.0;
    assert!(is_full || mark.overrun, "{least} {mark:?}");
}

#[test]
fn what_is_no_ip_is_counted_and_is_no_overrun() {
    let output = Network::line(SPLITS, SPLITS).run(&[
        "python3",
        "-c",
        r#"
import socket
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
raw.bind(("line", 0x0800))
for first in range(256):
    raw.send(bytes([first]) + bytes(99))
"#,
    ]);
    let errors = stderr(&output);
    assert!(output.status.success(), "{errors}");
    // 0x40 to 0x4f and 0x60 to 0x6f pass for IP by their first byte.
    assert!(
        errors.contains("line.up: 224 packets were neither IPv4 nor IPv6"),
        "{errors}"
    );
    assert!(!errors.contains("did not keep up"), "{errors}");
}
