//! `plumb lab impair`: it does what it says to an interface, and undoes it however it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use plumb_net::tc::{self, Qdisc};

use super::network::{Pinged, ScenarioFile, expected, kinds, received};
use crate::common::{PLUMB, plumb, stderr, stdout};

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
#[ignore = "runs in the virtual machine"]
fn ends_after_its_time() {
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
#[ignore = "runs in the virtual machine"]
fn ends_with_a_signal_or_a_kill() {
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
#[ignore = "runs in the virtual machine"]
fn ends_with_its_guardian() {
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
#[ignore = "runs in the virtual machine"]
fn limits_a_rate() {
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
#[ignore = "runs in the virtual machine"]
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
