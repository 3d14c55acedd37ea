//! `plumb capacity`: what each line of a path could carry, by how round trips to each hop grow with
//! size, and its narrowest place, by trains of packets.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_diagnose::capacity_notes;
use plumb_model::distribution::Distribution;
use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_model::results::capacity::{
    CapacityEnd, CapacityHop, CapacityResult, CapacitySize, TrainMethod, TrainResult,
};
use plumb_model::units::si;
use plumb_net::{clock, path_mtu};
use plumb_probe::ProbeError;
use plumb_probe::capacity::hops::{HopFound, HopsFound, HopsPlan, answers, hops};
use plumb_probe::capacity::send_trains;
use plumb_probe::capacity::trains::TrainsPlan;
use plumb_probe::path::{self, OpenError, Opened, ProtocolAndPort, Target, UDP_PORT};
use plumb_wire::native::spec::PORT;

use crate::error::MeasureError;
use crate::progress::Watcher;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// What packets of a network without jumbo frames have, bytes.
const ETHERNET_BYTES: u32 = 1500;

/// Hops may take one part in so many of the bytes where trains follow, which have the rest.
const HOPS_PART: u64 = 2;

/// Trains take no longer than this.
const TRAINS_TIME: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Wanted {
    /// The far end with the port of its responder, 0 for the usual one.
    pub target: Target,
    /// What probes of hops are made of; when absent, what the far end answers.
    pub protocol: Option<Protocol>,
    /// Whether hops are looked at.
    pub hops: bool,
    /// Packets of the longest train; none are sent when 0.
    pub longest_train: u32,
    /// How many hops to look at.
    pub max_hops: u8,
    /// The largest packet, whole IP packet; what the interface sends when absent, up to a jumbo frame.
    pub largest_bytes: Option<u16>,
    /// From one probe to the next on average.
    pub interval: Duration,
    /// How long hops are probed at most.
    pub time: Duration,
    /// Bytes of IP packets sent at most.
    pub bytes: u64,
    /// Longest wait for an answer while it is found out who answers.
    pub timeout: Duration,
}

impl Wanted {
    /// What `plumb capacity` measures by default.
    pub fn of(target: Target) -> Self {
        Self {
            target,
            protocol: None,
            hops: true,
            longest_train: 400,
            max_hops: 30,
            largest_bytes: None,
            interval: Duration::from_millis(10),
            time: Duration::from_secs(30),
            bytes: 20_000_000,
            timeout: Duration::from_secs(1),
        }
    }

    /// What it will cost at most, for those who pay for it.
    pub fn announcement(&self) -> String {
        let mut parts = Vec::new();
        if self.hops {
            parts.push(format!(
                "single packets for at most {:.0} s, {:.0} a second",
                self.time.as_secs_f64(),
                1.0 / self.interval.as_secs_f64().max(1e-9)
            ));
        }
        if self.longest_train > 0 {
            parts.push(format!(
                "trains of up to {} packets as fast as this host sends",
                self.longest_train
            ));
        }
        format!(
            "{} to {}, at most {} in all (--bytes changes that)",
            parts.join(", then "),
            self.target.name,
            si(self.bytes as f64, "B")
        )
    }

    /// What hops may take of the bytes.
    fn hops_bytes(&self) -> u64 {
        match self.longest_train {
            0 => self.bytes,
            _ => self.bytes / HOPS_PART,
        }
    }
}

/// What the lines of a path could carry.
pub struct LineCapacity<'a> {
    pub wanted: &'a Wanted,
}

impl Step for LineCapacity<'_> {
    fn name(&self) -> String {
        format!("the capacity of the path to {}", self.wanted.target.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        probe(self.wanted, session.watcher, &session.stop)
    }
}

