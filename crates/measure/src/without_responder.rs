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
    conductor.step(&mut idle, 0);
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
        return Err(match stopped {
            true => MeasureError::Cancelled,
            false => MeasureError::Silence {
                name: name.to_owned(),
                tried: match privilege::may_echo(address.is_ipv4()) {
                    true => "ICMP or TCP ports 443 and 80".to_owned(),
                    // What was not sent was not left unanswered.
                    false => "TCP ports 443 and 80".to_owned(),
                },
                notes: conducted.run.notes.join(" "),
            },
        });
    }
    if let Some(verdict) = &mut conducted.run.verdict {
        plumb_diagnose::without_responder(verdict, name);
    }
    Ok(conducted)
}
