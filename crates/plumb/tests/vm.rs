//! What plumb asks of the kernel, on a stock kernel: `--backend kernel` and `lab impair`.
//!
//! Runs in the virtual machine of `vm/run.sh` only, whose interfaces it changes. The machine's
//! time counts instructions, so that a busy host makes nothing late in it; but its one processor
//! does no more than a thousand million of them a second, so rates stay small.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{PLUMB, plumb, stderr, stdout};
use plumb_lab::scenario::{Scenario, Way};
use plumb_lab::stats::LabStats;
use plumb_lab::tc::{self, Qdisc};
use plumb_model::distribution::Distribution;
use plumb_model::run::Run;
use serde_json::Value;

/// Two machines and one link between them.
const TWO: &str = r#"
name = "two"
summary = "two machines"
[[node]]
name = "client"
[[node]]
name = "server"
[[service]]
node = "server"
run = ["iperf3", "--server"]
port = 5201
"#;

/// A file that goes when it is dropped.
struct ScenarioFile(tempfile::TempDir);

impl ScenarioFile {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.toml"), text).unwrap();
        Self(folder)
    }

    /// [`TWO`] with a link of these cells each way.
    fn two(up: &str, down: &str) -> Self {
        Self::new(&format!(
            "{TWO}\n[[link]]\nname = \"line\"\nbetween = [\"client\", \"server\"]\nup = [{up}]\ndown = [{down}]\n"
        ))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("scenario.toml")
    }

    fn stats(&self) -> LabStats {
        let text = fs::read_to_string(self.0.path().join("stats.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command in the network and returns what it printed.
    fn run(&self, backend: &str, command: &[&str]) -> String {
        let stats = self.0.path().join("stats.json");
        let output = Command::new(PLUMB)
            .args(["lab", "run", "--backend", backend, "--stats"])
            .args([stats, self.path()])
            .arg("--")
            .args(command)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{command:?}: {}{}",
            stdout(&output),
            stderr(&output)
        );
        stdout(&output)
    }

    /// Round trips of `count` probes, one every millisecond.
    fn ping(&self, backend: &str, count: u64) -> Pinged {
        let count_text = count.to_string();
        let run = self.run(
            backend,
            &[
                "plumb",
                "ping",
                "--json",
                "-i",
                "1ms",
                "-c",
                &count_text,
                "server",
            ],
        );
        Pinged::read(&run)
    }

    /// Payload rate that the server received, without the first two seconds, in bit/s.
    fn iperf(&self, backend: &str, options: &[&str]) -> f64 {
        let mut command = vec!["iperf3", "--json", "-C", "cubic", "-O", "2", "-c", "server"];
        command.extend(options);
        received(&self.run(backend, &command))
    }
}

fn received(iperf: &str) -> f64 {
    let report: Value = serde_json::from_str(iperf).unwrap();
    report["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap_or_else(|| panic!("{report}"))
}

/// Round trips, and how many were lost.
#[derive(Debug)]
struct Pinged {
    rtt_s: Distribution,
    sent: u64,
}

impl Pinged {
    fn read(run: &str) -> Self {
        Run::from_json(run).unwrap();
        let run: Value = serde_json::from_str(run).unwrap();
        let result = &run["measurements"][0]["result"];
        Self {
            rtt_s: serde_json::from_value(result["rtt_s"].clone()).unwrap(),
            sent: result["sent"].as_u64().unwrap(),
        }
    }

    fn lost(&self) -> u64 {
        self.sent - self.rtt_s.count
    }
}

/// For `make bench`: a line that vm/run.sh collects.
fn bench(what: &str, by: &str, pinged: &Pinged) {
    let Distribution {
        mean,
        stddev,
        p50,
        p99,
        ..
    } = pinged.rtt_s;
    let (sent, lost) = (pinged.sent, pinged.lost());
    println!(
        "\nvm-bench: {{\"what\":\"{what}\",\"by\":\"{by}\",\"sent\":{sent},\"lost\":{lost},\"rtt_mean_s\":{mean:.7},\"rtt_stddev_s\":{stddev:.7},\"rtt_p50_s\":{p50:.7},\"rtt_p99_s\":{p99:.7}}}"
    );
}

/// How many of `n` independent events of probability `p` may happen: four standard deviations on
/// either side, which a true kernel leaves in one run of 16,000.
fn expected(n: u64, p: f64) -> std::ops::RangeInclusive<f64> {
    let mean = n as f64 * p;
    let four = 4.0 * (mean * (1.0 - p)).sqrt();
    mean - four..=mean + four
}

fn kinds(qdiscs: &[Qdisc]) -> Vec<&str> {
    qdiscs.iter().map(|q| q.kind.as_str()).collect()
}

#[test]
fn the_kernel_takes_every_rendering() {
    let shaper = |rest: &str| format!(r#"{{ type = "shaper", rate = "10mbit", {rest} }}"#);
    let delay = r#"{ type = "delay", delay = "9ms" }"#;
    let cases = [
        (
            shaper(r#"queue = { type = "fifo", limit = "700ms" }"#),
            vec!["tbf"],
        ),
        (
            shaper(r#"queue = { type = "fifo", limit = "50kB" }"#),
            vec!["tbf"],
        ),
        (
            shaper(r#"queue = { type = "fifo", limit = "100p" }"#),
            vec!["tbf", "pfifo"],
        ),
        (
            shaper(r#"queue = { type = "codel", ecn = true }"#),
            vec!["tbf", "codel"],
        ),
        (
            shaper(r#"queue = { type = "fq_codel", flows = 64 }"#),
            vec!["tbf", "fq_codel"],
        ),
        (
            shaper(r#"burst = "100kB", peak_rate = "50mbit""#),
            vec!["tbf"],
        ),
        (
            shaper(r#"queue = { type = "fifo", limit = "9p", drop = "head" }"#),
            vec!["tbf", "pfifo_head_drop"],
        ),
        (
            shaper(r#"queue = { type = "red", ecn = true, harddrop = true }"#),
            vec!["tbf", "red"],
        ),
        (
            shaper(r#"queue = { type = "pie", ecn = true }"#),
            vec!["tbf", "pie"],
        ),
        (
            shaper(
                r#"framing = "pppoe-ptm", queue = { type = "cake", isolation = "dual-srchost", ack_filter = "ack-filter" }"#,
            ),
            vec!["cake"],
        ),
        (
            shaper(r#"queue = { type = "cake", tins = "besteffort", memory_limit = "1MB" }"#)
                + ", "
                + delay,
            vec!["netem", "cake"],
        ),
        (shaper(r#"framing = "pppoe-llcsnap""#), vec!["tbf"]),
        (shaper(r#"framing = "ethernet""#), vec!["tbf"]),
        (shaper(r#"framing = "overhead -20""#), vec!["tbf"]),
        (delay.to_owned(), vec!["netem"]),
        (
            r#"{ type = "gilbert_elliott", p = "1%", r = "25%", loss_good = "0.1%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "markov4", p13 = "1%", p31 = "30%", p14 = "2%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "duplicate", ratio = "1%" }, { type = "corrupt", ratio = "2%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "delay", delay = "9ms", jitter = "2ms", reordering = true, distribution = "pareto" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "loss", ratio = "0.1%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            shaper(r#"queue = { type = "fq_codel" }"#) + ", " + delay,
            vec!["netem", "tbf", "fq_codel"],
        ),
    ];
    let mut text = TWO.to_owned();
    for (number, (cells, _)) in cases.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{number}\"\nbetween = [\"client\", \"server\"]\nup = [{cells}]\n"
        );
    }
    let file = ScenarioFile::new(&text);
    file.run("kernel", &["true"]);
    let stats = file.stats();
    for (number, (cells, wanted)) in cases.iter().enumerate() {
        let ways = &stats.kernel[&format!("l{number}")];
        assert_eq!(&kinds(&ways[&Way::Up]), wanted, "{cells}");
        assert_eq!(kinds(&ways[&Way::Down]), ["noqueue"], "{cells}");
    }
    assert!(stats.links.is_empty(), "nothing is plumb's own");
}

/// Every scenario of plain links that comes with plumb either runs on the kernel, or names the cell
/// that cannot. Bridges, shared routes and multicast ask for modules that this machine is not given,
/// and have nothing to do with a backend.
#[test]
fn every_scenario_runs_or_says_why_not() {
    let mut ran = 0;
    for scenario in Scenario::built_in().unwrap() {
        let plain = scenario.lans.is_empty()
            && scenario.routes.is_empty()
            && scenario.multicasts.is_empty()
            && scenario
                .services
                .iter()
                .all(|s| s.run.get(1).is_some_and(|verb| verb == "serve"));
        if !plain {
            continue;
        }
        let name = scenario.name.as_str();
        let output = plumb(&["lab", "run", name, "--backend", "kernel", "--", "true"]);
        if output.status.success() {
            ran += 1;
        } else {
            assert_eq!(output.status.code(), Some(125));
            let said = stderr(&output);
            assert!(
                said.contains("cannot be the cell") && said.contains("--backend emulated"),
                "{name}: {said}"
            );
        }
    }
    assert!(ran >= 5, "only {ran} ran");
}

#[test]
fn home_cable_is_what_it_is_on_plumbs_own_links() {
    let text = Scenario::text("home-cable").unwrap()
        + "\n[[service]]\nnode = \"server\"\nrun = [\"iperf3\", \"--server\"]\nport = 5201\n";
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
            "iperf3 --json -C cubic -O 2 -t 6 -c server > /tmp/iperf & sleep 6; plumb ping --json -i 10ms -c 100 server; wait; echo; cat /tmp/iperf",
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
    let tbf = stats.kernel["line"][&Way::Up]
        .iter()
        .find(|q| q.kind == "tbf")
        .unwrap();
    assert!(tbf.bytes / tbf.packets <= 1518, "{tbf:?}");
    assert!(tbf.packets > 10_000, "{tbf:?}");
    assert_eq!(stats.kernel["line"][&Way::Up][0].kind, "netem");
}

/// The shape of `fibre` at a rate that this machine can do: a bandwidth-delay product of queue.
#[test]
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

/// `plumb lab impair` at work, ended when dropped.
struct Impairing {
    child: Child,
    said: Vec<String>,
}

impl Impairing {
    /// Returns when the interface is impaired.
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(PLUMB)
            .args(["lab", "impair"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            said.push(line.unwrap());
            if said.last().unwrap().contains("undone with") {
                break;
            }
        }
        let installed = said.last().is_some_and(|line| line.contains("undone with"));
        assert!(installed, "{said:?}");
        Self { child, said }
    }

    fn signal(&self, signal: &str) {
        kill(signal, self.child.id());
    }
}

impl Drop for Impairing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

fn root_of(device: &str) -> Qdisc {
    tc::qdiscs(device)
        .unwrap()
        .into_iter()
        .find(|q| q.root)
        .unwrap()
}

/// Waits until `device` has the kernel's own choice again.
fn until_undone(device: &str) {
    let started = Instant::now();
    while root_of(device).handle != "0:" {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{:?}",
            root_of(device)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ping_loopback(count: &str) -> Pinged {
    let output = plumb(&["ping", "--json", "-i", "1ms", "-c", count, "127.0.0.1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    Pinged::read(&stdout(&output))
}

fn refused(output: &Output, says: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        says.iter().all(|word| text.contains(word)),
        "{says:?} in: {text}"
    );
}

#[test]
fn impair_ends_after_its_time() {
    let before = root_of("lo");
    let started = Instant::now();
    let mut impairing = Impairing::start(&["lo", "delay", "10ms", "loss", "1%", "--for", "20s"]);
    assert!(
        impairing
            .said
            .iter()
            .any(|line| line.contains("netem limit")),
        "{:?}",
        impairing.said
    );
    // Each round trip passes the interface twice: once there, once back.
    let pinged = ping_loopback("5000");
    assert!((0.020..0.0203).contains(&pinged.rtt_s.p50), "{pinged:?}");
    assert!(
        expected(5000, 1.0 - 0.99 * 0.99).contains(&(pinged.lost() as f64)),
        "{pinged:?}"
    );
    // One at a time, and nobody else's.
    refused(
        &plumb(&["lab", "impair", "lo", "loss", "5%"]),
        &["already has", "netem"],
    );
    assert!(impairing.child.wait().unwrap().success());
    let lasted = started.elapsed().as_secs_f64();
    assert!((20.0..21.0).contains(&lasted), "{lasted}");
    assert_eq!(root_of("lo").kind, before.kind);
    assert!(ping_loopback("20").rtt_s.p50 < 0.001);
}

#[test]
fn impair_ends_with_a_signal_or_a_kill() {
    for (signal, status) in [
        ("-TERM", Some(143)),
        ("-INT", Some(130)),
        ("-HUP", Some(129)),
        ("-KILL", None),
    ] {
        let mut impairing =
            Impairing::start(&["lo", "delay", "10ms", "rate", "18mbit", "--for", "1h"]);
        assert_eq!(kinds(&tc::qdiscs("lo").unwrap()), ["netem", "tbf"]);
        impairing.signal(signal);
        assert_eq!(impairing.child.wait().unwrap().code(), status, "{signal}");
        if status.is_some() {
            assert_eq!(
                root_of("lo").handle,
                "0:",
                "{signal}: undone when it has ended"
            );
        }
        until_undone("lo");
    }
}

#[test]
fn impair_ends_with_its_guardian() {
    let mut impairing = Impairing::start(&["lo", "loss", "5%", "--for", "1h"]);
    let children = format!("/proc/{0}/task/{0}/children", impairing.child.id());
    let guardian: u32 = fs::read_to_string(children)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // A user's signal does not reach it.
    kill("-TERM", guardian);
    assert_eq!(root_of("lo").kind, "netem");
    kill("-KILL", guardian);
    assert_eq!(impairing.child.wait().unwrap().code(), Some(1));
    assert_eq!(root_of("lo").handle, "0:");
}

#[test]
fn impair_limits_a_rate() {
    let file = ScenarioFile::two("", "");
    let output = file.run(
        "emulated",
        &[
            "sh",
            "-c",
            "plumb lab impair line rate 10mbit delay 5ms --for 30s 2> /tmp/said & while ! grep -q 'undone with' /tmp/said; do sleep 0.1; done; iperf3 --json -C cubic -O 2 -t 6 -c server",
        ],
    );
    // Frames of 1514 bytes, as the kernel counts them.
    let (rate, line) = (received(&output), 10e6 * 1448.0 / 1514.0);
    println!("impaired: {rate:.0} bit/s of {line:.0}");
    assert!(
        (0.95 * line..1.01 * line).contains(&rate),
        "{rate} of {line}"
    );
}

/// Without the module, and with no way to load it.
#[test]
fn a_kernel_without_netem_is_told_apart() {
    const LOADER: &str = "/proc/sys/kernel/modprobe";
    let loader = fs::read_to_string(LOADER).unwrap();
    // Not there when no test before this one needed it.
    let _ = Command::new("modprobe")
        .args(["--remove", "sch_netem"])
        .output();
    fs::write(LOADER, "/bin/false").unwrap();
    let impair = plumb(&["lab", "impair", "lo", "delay", "10ms"]);
    let lab = plumb(&[
        "lab",
        "run",
        "home-cable",
        "--backend",
        "kernel",
        "--",
        "true",
    ]);
    fs::write(LOADER, loader).unwrap();
    refused(
        &impair,
        &["has no netem", "modprobe sch_netem", "nothing was changed"],
    );
    assert_eq!(lab.status.code(), Some(125));
    assert!(stderr(&lab).contains("has no netem"), "{}", stderr(&lab));
    assert_eq!(root_of("lo").handle, "0:");
}
