//! The highest UDP rate at 1 % loss, on links whose rate is known, and what it says of TCP.

use crate::common::network::Network;
use crate::common::{refused, side_by_side, stderr};
use plumb_model::results::Outcome;
use plumb_model::results::available_bandwidth::{
    AvailableBandwidthResult, RateLimit, SearchEnd, StepVerdict,
};

/// UDP payload of 50 Mbit/s of IP, in packets of 1400 bytes of it.
const LINE_BPS: f64 = 50e6 * 1400.0 / 1428.0;

/// A queue of a quarter of a second: a step of 1.5 s overflows it only far above the rate.
const QUEUE: &str =
    r#"{ type = "shaper", rate = "50mbit", queue = { type = "fifo", limit = "250ms" } }"#;

/// Buffers that hold the line's bandwidth-delay product many times.
const LARGE: &str = "4096 131072 33554432";

/// Searches a line of 50 Mbit/s and 40 ms with these cells upwards and these buffers at the server.
fn searched(cells: &str, tcp_rmem: &str, options: &[&str]) -> AvailableBandwidthResult {
    let delay = r#"{ type = "delay", delay = "20ms" }"#;
    let mut line = Network::served_line(&format!("{cells}, {delay}"), delay);
    line.sysctl("server", "net.ipv4.tcp_rmem", tcp_rmem);
    let command = [&["rate", "server", "--available", "--up"], options].concat();
    let checked = line.measured(&command);
    let found = checked
        .run
        .measurements
        .iter()
        .find_map(|m| match &m.outcome {
            Outcome::AvailableBandwidth(result) => Some(result.as_ref().clone()),
            _ => None,
        });
    found.expect("a result")
}

fn finds_the_line(result: &AvailableBandwidthResult) {
    assert_eq!(result.ended, SearchEnd::Found, "{result:#?}");
    let found = result.bps.expect("a rate") / LINE_BPS;
    assert!((0.985..1.015).contains(&found), "{found}: {result:#?}");
    // The bracket is 1.5 %, or what a busy sender can aim at.
    let kept = result
        .steps
        .iter()
        .map(|step| step.sent_bps / step.asked_bps);
    let (least, most) = kept.fold((1.0, 0.0), |(least, most): (f64, f64), kept| {
        (least.min(kept), most.max(kept))
    });
    let above = result.above_bps.expect("a rate that failed") / result.bps.unwrap() - 1.0;
    assert!(
        above > 0.0 && above <= (most - least).clamp(0.015, 0.03) + 1e-9,
        "{above}: {result:#?}"
    );
}

#[test]
fn the_line_is_found_whatever_holds_tcp_back() {
    a_receive_window_that_holds_tcp_back();
}

/// The others, which take as long.
pub(crate) fn the_line_is_found_by_losses_too() {
    side_by_side(&[&a_line_that_tcp_fills, &a_policer_and_losses_by_chance]);
}

fn a_line_that_tcp_fills() {
    let result = searched(QUEUE, LARGE, &[]);
    finds_the_line(&result);
    assert_eq!(result.limit, RateLimit::Path, "{result:#?}");
}

fn a_receive_window_that_holds_tcp_back() {
    // About 40 kB of window in 40 ms: 8 Mbit/s.
    let result = searched(QUEUE, "4096 65536 65536", &["--application-rate", "7mbit"]);
    finds_the_line(&result);
    assert!(result.tcp_bps < 15e6, "{}", result.tcp_bps);
    assert_eq!(result.limit, RateLimit::TcpReceiveWindow, "{result:#?}");
}

fn a_policer_and_losses_by_chance() {
    let cells = r#"{ type = "policer", rate = "50mbit", burst = "30kB" }, { type = "loss", ratio = "0.4%" }"#;
    let result = searched(cells, LARGE, &["--application-rate", "100kbit"]);
    finds_the_line(&result);
    assert_eq!(result.limit, RateLimit::Application, "{result:#?}");
    assert!(result.steps.iter().any(|s| s.verdict == StepVerdict::Lost));
}

#[test]
fn what_contradicts_the_search_is_refused() {
    for (options, word) in [
        (&["--both"] as &[&str], "--both"),
        (&["--streams", "2"], "--streams"),
        (&["--duration", "3s"], "--duration"),
        (&["--profile", "voice"], "--profile"),
        (&["--flows", "cubic=2"], "--flows"),
    ] {
        let output = refused(&[&["rate", "127.0.0.1", "--available"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}