fn probe(wanted: &Wanted, watcher: &dyn Watcher, stop: &AtomicBool) -> Result<Yield, MeasureError> {
    let mut out = Yield::default();
    let to = wanted.target.address.ip();
    let started_ns = clock::monotonic_ns();
    let interface = path_mtu::interface_bytes(to, &wanted.target.outlet)
        .ok()
        .flatten();
    let largest = interface
        .unwrap_or(ETHERNET_BYTES)
        .min(wanted.largest_bytes.map_or(u32::from(u16::MAX), u32::from));
    let largest = u16::try_from(largest).unwrap_or(u16::MAX);
    let mut found = None;
    if wanted.hops {
        found = Some(look_at_hops(wanted, largest, watcher, stop, &mut out)?);
    }
    let spent = found.as_ref().map_or(0, |(_, found)| found.sent_bytes);
    let train = if wanted.longest_train > 0 && !stop.load(Ordering::Relaxed) {
        let whole = found.as_ref().and_then(|(_, found)| {
            let of = |hop: &HopFound| hop.largest_bytes;
            found.hops.iter().filter_map(of).min()
        });
        let packet_bytes = whole.unwrap_or(largest).into();
        let plan = TrainsPlan {
            packet_bytes,
            longest_packets: wanted.longest_train,
            bytes: wanted.bytes.saturating_sub(spent),
            time: TRAINS_TIME,
        };
        look_by_trains(wanted, &plan, watcher, stop, &mut out)?
    } else {
        None
    };
    let stopped = stop.load(Ordering::Relaxed);
    let anything = found.as_ref().is_some_and(|(_, found)| {
        found.hops.iter().any(|hop| hop.received > 0) || (stopped && !found.hops.is_empty())
    });
    if !anything && train.is_none() {
        if stopped {
            return Err(MeasureError::Cancelled);
        }
        return Err(MeasureError::Silence {
            name: wanted.target.name.clone(),
            tried: "UDP, ICMP echoes or the routers on the path probes".to_owned(),
            notes: String::new(),
        });
    }
    let result = result(wanted, found, train);
    for note in capacity_notes(&wanted.target.name, &result) {
        out.note(note);
    }
    let measured = Measured::until_now(started_ns, Outcome::Capacity(Box::new(result)))
        .set("interval_s", wanted.interval.as_secs_f64())
        .set("time_s", wanted.time.as_secs_f64())
        .set("bytes", wanted.bytes)
        .set("longest_train_packets", wanted.longest_train);
    out.add(measured);
    Ok(out)
}

/// Probes hops by what the far end answers: UDP, whose answers are small, or echoes.
fn look_at_hops(
    wanted: &Wanted,
    largest_bytes: u16,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
    out: &mut Yield,
) -> Result<(Protocol, HopsFound), MeasureError> {
    let local = |source: io::Error| match source.kind() {
        // No hop is known yet.
        io::ErrorKind::Interrupted => MeasureError::Cancelled,
        _ => MeasureError::Capacity {
            name: wanted.target.name.clone(),
            source,
        },
    };
    let to = wanted.target.address.ip();
    watcher.step(
        &format!(
            "looking for hops that answer on the path to {}",
            wanted.target.name
        ),
        Duration::ZERO,
    );
    let mut chosen: Option<(Protocol, Opened)> = None;
    let tried = wanted.protocol.map_or_else(
        || vec![Protocol::Udp, Protocol::Icmp],
        |protocol| vec![protocol],
    );
    let automatic = tried.len() > 1;
    for protocol in tried {
        let opened = match path::open(&wanted.target, as_opened(protocol)) {
            Ok(opened) => opened,
            // Ping sockets may be forbidden where UDP is not.
            Err(OpenError::Icmp { .. }) if chosen.is_some() => break,
            Err(error) => return Err(error.into()),
        };
        let mut opened = opened;
        if !automatic || answers(&mut opened, to, wanted.timeout, stop).map_err(local)? {
            chosen = Some((protocol, opened));
            break;
        }
        // Where the far end answers nothing, UDP it is: routers answer that.
        chosen.get_or_insert((protocol, opened));
    }
    let Some((protocol, mut network)) = chosen else {
        return Err(MeasureError::Cancelled);
    };
    if let Some(missing) = network.access().missing() {
        out.note(format!(
            "{missing}. How large answers are is not seen either: they are taken to be as large as routers may make them, \
             so what lines carry back is not known."
        ));
    }
    let plan = HopsPlan {
        target: to,
        max_hops: wanted.max_hops,
        largest_bytes,
        interval: wanted.interval,
        time: wanted.time,
        bytes: wanted.hops_bytes(),
        timeout: wanted.timeout,
        seed: clock::realtime_ns(),
    };
    watcher.step("single packets of several sizes to each hop", wanted.time);
    let found = hops(&mut network, &plan, stop, &mut |known, of| {
        watcher.update(&format!("{known} of {of} lines known"));
    })
    .map_err(local)?;
    if let Some(nowhere) = &found.nowhere {
        return Err(MeasureError::nowhere(&wanted.target, nowhere));
    }
    Ok((protocol, found))
}

fn as_opened(protocol: Protocol) -> ProtocolAndPort {
    match protocol {
        Protocol::Icmp => ProtocolAndPort::Icmp,
        _ => ProtocolAndPort::Udp { port: UDP_PORT },
    }
}

