//! The plan of `plumb check --local`: this machine, its link, gateway and resolver, and no far end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumb_model::goal::Asked;
use plumb_net::netlink::interface_name;
use plumb_net::route::default_routes;

use crate::conductor::{Conducted, Conductor};
use crate::error::MeasureError;
use crate::gateway::AskGateway;
use crate::idle::IdlePath;
use crate::parts::Parts;
use crate::probes::Aim;
use crate::progress::Watcher;
use crate::record::Judgement;
use crate::resolver::Resolvers;
use crate::step::Step;
use crate::within::Within;

/// How long the gateway is probed, ten times a second: 200 probes bound a loss at 1.9 %.
const GATEWAY: Duration = Duration::from_secs(20);

/// How long the resolvers may take.
const RESOLVERS: Duration = Duration::from_secs(8);

/// Measures this machine (`host`), its gateway and its resolvers, for `time` at most.
///
/// # Errors
/// When it was stopped before anything was measured.
pub fn run(
    command: Vec<String>,
    asked: Asked,
    time: Duration,
    host: &mut dyn Step,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let [v4, v6] = default_routes().unwrap_or_default();
    let way = v4.as_ref().or(v6.as_ref());
    let gateway = way.and_then(|hop| hop.gateway);
    let until = Instant::now() + time;
    let mut conductor = match gateway {
        Some(gateway) => Conductor::towards(command, "this network", gateway, watcher, stop),
        None => Conductor::here(command, watcher, stop),
    };
    let ask_gateway = asked.gateway;
    conductor.asked(Some(Asked {
        local: true,
        ..asked
    }));
    conductor.session().deadline = Some(until);
    let mut parts = Parts::new([Duration::ZERO, GATEWAY, RESOLVERS], Some(until), watcher);
    parts.begin();
    conductor.step(host, 0);
    match (&way, gateway) {
        (Some(hop), Some(gateway)) => {
            let by = interface_name(hop.interface).unwrap_or_else(|_| "an interface".to_owned());
            conductor.note(format!("The default route leads over {by} to {gateway}."));
            if ask_gateway {
                let towards = gateway;
                conductor.step(&mut AskGateway { towards }, 0);
            }
            let aim = Aim {
                name: "the gateway".to_owned(),
                address: SocketAddr::new(gateway, 0),
                echoes: false,
                classes: Vec::new(),
                places: Vec::new(),
            };
            let mut idle = IdlePath::of_far_end(aim).lasting(GATEWAY.min(time / 2));
            parts.begin();
            conductor.step(&mut idle, 0);
        }
        (Some(_), None) => {
            conductor.note("The default route has no gateway: this link leads out itself.");
        }
        (None, _) => {
            conductor.note("There is no default route: nothing beyond this network is reached.");
        }
    }
    if v4.is_none() != v6.is_none() {
        let (has, lacks) = match v4 {
            Some(_) => ("IPv4", "IPv6"),
            None => ("IPv6", "IPv4"),
        };
        conductor.note(format!("There is a route for {has} and none for {lacks}."));
    }
    let step = &mut Resolvers;
    let time = RESOLVERS;
    parts.begin();
    conductor.step(&mut Within { step, time }, 0);
    let mut conducted = conductor.finish(Judgement::Part)?;
    let run = &mut conducted.run;
    let verdict = plumb_diagnose::local(run);
    run.verdict = Some(verdict);
    Ok(conducted)
}
