//! `--backend kernel`: the links are what the scenario says, and what plumb's own would be.

use plumb_lab::scenario::Scenario;
use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::run::{LabBackend, Run};

use super::network::{Pinged, ScenarioFile, bench, expected, received};
use crate::common::{plumb, stderr, stdout};

#[test]
#[ignore = "runs in the virtual machine"]
fn home_cable_is_what_it_is_on_plumbs_own_links() {
    let text = Scenario::text("home-cable").unwrap()
        + "\n[[service]]\nnode = \"server\"\nrun = [\"iperf3\", \"--server\", \"--port\", \"5202\"]\nport = 5202\n";
    let file = ScenarioFile::new(&text);
    // The scenario's own truth of its idle round trip.
    let idle = file.ping("kernel", 500);
    assert_eq!(idle.lost(), 0);
    assert!((0.018..0.0195).contains(&idle.rtt_s.p50), "{idle:?}");

    // An upload for 8 s fills the modem's queue with some 250 ms (its 700 ms take longer), and the line
    // carries 1448 bytes of payload in frames of 1518. iperf counts what arrived in its own time:
    // a packet more or less.
    let output = file.run(
        "kernel",
        &[
            "sh",
            "-c",
            "iperf3 --json -C cubic -O 2 -t 6 -p 5202 -c server > /tmp/iperf & sleep 6; plumb ping --json -i 10ms -c 100 server; wait; echo; cat /tmp/iperf",
        ],
    );
    let (ping, iperf) = output.split_once('\n').unwrap();
    let loaded = Pinged::read(ping);
    let rate = received(iperf);
    let line = 20e6 * 1448.0 / 1518.0;
    println!(
        "home-cable: {rate:.0} bit/s of {line:.0}, round trips {:.4} s",
        loaded.rtt_s.p50
    );
    assert!(
        (0.97 * line..1.005 * line).contains(&rate),
        "{rate} of {line}"
    );
    assert!((0.1..0.75).contains(&loaded.rtt_s.p50), "{loaded:?}");

    // TCP sent packets of the wire's size: the rate's queue saw none larger.
    let stats = file.stats();
    let tbf = stats.kernel["line"][&OneDirection::Up]
        .iter()
        .find(|q| q.kind == "tbf")
        .unwrap();
    assert!(tbf.bytes / tbf.packets <= 1518, "{tbf:?}");
    assert!(tbf.packets > 10_000, "{tbf:?}");
    assert_eq!(stats.kernel["line"][&OneDirection::Up][0].kind, "netem");
}

/// The shape of `fibre` at a rate that this machine can do: a bandwidth-delay product of queue.
#[test]
#[ignore = "runs in the virtual machine"]
fn a_line_with_a_small_queue_gives_its_rate_both_ways() {
    let cells = r#"{ type = "shaper", rate = "20mbit", framing = "ethernet", queue = { type = "fifo", limit = "50kB" } }, { type = "delay", delay = "10ms" }"#;
    let file = ScenarioFile::two(cells, cells);
    let idle = file.ping("kernel", 500);
    assert!((0.020..0.0205).contains(&idle.rtt_s.p50), "{idle:?}");
    // 20 Mbit/s in frames of 1538; CUBIC before a queue of one bandwidth-delay product loses a
    // packet now and then.
    let line = 20e6 * 1448.0 / 1538.0;
    for options in [&["-t", "5"][..], &["-t", "5", "--reverse"]] {
        let rate = file.iperf("kernel", options);
        println!("small queue {options:?}: {rate:.0} bit/s of {line:.0}");
        assert!(
            (0.95 * line..1.005 * line).contains(&rate),
            "{options:?}: {rate} of {line}"
        );
    }
}

