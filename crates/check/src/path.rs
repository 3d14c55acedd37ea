//! `plumb path`: the way that packets take, once or for as long as wanted.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_model::results::Outcome;
use plumb_model::results::path::{MapPlace, Multipath, PathDistance, PathResult};
use plumb_model::run::Run;
use plumb_model::units::human_seconds;
use plumb_net::clock;
use plumb_probe::path::atlas::{self, Atlas};
use plumb_probe::path::multipath::{self, MultipathPlan};
use plumb_probe::path::names::Names;
use plumb_probe::path::trace::{self, TraceLog, TracePlan};
use plumb_probe::path::{Access, HopNetwork, OpenError, Opened, Protocol, Target, UDP_PORT, open};

use crate::assembly::{Assembly, Measured};
use crate::error::CheckError;
use crate::watcher::Watcher;

/// What looks for names waits for at most so long after the trace; they are looked up while it runs.
const NAMES_WAIT: Duration = Duration::from_millis(500);

/// What is wanted of a path.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Where to.
    pub target: Target,
    /// What probes are made of; when absent, what gets through.
    pub protocol: Option<Protocol>,
    /// How to trace.
    pub plan: TracePlan,
    /// How sure to be that all ways are found, 0…1, where they are wanted.
    pub all_paths: Option<f64>,
    /// Whether names are looked up.
    pub names: bool,
    /// Networks and places.
    pub atlas: Option<Atlas>,
    /// Where this host is, when it is not to be looked up by its address.
    pub here: Option<MapPlace>,
}

/// Traces until the plan is fulfilled or `stop` is set; `show` is given what is known so far.
///
/// # Errors
/// When the path cannot be explored, or nobody answered.
pub fn run(
    command: Vec<String>,
    wanted: &Wanted,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
    show: &mut dyn FnMut(&TraceLog, &Names),
) -> Result<Run, CheckError> {
    let mut assembly = Assembly::begin(command, &wanted.target.name, wanted.target.address.ip());
    watcher.step(
        &format!("tracing the path to {}", wanted.target.name),
        Duration::ZERO,
    );
    let names = Names::new(wanted.names);
    let mut look = |log: &TraceLog| {
        if let Some(address) = log.latest {
            names.ask(address);
        }
        show(log, &names);
    };
    let (protocol, access, log) = trace_what_gets_through(wanted, stop, &mut look)?;
    for note in log.notes.iter().map(String::as_str).chain(access.missing()) {
        assembly.note(note);
    }
    let mut result = log.result(protocol);
    if let Some(confidence) = wanted.all_paths {
        watcher.step("looking for all ways", Duration::ZERO);
        result.multipath = all_ways(wanted, protocol, confidence, stop, &mut assembly)?;
    }
    if result.hops.iter().all(|hop| hop.received == 0) {
        let tried = format!(
            "{} probes of any hop count",
            result.protocol.name().to_uppercase()
        );
        return Err(CheckError::Silence {
            name: wanted.target.name.clone(),
            tried,
            notes: log.notes.join(" "),
        });
    }
    names.wait(NAMES_WAIT);
    describe(&mut result, wanted, &names);
    tell_times(&mut result, log.started_ns);
    if let Some(note) = result.distance.as_ref().and_then(impossible) {
        assembly.note(note);
    }
    let mut params = serde_json::Map::new();
    params.insert(
        "interval_s".to_owned(),
        wanted.plan.interval.as_secs_f64().into(),
    );
    params.insert("max_hops".to_owned(), wanted.plan.last_hop.into());
    assembly.add(Measured {
        started_ns: log.started_ns,
        duration_s: log.ended_ns.saturating_sub(log.started_ns) as f64 / 1e9,
        params,
        outcome: Outcome::Path(Box::new(result)),
        series: log.series(),
    });
    Ok(assembly.with_findings())
}

