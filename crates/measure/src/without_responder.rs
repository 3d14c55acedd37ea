//! The plan of `plumb check` without a responder: what any host lets be measured, and what is missing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumb_model::goal::Asked;
use plumb_net::privilege;

use crate::conductor::{Conducted, Conductor};
use crate::connects::{self, Connects};
use crate::error::MeasureError;
use crate::idle::IdlePath;
use crate::parts::Parts;
use crate::probes::Aim;
use crate::progress::Watcher;
use crate::record::Judgement;
use crate::step::Step;

/// Ports that hosts are likely to answer on: HTTPS and HTTP.
const PORTS: [u16; 2] = [443, 80];

/// What is checked of a far end without a responder.
pub struct Plan<'a> {
    pub command: Vec<String>,
    /// The far end as the user typed it.
    pub name: &'a str,
    pub address: SocketAddr,
    /// Why there is no responder.
    pub why: &'a str,
    pub asked: Asked,
    /// How long the idle path is watched.
    pub idle: Duration,
    /// When all of it has to be over.
    pub until: Instant,
}

/// Measures idle latency, connects, and whatever else needs no responder (`steps`).
///
/// # Errors
/// When nothing at all came back.
pub fn run(
    plan: Plan<'_>,
    steps: Vec<&mut dyn Step>,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let Plan {
        name, address, why, ..
    } = plan;
    let mut conductor = Conductor::towards(plan.command, name, address.ip(), watcher, stop);
    conductor.asked(Some(plan.asked));
    conductor.session().deadline = Some(plan.until);
    conductor.note(format!("No responder: {why}."));
    conductor.note(
        "Without a responder neither rates, nor latency under load, nor buffers could be measured. To measure them, run \
         `plumb serve` on a machine at the far end (it opens TCP and UDP port 7586) and check that machine. `plumb explain far-end` shows the shortest ways to one.",
    );
    let mut idle = IdlePath::of_far_end(Aim {
        name: name.to_owned(),
        address,
        echoes: false,
        classes: Vec::new(),
        places: Vec::new(),
    })
    .lasting(plan.idle);
    // The idle path, connections, and all other steps.
    let lasting = [plan.idle, Duration::ZERO, Duration::ZERO];
    let mut parts = Parts::new(lasting, Some(plan.until), watcher);
    parts.begin();
    let noted = conductor.run().notes.len();
    conductor.step(&mut idle, 0);
    // Such as an error of a router, or of this host.
    let seen = conductor
        .run()
        .notes
        .get(noted..)
        .unwrap_or_default()
        .join(" ");
    parts.begin();
    for port in PORTS {
        let mut address = address;
        address.set_port(port);
        conductor.step(&mut Connects::to(address), 0);
    }
    parts.begin();
    conductor.conduct(steps, 0);
    let stopped = conductor.session().is_stopped();
    if stopped {
        conductor.note("The check was stopped before its end.");
    }
    let background = conductor.session().background.as_ref();
    let idle = background.and_then(|background| background.idle.as_ref());
    let answered = idle.is_some_and(|idle| idle.main.is_some());
    let answered = answered || connects::answered(conductor.run(), address.ip());
    let mut conducted = conductor.finish(Judgement::Whole)?;
    if !answered {
        let seen = match seen.is_empty() {
            true => seen,
            false => format!(" {seen}"),
        };
        return Err(match stopped {
            true => MeasureError::Cancelled,
            false => MeasureError::NobodyThere {
                name: name.to_owned(),
                tried: tried(address),
                seen,
            },
        });
    }
    if let Some(verdict) = &mut conducted.run.verdict {
        plumb_diagnose::without_responder(verdict, name);
    }
    Ok(conducted)
}

/// What was sent to find whether anybody is there.
fn tried(address: SocketAddr) -> String {
    // What was not sent was not left unanswered.
    let echo = match privilege::may_echo(address.is_ipv4()) {
        true => "ICMP echo, ",
        false => "",
    };
    let [https, http] = PORTS;
    let responder = match address.port() {
        0 => plumb_wire::native::spec::PORT,
        port => port,
    };
    format!("{echo}TCP ports {responder} (plumb serve), {https} and {http}")
}
