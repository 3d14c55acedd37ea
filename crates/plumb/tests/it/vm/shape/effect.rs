//! What a shaper does to traffic: a sparse flow waits for nobody, two hosts have half each, and nothing is lost when it comes
//! and goes.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Home, LINE, Node, SERVER, SERVER_V6, command, run, shell};
use crate::common::{PLUMB, stderr, stdout};
use crate::vm::network::Pinged;

/// The rate of both directions.
const MBIT: &str = "20mbit";
/// What the issue allows: CoDel's target, and a packet of 1538 bytes on the line, in seconds.
const ADDED_S: f64 = 0.005 + 1538.0 * 8.0 / 20e6;
/// Seconds that greedy flows run.
const LOADED: &str = "12";
/// How often each is done whose losses are compared, and how much later than the last time it begins each time: the machine's clock
/// counts instructions, so that it would meet the probes, one a millisecond, at the same moment every time.
const ROUNDS: u32 = 4;
const LATER: Duration = Duration::from_micros(250);

/// A process that ends with this.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(node: &Node, program: &str, arguments: &[&str]) -> Running {
    let mut command = command(node, program, arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    Running(child.unwrap())
}

/// A server for each host, so that each has its own.
pub(super) fn servers(home: &Home) -> [Running; 2] {
    let servers = ["5201", "5202"].map(|port| start(&home.server, "iperf3", &["-s", "-p", port]));
    std::thread::sleep(Duration::from_millis(500));
    servers
}

/// Greedy flows of a host, for so many seconds and two more.
pub(super) fn greedy(
    home: &Home,
    host: usize,
    seconds: &str,
    streams: &str,
    more: &[&str],
) -> Running {
    let port = ["5201", "5202"][host];
    let arguments = [
        "--json", "-C", "cubic", "-O", "2", "-c", SERVER, "-t", seconds, "-p", port, "-P", streams,
    ];
    start(&home.hosts[host], "iperf3", &[&arguments, more].concat())
}

pub(super) fn received(running: Running) -> f64 {
    let mut running = running;
    let mut text = String::new();
    let mut out = running.0.stdout.take().unwrap();
    out.read_to_string(&mut text).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    report["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap_or_else(|| panic!("{report}"))
}

fn ping(node: &Node, to: &str, count: &str) -> Pinged {
    let arguments = ["ping", "--json", "-i", "10ms", "-c", count, to];
    let output = command(node, PLUMB, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    Pinged::read(&stdout(&output))
}

#[test]
#[ignore = "runs in the virtual machine"]
fn a_sparse_flow_waits_for_nobody_and_two_hosts_have_half_each() {
    let home = Home::new();
    let _servers = servers(&home);
    // As far as a server in the same town: over no distance at all TCP loses one packet in sixteen to a queue of 5 ms, and
    // CAKE counts what it drops of what came in.
    run(
        &home.server,
        "tc",
        &[
            "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "10ms",
        ],
    );
    for scheme in ["cake", "htb"] {
        for (direction, more) in [("up", &[][..]), ("down", &["-R"])] {
            home.shape(&[
                "--up",
                MBIT,
                "--down",
                MBIT,
                "--framing",
                "ethernet",
                "--scheme",
                scheme,
            ]);
            let idle = ping(&home.hosts[0], SERVER, "100").rtt_s.p50;
            // One host is greedier than the other, and the sparse flows are of both.
            let both = [
                greedy(&home, 0, LOADED, "4", more),
                greedy(&home, 1, LOADED, "1", more),
            ];
            std::thread::sleep(Duration::from_secs(4));
            let pinged = [
                ping(&home.hosts[0], SERVER, "250"),
                ping(&home.hosts[1], SERVER_V6, "250"),
            ];
            let status = stdout(&home.plumb(&["shape", "status", LINE]));
            let rates = both.map(received);
            let share = rates[0] / (rates[0] + rates[1]);
            let goodput = (rates[0] + rates[1]) / 20e6;
            let added = pinged.each_ref().map(|p| p.rtt_s.p99 - idle);
            println!(
                "\nshape {scheme} {direction}: idle {idle:.6} s, added p50 {:.6} and {:.6} s, p99 {:.6} and {:.6} s, share {share:.3}, goodput {goodput:.3}\n{status}",
                pinged[0].rtt_s.p50 - idle,
                pinged[1].rtt_s.p50 - idle,
                added[0],
                added[1],
            );
            for added in added {
                assert!(added <= ADDED_S, "{scheme} {direction}: {added} s");
            }
            assert!(
                (0.45..=0.55).contains(&share),
                "{scheme} {direction}: {share}"
            );
            // Of 1538 bytes on the line 1448 are payload: the rate is used and not exceeded.
            let most = 1448.0 / 1538.0;
            assert!(
                (0.93 * most..=most * 1.005).contains(&goodput),
                "{scheme} {direction}: {goodput}"
            );
            home.undo();
        }
    }
}

/// Packets, one a millisecond, that are lost while something is done in that round.
fn lost_while(home: &Home, round: u32, done: impl FnOnce()) -> u64 {
    let arguments = ["ping", "--json", "-q", "-i", "1ms", "-c", "100000", SERVER];
    let mut pinging = command(&home.hosts[0], PLUMB, &arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500) + round * LATER);
    done();
    std::thread::sleep(Duration::from_millis(100));
    let pid = pinging.id().to_string();
    let told = Command::new("kill").args(["-INT", &pid]).status();
    assert!(told.unwrap().success());
    let mut text = String::new();
    let mut out = pinging.stdout.take().unwrap();
    out.read_to_string(&mut text).unwrap();
    pinging.wait().unwrap();
    let pinged = Pinged::read(&text);
    // Before, after, and all the while.
    assert!(pinged.sent >= 600, "{} sent", pinged.sent);
    pinged.lost()
}

/// The kernel drops what comes while it exchanges what is at the root of a device, a millisecond or two, whoever asks for it. So plumb may
/// lose what tc loses that does the same with the same plan: one more each time that it applies or undoes, because a gap as long as
/// another takes a packet more when it begins just before one.
#[test]
#[ignore = "runs in the virtual machine"]
fn packets_pass_at_every_step() {
    let home = Home::new();
    for scheme in ["cake", "htb"] {
        let options = ["--up", MBIT, "--down", MBIT, "--scheme", scheme];
        let plan = home.plumb(&[&["shape", "plan", LINE, "--json"], &options[..]].concat());
        let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
        let by_tc = |key: &str| {
            for line in plan[key].as_array().unwrap() {
                shell(&home.router, line.as_str().unwrap());
            }
        };
        let mut lost = [[0; 2]; 2];
        for round in 0..ROUNDS {
            lost[0][0] += lost_while(&home, round, || by_tc("commands"));
            lost[0][1] += lost_while(&home, round, || by_tc("undo"));
            lost[1][0] += lost_while(&home, round, || home.shape(&options));
            lost[1][1] += lost_while(&home, round, || drop(home.undo()));
        }
        println!(
            "\nshape {scheme}: lost by {ROUNDS} times applying and undoing: {:?} by tc, {:?} by plumb",
            lost[0], lost[1]
        );
        let [tc, plumb] = lost.map(|lost| lost[0] + lost[1]);
        let most = tc + u64::from(2 * ROUNDS);
        assert!(plumb <= most, "{scheme}: {plumb} lost, and {tc} by tc");
    }
}
