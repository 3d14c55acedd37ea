//! `plumb check` without a responder: what any host lets be measured, and what is missing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_model::distribution::Distribution;
use plumb_model::finding::Verdict;
use plumb_model::results::{Outcome, PortResult};
use plumb_model::run::Run;
use plumb_net::tcp::TcpOptions;
use plumb_net::{clock, tcp};

use crate::assembly::{Assembly, Measured};
use crate::error::CheckError;
use crate::probes::{Aim, Probes, Window};
use crate::watcher::Watcher;

/// How long ICMP is watched.
const WATCH: Duration = Duration::from_secs(5);

/// Ports that hosts are likely to answer on: HTTPS and HTTP.
const PORTS: [u16; 2] = [443, 80];

/// Connections to each: enough for a median.
const CONNECTS: u64 = 5;

/// Time for a connection: the first two retransmissions of its SYN (1 s, 2 s) fall within.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Measures idle latency and connects; `why` is why there is no responder.
///
/// # Errors
/// When nothing at all came back.
pub fn run(
    command: Vec<String>,
    name: &str,
    address: SocketAddr,
    why: &str,
    watcher: &dyn Watcher,
    cancel: &Arc<AtomicBool>,
) -> Result<Run, CheckError> {
    let mut assembly = Assembly::begin(command, name, address.ip());
    assembly.note(format!("No responder: {why}."));
    assembly.note(
        "Without a responder neither rates, nor latency under load, nor buffers could be measured. To measure them, run \
         `plumb serve` on a machine at the far end (it opens TCP and UDP port 7586) and check that machine.",
    );
    watcher.step("idle", WATCH);
    let stop = Arc::new(AtomicBool::new(false));
    let started = clock::monotonic_ns();
    let aim = Aim {
        name: name.to_owned(),
        address,
        echoes: false,
        classes: Vec::new(),
        places: Vec::new(),
    };
    let probes = Probes::start(&aim, &stop);
    for note in &probes.notes {
        assembly.note(note);
    }
    let end = Instant::now() + WATCH;
    while !probes.is_empty() && Instant::now() < end && !cancel.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(50));
    }
    let window = Window::until_now(started);
    let logs = probes.finish();
    for note in logs.notes() {
        assembly.note(note);
    }
    let mut answered = logs.record_ping(&mut assembly, window, "idle");
    for port in PORTS {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        watcher.step(&format!("connecting to TCP port {port}"), CONNECT_TIMEOUT);
        let started_ns = clock::monotonic_ns();
        let mut address = address;
        address.set_port(port);
        let result = connect(address);
        answered |= result.connected > 0;
        assembly.add(Measured {
            started_ns,
            duration_s: Window::until_now(started_ns).seconds(),
            params: serde_json::Map::new(),
            outcome: Outcome::Port(Box::new(result)),
            series: Default::default(),
        });
    }
    if cancel.load(Ordering::Relaxed) {
        if !answered {
            return Err(CheckError::Cancelled);
        }
        assembly.note("The check was stopped before its end.");
    }
    if !answered {
        return Err(CheckError::Silence {
            name: name.to_owned(),
            tried: "ICMP or TCP ports 443 and 80".to_owned(),
            notes: assembly.finish().notes.join(" "),
        });
    }
    let headline = format!(
        "{name} answers; what holds the path back could not be measured without a responder at the far end."
    );
    let mut run = assembly.with_findings();
    run.verdict.get_or_insert(Verdict {
        headline,
        grade: None,
    });
    Ok(run)
}

fn connect(address: SocketAddr) -> PortResult {
    let mut times = Vec::new();
    let mut error = None;
    let mut tried = 0;
    while tried < CONNECTS {
        tried += 1;
        let started = Instant::now();
        match tcp::connect(address, CONNECT_TIMEOUT, &TcpOptions::default()) {
            Ok(_) => times.push(started.elapsed().as_secs_f64()),
            Err(e) => {
                error = Some(e.to_string());
                break;
            }
        }
    }
    PortResult {
        address: address.ip().to_string(),
        port: address.port(),
        tried,
        connected: times.len() as u64,
        connect_s: Distribution::of(times),
        error,
        ..PortResult::default()
    }
}
