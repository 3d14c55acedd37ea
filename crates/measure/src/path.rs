//! `plumb path`: the path that packets take, once or for as long as wanted, and the reverse path where a responder
//! reports it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_model::results::Outcome;
use plumb_model::results::path::{Multipath, PathDistance, PathHop, PathResult};
use plumb_model::units::human_seconds;
use plumb_net::clock;
use plumb_net::egress::source_towards;
use plumb_probe::path::atlas::{self};
use plumb_probe::path::marks::between_ends;
use plumb_probe::path::multipath::{self, MultipathPlan};
use plumb_probe::path::names::Names;
use plumb_probe::path::networks;
use plumb_probe::path::symmetry::symmetry;
use plumb_probe::path::through::{Through, trace_what_gets_through};
use plumb_probe::path::trace::TraceLog;
use plumb_probe::path::{Access, ProtocolAndPort, Target, UDP_PORT, open};

use crate::error::MeasureError;
use crate::progress::Watcher;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::tunnel;
use crate::yields::Yield;

mod reverse_path;
mod wanted;

use reverse_path::{Asking, Heard};
pub use wanted::{Back, Wanted};

/// What looks for names waits for at most so long after the trace; they are looked up while it runs.
const NAMES_WAIT: Duration = Duration::from_millis(500);

/// Who is shown the trace as it goes.
pub type Show<'a> = &'a mut dyn FnMut(&TraceLog, &Names);

/// The hops of a path, and of the reverse path where a responder traces it.
pub struct Hops<'a> {
    pub wanted: &'a Wanted,
    /// Who is shown the trace as it goes.
    pub show: Show<'a>,
}

impl Step for Hops<'_> {
    fn name(&self) -> String {
        format!("the path to {}", self.wanted.target.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        trace(self.wanted, session.watcher, &session.stop, self.show)
    }
}

fn trace(
    wanted: &Wanted,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
    show: Show<'_>,
) -> Result<Yield, MeasureError> {
    let mut out = Yield::default();
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
    let asking = Asking::begin(wanted);
    let through = trace_what_gets_through(
        &wanted.target,
        &protocols(wanted),
        &wanted.plan,
        stop,
        &mut look,
    )?;
    let Some(Through {
        protocol,
        access,
        log,
    }) = through
    else {
        return Err(MeasureError::Cancelled);
    };
    for note in log.notes.iter().cloned().chain(access.missing()) {
        out.note(note);
    }
    if let Some(hint) = tunnel::hint(wanted.target.address.ip(), &wanted.target.outlet) {
        out.note(hint);
    }
    let mut result = log.result(protocol);
    name_this_host(&mut result, &wanted.target);
    if let Some(confidence) = wanted.all_paths {
        watcher.step("looking for all paths", Duration::ZERO);
        result.multipath = all_ways(wanted, protocol, confidence, stop, &mut out)?;
    }
    if result.hops.iter().all(|hop| hop.received == 0) {
        let tried = format!(
            "{} probes of any hop count",
            result.protocol.name().to_uppercase()
        );
        return Err(MeasureError::Silence {
            name: wanted.target.name.clone(),
            tried,
            notes: log.notes.join(" "),
        });
    }
    let mut no_reverse_path = None;
    // It was traced while the trace began. Where the route changed since, it is asked for anew.
    let changed = !result.changes.is_empty();
    let again = (changed && !stop.load(Ordering::Relaxed))
        .then(|| Asking::begin(wanted))
        .flatten();
    let of_old_route = changed && again.is_none();
    if let Some(asking) = again.or(asking) {
        watcher.step("the reverse path", Duration::ZERO);
        match asking.learn(slowest(&log), stop) {
            Ok(Some(heard)) => {
                add_reverse_path(&mut result, heard, &names, &mut out);
                if of_old_route {
                    out.note("The reverse path was traced before the route changed, so the forward path is not compared with it.");
                } else {
                    compare(&mut result);
                }
            }
            Ok(None) if matches!(wanted.back, Back::Required(_)) => {
                no_reverse_path = Some("stopped before a responder had reported it".to_owned());
            }
            Ok(None) => {}
            Err(error) => no_reverse_path = Some(error.to_string()),
        }
    }
    if (wanted.has_responder || result.way_back.is_some()) && !stop.load(Ordering::Relaxed) {
        watcher.step("marks of packets between both ends", Duration::ZERO);
        // A responder need not have a reflector, and without one nothing is known.
        result.marks = between_ends(&wanted.target, slowest(&log), stop).unwrap_or_default();
    }
    if let Some(why) = &no_reverse_path {
        out.note(format!("The reverse path is unknown: {why}."));
    }
    names.wait(NAMES_WAIT);
    describe(&mut result, wanted, &names, &mut out);
    tell_times(&mut result, log.started_ns);
    if let Some(note) = result.distance.as_ref().and_then(impossible) {
        out.note(note);
    }
    let duration_s = log.ended_ns.saturating_sub(log.started_ns) as f64 / 1e9;
    let outcome = Outcome::Path(Box::new(result));
    let measured = Measured::of(log.started_ns, duration_s, outcome)
        .set("interval_s", wanted.plan.interval.as_secs_f64())
        .set("max_hops", wanted.plan.last_hop)
        .with_series(log.series());
    out.add(measured);
    out.shortfall = no_reverse_path
        .filter(|_| matches!(wanted.back, Back::Required(_)))
        .map(|why| MeasureError::ReversePath { why });
    Ok(out)
}