/// Sends trains to the far end's responder, or where there is none as echoes.
fn look_by_trains(
    wanted: &Wanted,
    plan: &TrainsPlan,
    watcher: &dyn Watcher,
    stop: &AtomicBool,
    out: &mut Yield,
) -> Result<Option<TrainResult>, MeasureError> {
    let mut target = wanted.target.clone();
    if target.address.port() == 0 {
        target.address.set_port(PORT);
    }
    let send = |method| {
        watcher.step("trains of packets", Duration::ZERO);
        send_trains(&target, method, plan, stop, &mut |count| {
            watcher.update(&format!("{count} sent"));
        })
    };
    match send(TrainMethod::Native) {
        Ok(Some(train)) => return Ok(Some(train)),
        Ok(None) | Err(ProbeError::NoEcho { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match send(TrainMethod::Echo) {
        Ok(Some(train)) => {
            out.note(format!(
                "No plumb responder at {} (UDP port {}): trains were echoes, which pass both directions, so their rate is \
                 the narrower direction's. Start `plumb serve` there for the forward path alone.",
                wanted.target.name,
                target.address.port()
            ));
            Ok(Some(train))
        }
        Ok(None) => {
            out.note(format!(
                "{} answers neither plumb's probes (UDP port {}) nor echoes: no trains came through.",
                wanted.target.name,
                target.address.port()
            ));
            Ok(None)
        }
        Err(error @ ProbeError::Icmp { .. }) => {
            out.note(format!("No trains could be sent: {error}."));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn result(
    wanted: &Wanted,
    found: Option<(Protocol, HopsFound)>,
    train: Option<TrainResult>,
) -> CapacityResult {
    let train_sent = train.as_ref().map_or(0, |train| train.sent);
    let train_bytes = train
        .as_ref()
        .map_or(0, |train| train.sent * u64::from(train.packet_bytes));
    let mut result = CapacityResult {
        address: wanted.target.address.ip().to_string(),
        protocol: None,
        hops: Vec::new(),
        reached: false,
        narrowest_ttl: None,
        train,
        rtt_s: None,
        pipe_bytes: None,
        ended: CapacityEnd::NotBegun,
        sent: train_sent,
        sent_bytes: train_bytes,
    };
    let Some((protocol, found)) = found else {
        return result;
    };
    result.protocol = Some(protocol);
    result.reached = found.reached;
    result.ended = found.ended;
    result.sent += found.sent;
    result.sent_bytes += found.sent_bytes;
    let last = found.hops.last().and_then(|hop| hop.fit);
    result.rtt_s = last.filter(|_| found.reached).map(|fit| fit.base.value);
    result.hops = describe(&found.hops);
    let measured = result
        .hops
        .iter()
        .filter_map(|hop| Some((hop.ttl, hop.rate.bps?)));
    let narrowest = measured.min_by(|a, b| a.1.total_cmp(&b.1));
    result.narrowest_ttl = narrowest.map(|(ttl, _)| ttl);
    result.pipe_bytes = narrowest
        .zip(result.rtt_s)
        .map(|((_, bps), rtt)| bps * rtt / 8.0);
    result
}

/// Hops in the form of the result.
fn describe(found: &[HopFound]) -> Vec<CapacityHop> {
    let mean_queueing: Vec<Option<f64>> = found
        .iter()
        .map(|hop| hop.queueing().map(|queueing| queueing.mean))
        .collect();
    found
        .iter()
        .enumerate()
        .map(|(index, hop)| {
            let before = match hop.line.nearer {
                Some(0) => Some(0.0),
                Some(nearer) => mean_queueing.get(nearer - 1).copied().flatten(),
                None => None,
            };
            let here = mean_queueing.get(index).copied().flatten();
            CapacityHop {
                ttl: hop.ttl,
                address: hop.address.map(|address| address.to_string()),
                sent: hop.sent,
                received: hop.received,
                other_routers: hop.others,
                largest_bytes: hop.largest_bytes.map(u32::from),
                answer_bytes: hop.answer_bytes.map(u32::from),
                lines: hop.line.lines,
                rate: hop.line.rate.clone(),
                back_rate: hop.line.back.clone(),
                latency_s: hop.line.latency_s.map(|(value, _)| value.max(0.0)),
                latency_error_s: hop.line.latency_s.map(|(_, error)| error),
                queueing_s: hop.queueing(),
                sizes: hop
                    .sizes
                    .iter()
                    .filter_map(|of_size| {
                        Some(CapacitySize {
                            size_bytes: of_size.size_bytes.into(),
                            answer_bytes: of_size.answer_bytes.into(),
                            rtt_s: Distribution::of(of_size.rtt_s.iter().copied())?,
                        })
                    })
                    .collect(),
                line_queueing_s: here
                    .zip(before)
                    .map(|(here, before)| (here - before).max(0.0)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_net::egress::Outlet;

    #[test]
    fn what_trains_do_not_need_is_for_the_hops() {
        let both = Wanted {
            target: Target {
                name: "server".to_owned(),
                address: "192.0.2.1:0".parse().unwrap(),
                outlet: Outlet::default(),
            },
            protocol: None,
            hops: true,
            longest_train: 400,
            max_hops: 30,
            largest_bytes: None,
            interval: Duration::from_millis(10),
            time: Duration::from_secs(30),
            bytes: 1_000,
            timeout: Duration::from_secs(1),
        };
        assert_eq!(both.hops_bytes(), 500);
        let hops_alone = Wanted {
            longest_train: 0,
            ..both
        };
        assert_eq!(hops_alone.hops_bytes(), 1_000);
    }
}