/// Traces by the protocol that was asked for, or by each in turn until the target answers: ICMP,
/// TCP to 443 and 80, UDP. What led furthest counts where none does.
fn trace_what_gets_through(
    wanted: &Wanted,
    stop: &AtomicBool,
    look: &mut dyn FnMut(&TraceLog),
) -> Result<(Protocol, Access, TraceLog), CheckError> {
    let automatic = [
        Protocol::Icmp,
        Protocol::Tcp { port: 443 },
        Protocol::Tcp { port: 80 },
        Protocol::Udp { port: UDP_PORT },
    ];
    let protocols = match &wanted.protocol {
        Some(protocol) => std::slice::from_ref(protocol),
        None => automatic.as_slice(),
    };
    let mut best: Option<(Protocol, Access, TraceLog)> = None;
    let mut refused: Option<OpenError> = None;
    for protocol in protocols {
        let mut network = match open(&wanted.target, *protocol) {
            Ok(network) => network,
            Err(error @ (OpenError::Icmp { .. } | OpenError::TcpNeedsRaw { .. })) => {
                refused = refused.or(Some(error));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let access = network.access();
        // An endless trace does not go on to the next by itself: one cycle tells whether it gets through.
        let endless_try = wanted.protocol.is_none() && wanted.plan.cycles.is_none();
        if endless_try && !gets_through(&mut network, wanted, stop) {
            let last = protocols.last() == Some(protocol);
            if !last {
                continue;
            }
        }
        let log = trace_by(&mut network, *protocol, wanted, stop, look);
        let (reached, furthest) = log.reach();
        if reached || wanted.plan.cycles.is_none() {
            return Ok((*protocol, access, log));
        }
        let further = best.as_ref().is_none_or(|best| best.2.reach().1 < furthest);
        if further {
            best = Some((*protocol, access, log));
        }
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    match (best, refused) {
        (Some(best), _) => Ok(best),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(CheckError::Cancelled),
    }
}

/// All ways. ICMP has no ports, and many routers look at nothing else of it but the addresses: UDP
/// takes its place.
fn all_ways(
    wanted: &Wanted,
    protocol: Protocol,
    confidence: f64,
    stop: &AtomicBool,
    assembly: &mut Assembly,
) -> Result<Option<Multipath>, CheckError> {
    let protocol = match (protocol, wanted.protocol) {
        (Protocol::Icmp, None) => Protocol::Udp { port: UDP_PORT },
        (protocol, _) => protocol,
    };
    let mut network = open(&wanted.target, protocol)?;
    if network.access() != Access::Raw {
        assembly.note(
            "Without CAP_NET_RAW there is one flow, and so one way: all ways were not looked for.",
        );
        return Ok(None);
    }
    let plan = MultipathPlan {
        target: wanted.target.address.ip(),
        last_hop: wanted.plan.last_hop,
        confidence,
        timeout: wanted.plan.timeout.min(Duration::from_secs(1)),
    };
    Ok(Some(multipath::search(&mut network, &plan, stop)))
}

fn gets_through(network: &mut Opened, wanted: &Wanted, stop: &AtomicBool) -> bool {
    let mut plan = wanted.plan.clone();
    plan.cycles = Some(1);
    plan.inspect = false;
    trace::run(network, plan, stop, &mut |_| {}).reach().0
}

fn trace_by(
    network: &mut impl HopNetwork,
    protocol: Protocol,
    wanted: &Wanted,
    stop: &AtomicBool,
    look: &mut dyn FnMut(&TraceLog),
) -> TraceLog {
    let mut plan = wanted.plan.clone();
    // The target needs a round trip to forget a connection that was reset.
    let fast = plan.interval < Duration::from_secs(1);
    plan.flow_per_cycle = fast && matches!(protocol, Protocol::Tcp { .. });
    trace::run(network, plan, stop, look)
}

/// Names, networks and places.
fn describe(result: &mut PathResult, wanted: &Wanted, names: &Names) {
    for hop in &mut result.hops {
        let address: Option<IpAddr> = hop.address.as_deref().and_then(|a| a.parse().ok());
        let Some(address) = address else { continue };
        hop.name = names.get(address);
        if let Some(entry) = wanted
            .atlas
            .as_ref()
            .and_then(|atlas| atlas.look_up(address))
        {
            hop.asn = Some(entry.asn);
            hop.as_name = Some(entry.name.clone());
            hop.place = entry.place;
        }
    }
    result.distance = atlas::distance(&result.hops, wanted.here);
}

/// What a round trip that light could not make says of the places.
fn impossible(distance: &PathDistance) -> Option<String> {
    let rtt_s = distance
        .rtt_s
        .filter(|rtt_s| *rtt_s < distance.light_rtt_s)?;
    Some(format!(
        "A round trip of {} is less than light in fibre takes over the known places ({}): the database is wrong about one of them.",
        human_seconds(rtt_s),
        human_seconds(distance.light_rtt_s)
    ))
}

fn tell_times(result: &mut PathResult, started_ns: u64) {
    let began = i128::from(started_ns) + i128::from(clock::apart_ns());
    let Ok(began) = Timestamp::from_nanosecond(began) else {
        return;
    };
    for change in &mut result.changes {
        let since = SignedDuration::try_from_secs_f64(change.at_s).ok();
        change.time = since
            .and_then(|since| began.checked_add(since).ok())
            .map(|time| format!("{time:.3}"));
    }
}