#[test]
#[ignore = "runs in the virtual machine"]
fn fq_codel_in_the_kernel_keeps_the_queue_short() {
    let managed = r#"{ type = "shaper", rate = "10mbit", framing = "docsis", queue = { type = "fq_codel" } }, { type = "delay", delay = "5ms" }"#;
    let file = ScenarioFile::two(managed, r#"{ type = "delay", delay = "5ms" }"#);
    let output = file.run(
        "kernel",
        &[
            "sh",
            "-c",
            "iperf3 --json -C cubic -O 2 -t 6 -c server > /tmp/iperf & sleep 3; plumb ping --json -i 10ms -c 200 server; wait; echo; cat /tmp/iperf",
        ],
    );
    let (ping, iperf) = output.split_once('\n').unwrap();
    let (loaded, rate) = (Pinged::read(ping), received(iperf));
    println!(
        "fq_codel: {rate:.0} bit/s, round trips {:.4} s (p95)",
        loaded.rtt_s.p95
    );
    // A sparse flow waits for the packet on the line and at most one more: 2.4 ms at 10 Mbit/s.
    assert!((0.010..0.0135).contains(&loaded.rtt_s.p95), "{loaded:?}");
    assert!(rate > 0.93 * 10e6 * 1448.0 / 1518.0, "{rate}");
}

/// In the background too; and what the kernel carries is not changed behind its back.
#[test]
#[ignore = "runs in the virtual machine"]
fn a_lab_on_the_kernel_stays_in_the_background() {
    let lab = |arguments: &[&str]| plumb(&[&["lab"], arguments].concat());
    let up = lab(&["up", "home-cable", "--backend", "kernel", "--name", "held"]);
    assert!(up.status.success(), "{}", stderr(&up));
    let pinged = lab(&["shell", "client", "--", "plumb", "ping", "--json", "server"]);
    let stats = lab(&["stats"]);
    let set = lab(&["set", "line.up.delay", "delay=40ms"]);
    let log = lab(&["log"]);
    let down = lab(&["down"]);
    assert!(down.status.success(), "{}", stderr(&down));
    let run = Run::from_json(&stdout(&pinged)).unwrap();
    let mark = run.local.lab.unwrap();
    assert_eq!(mark.backend, LabBackend::Kernel);
    assert!(mark.lateness_s.is_none() && !mark.overrun, "{mark:?}");
    let rtt = Pinged::read(&stdout(&pinged)).rtt_s.p50;
    assert!((0.018..0.0195).contains(&rtt), "{rtt}");
    let stats = stdout(&stats);
    assert!(
        stats.contains("line.up: carried by the kernel") && stats.contains("netem"),
        "{stats}"
    );
    assert_eq!(set.status.code(), Some(125));
    assert_eq!(log.status.code(), Some(125), "{}", stderr(&log));
    assert!(
        stderr(&set).contains("change them with tc"),
        "{}",
        stderr(&set)
    );
}

#[test]
#[ignore = "runs in the virtual machine"]
fn netem_and_plumbs_own_cells_side_by_side() {
    let nothing = "";
    let delay = r#"{ type = "delay", delay = "20ms" }"#;
    let jitter = r#"{ type = "delay", delay = "20ms", jitter = "5ms", reordering = true }"#;
    let loss = r#"{ type = "loss", ratio = "1%" }"#;
    for backend in ["kernel", "emulated"] {
        let pinged = ScenarioFile::two(delay, nothing).ping(backend, 2000);
        bench("delay 20ms", backend, &pinged);
        assert_eq!(pinged.lost(), 0, "{backend}");
        // The stacks of two machines on a slow processor add the rest.
        assert!(
            (0.020..0.0203).contains(&pinged.rtt_s.p50),
            "{backend}: {pinged:?}"
        );

        // Uniform within 5 ms: the standard deviation is 5 ms / √3, and the mean of 2000 is
        // within four of its own, which the deviation is as well.
        let pinged = ScenarioFile::two(jitter, nothing).ping(backend, 2000);
        bench("delay 20ms 5ms", backend, &pinged);
        let (deviation, error) = (0.005 / 3f64.sqrt(), 4.0 / 2000f64.sqrt());
        let Distribution { mean, stddev, .. } = pinged.rtt_s;
        assert!(
            (mean - 0.020).abs() < deviation * error + 0.0001,
            "{backend}: {pinged:?}"
        );
        assert!(
            (stddev / deviation - 1.0).abs() < error,
            "{backend}: {pinged:?}"
        );

        let pinged = ScenarioFile::two(loss, nothing).ping(backend, 5000);
        bench("loss 1%", backend, &pinged);
        assert!(
            expected(5000, 0.01).contains(&(pinged.lost() as f64)),
            "{backend}: {pinged:?}"
        );
    }
}