/// Where the kernel here could not send a probe on, it marks it itself (net/ipv4/arp.c, arp_error_report): that
/// is no router.
fn name_this_host(result: &mut PathResult, target: &Target) {
    let Ok(own) = source_towards(target.address, &target.outlet) else {
        return;
    };
    let own_marks = |hop: &&mut PathHop| hop.annotation.is_some() && address_of(hop) == Some(own);
    for hop in result.hops.iter_mut().filter(own_marks) {
        hop.this_host = own != target.address.ip();
        if hop.this_host {
            hop.notes.push(
                "this host itself says so: the next hop does not answer to its address (ARP, neighbour \
                 discovery)"
                    .to_owned(),
            );
        }
    }
}

/// By the protocol that was asked for, or by each in turn until the target answers: ICMP, TCP to 443 and
/// 80, UDP.
fn protocols(wanted: &Wanted) -> Vec<ProtocolAndPort> {
    wanted.protocol.map_or_else(
        || {
            vec![
                ProtocolAndPort::Icmp,
                ProtocolAndPort::Tcp { port: 443 },
                ProtocolAndPort::Tcp { port: 80 },
                ProtocolAndPort::Udp { port: UDP_PORT },
            ]
        },
        |protocol| vec![protocol],
    )
}

/// All ways. ICMP has no ports, and many routers look at nothing else of it but the addresses: UDP
/// takes its place.
fn all_ways(
    wanted: &Wanted,
    protocol: ProtocolAndPort,
    confidence: f64,
    stop: &AtomicBool,
    out: &mut Yield,
) -> Result<Option<Multipath>, MeasureError> {
    let protocol = match (protocol, wanted.protocol) {
        (ProtocolAndPort::Icmp, None) => ProtocolAndPort::Udp { port: UDP_PORT },
        (protocol, _) => protocol,
    };
    let mut network = open(&wanted.target, protocol)?;
    if network.access() != Access::Raw {
        out.note(
            "Without CAP_NET_RAW there is one flow, and so one path: other paths were not looked for.",
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

/// Adds the reverse path, where a responder reported it.
fn add_reverse_path(result: &mut PathResult, heard: Heard, names: &Names, out: &mut Yield) {
    for hop in &heard.way_back.hops {
        if let Some(address) = address_of(hop) {
            names.ask(address);
        }
    }
    for note in heard.notes {
        out.note(note);
    }
    result.way_back = Some(Box::new(heard.way_back));
}

/// Compares the forward path, as it went last, with the reverse path.
fn compare(result: &mut PathResult) {
    let Some(back) = result.way_back.as_deref() else {
        return;
    };
    let mut there = result.hops.clone();
    let differs = result.changes.iter().map(|change| change.ttl).min();
    if let Some(first) = differs {
        for hop in there.iter_mut().filter(|hop| hop.ttl >= first) {
            hop.addresses = hop.address.iter().cloned().collect();
        }
    }
    result.symmetry = Some(symmetry(
        (&there, result.reached),
        (&back.hops, back.reached),
    ));
}

/// The longest round trip of the trace.
fn slowest(log: &TraceLog) -> Duration {
    let seen = log.shots.iter().filter_map(|shot| shot.seen.as_ref());
    seen.map(|seen| seen.rtt).max().unwrap_or_default()
}

fn address_of(hop: &PathHop) -> Option<IpAddr> {
    hop.address.as_deref()?.parse().ok()
}

/// The networks of the addresses that no database has, where a resolver is to be asked.
fn networks_by_dns(
    result: &PathResult,
    wanted: &Wanted,
    out: &mut Yield,
) -> BTreeMap<IpAddr, atlas::Entry> {
    let Some(resolver) = wanted.networks_by else {
        return BTreeMap::new();
    };
    let back = result.way_back.as_ref().map(|back| &back.hops);
    let hops = result.hops.iter().chain(back.into_iter().flatten());
    let is_unknown = |address: &IpAddr| {
        let entry = wanted.atlas.look_up(*address);
        entry.is_ok_and(|entry| entry.asn.is_none())
    };
    let unknown: Vec<IpAddr> = hops.filter_map(address_of).filter(is_unknown).collect();
    match networks::look_up(resolver, &unknown) {
        Ok(known) => known,
        Err(error) => {
            out.note(format!(
                "The resolver {resolver} was not asked for networks: {error}."
            ));
            BTreeMap::new()
        }
    }
}

/// Names, networks and places.
fn describe(result: &mut PathResult, wanted: &Wanted, names: &Names, out: &mut Yield) {
    let by_dns = networks_by_dns(result, wanted, out);
    let back = result.way_back.as_mut().map(|back| &mut back.hops);
    for hop in result.hops.iter_mut().chain(back.into_iter().flatten()) {
        let Some(address) = address_of(hop) else {
            continue;
        };
        hop.name = names.get(address);
        match wanted.atlas.look_up(address) {
            Ok(mut entry) => {
                if entry.asn.is_none()
                    && let Some(found) = by_dns.get(&address)
                {
                    (entry.asn, entry.name) = (found.asn, found.name.clone());
                }
                (hop.asn, hop.as_name, hop.place) = (entry.asn, entry.name, entry.place);
            }
            Err(error) => {
                out.note(format!(
                    "A database of networks cannot be read whole: {error}"
                ));
            }
        }
    }
    atlas::reject_impossible(&mut result.hops, wanted.here);
    result.distance = atlas::distance(&result.hops, wanted.here);
}

/// What a round trip that light could not make says of the places, where it is not known which of
/// them is wrong.
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
