//! The plan of `plumb check` without a responder: what any host lets be measured, and what is missing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumb_model::distribution::Distribution;
use plumb_model::results::{Outcome, PortResult};
use plumb_model::run::Measurement;
use plumb_net::tcp::TcpOptions;
use plumb_net::{clock, tcp};

use crate::conductor::{Conducted, Conductor};
use crate::error::MeasureError;
use crate::idle::IdlePath;
use crate::probes::Aim;
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Ports that hosts are likely to answer on: HTTPS and HTTP.
const PORTS: [u16; 2] = [443, 80];

/// Connections to each: enough for a median.
const CONNECTS: u64 = 5;

/// Time for a connection: the first two retransmissions of its SYN (1 s, 2 s) fall within.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Measures idle latency, connects, and whatever else needs no responder (`idle_steps`); `why` is why there is none.
///
/// # Errors
/// When nothing at all came back.
pub fn run(
    command: Vec<String>,
    name: &str,
    address: SocketAddr,
    why: &str,
    idle_steps: &mut [&mut dyn Step],
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let mut conductor = Conductor::towards(command, name, address.ip(), watcher, stop);
    conductor.note(format!("No responder: {why}."));
    conductor.note(
        "Without a responder neither rates, nor latency under load, nor buffers could be measured. To measure them, run \
         `plumb serve` on a machine at the far end (it opens TCP and UDP port 7586) and check that machine.",
    );
    let mut idle = IdlePath::of_far_end(Aim {
        name: name.to_owned(),
        address,
        echoes: false,
        classes: Vec::new(),
        places: Vec::new(),
    });
    conductor.step(&mut idle, 0);
    for port in PORTS {
        conductor.step(&mut Connects { address, port }, 0);
    }
    conductor.conduct(
        idle_steps
            .iter_mut()
            .map(|step| &mut **step as &mut dyn Step),
        0,
    );
    let stopped = conductor.session().is_stopped();
    if stopped {
        conductor.note("The check was stopped before its end.");
    }
    let background = conductor.session().background.as_ref();
    let idle = background.and_then(|background| background.idle.as_ref());
    let answered = idle.is_some_and(|idle| idle.main.is_some());
    let measured = &conductor.run().measurements;
    let connects =
        |m: &Measurement| matches!(&m.outcome, Outcome::Port(port) if port.connected > 0);
    let answered = answered || measured.iter().any(connects);
    let mut conducted = conductor.finish(Judgement::Whole)?;
    if !answered {
        return Err(match stopped {
            true => MeasureError::Cancelled,
            false => MeasureError::Silence {
                name: name.to_owned(),
                tried: "ICMP or TCP ports 443 and 80".to_owned(),
                notes: conducted.run.notes.join(" "),
            },
        });
    }
    if let Some(verdict) = &mut conducted.run.verdict {
        plumb_diagnose::without_responder(verdict, name);
    }
    Ok(conducted)
}

/// A few connections to a port, one after the other.
struct Connects {
    address: SocketAddr,
    port: u16,
}

impl Step for Connects {
    fn name(&self) -> String {
        format!("TCP port {}", self.port)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let what = format!("connecting to TCP port {}", self.port);
        session.watcher.step(&what, CONNECT_TIMEOUT);
        let started_ns = clock::monotonic_ns();
        let mut address = self.address;
        address.set_port(self.port);
        let outcome = Outcome::Port(Box::new(connect(address)));
        Ok(Yield::of(Measured::until_now(started_ns, outcome)))
    }
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
