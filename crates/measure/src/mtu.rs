//! `plumb mtu`: how large packets may be on a path, what becomes of TCP's maximum segment size on
//! it, and what TCP of this host will do about it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_model::results::mtu::{
    MssHop, MssResult, MtuDirection, MtuHop, MtuMethod, MtuResult, TcpMtu,
};
use plumb_model::run::Run;
use plumb_net::{clock, path_mtu, sysctl};
use plumb_probe::mtu::search::arrives;
use plumb_probe::mtu::{Found, MtuPlan, SearchError, mss, search};
use plumb_probe::path::{self, Access, Opened, ProtocolAndPort, Target, UDP_PORT};
use plumb_probe::{Plan, Probing, Sizes};
use plumb_wire::native::control::flow::MSS_BYTES;
use plumb_wire::path_probe;

use crate::error::MeasureError;
use crate::far_end::FarEnd;
use crate::progress::Watcher;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// The largest IP packet that can be written (RFC 791, section 3.1).
const LARGEST_BYTES: u32 = u16::MAX as u32;

/// Ports whose answer shows the far end's maximum segment size, where the user names none: plumb's own, and the port of
/// HTTPS.
const TCP_PORTS: [u16; 2] = [plumb_wire::native::spec::PORT, 443];

/// Answers as large as the path towards the far end allows: that five in a row are lost by chance takes a path that loses
/// most packets, on which TCP's control connection would not have come about.
const LARGE_ANSWERS: u64 = 5;

/// IP and TCP headers without options.
const fn headers_bytes(v4: bool) -> u32 {
    if v4 { 40 } else { 60 }
}

/// What to look for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub target: Target,
    /// TCP port for the maximum segment size; usual ones when absent.
    pub tcp_port: Option<u16>,
    /// The largest size to try; what the interface sends when absent.
    pub largest_bytes: Option<u16>,
    /// Whether to follow the sizes that routers report.
    pub listen: bool,
    /// ICMP or UDP; echoes, and UDP where the far end answers none, when absent.
    pub protocol: Option<Protocol>,
    /// How many hops to look at.
    pub max_hops: u8,
    /// Times that a probe is sent before it counts as lost.
    pub tries: u32,
    /// Longest wait for an answer.
    pub timeout: Duration,
}

impl Wanted {
    /// What `plumb mtu` looks for by default.
    pub fn of(target: Target) -> Self {
        Self {
            tcp_port: Some(target.address.port()).filter(|port| *port != 0),
            target,
            largest_bytes: None,
            listen: true,
            protocol: None,
            max_hops: 30,
            tries: 3,
            timeout: Duration::from_secs(1),
        }
    }
}

/// How large packets may be on a path, hop by hop.
pub struct PathMtu<'a> {
    pub wanted: &'a Wanted,
}

impl Step for PathMtu<'_> {
    fn name(&self) -> String {
        format!("the MTU of the path to {}", self.wanted.target.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        probe(self.wanted, Asked::Alone, session.watcher, &session.stop)
    }
}

/// How large packets may be, before anything loads the path: lost probes are given up after some round trips of the idle
/// path, so that a whole path takes about four of them.
pub struct LargestPacket {
    pub target: Target,
}

impl Step for LargestPacket {
    fn name(&self) -> String {
        format!("the MTU of the path to {}", self.target.name)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let idle = session.background.as_ref();
        let idle = idle.and_then(|background| background.idle.as_ref());
        let rtt_s = idle.and_then(|idle| Some(idle.main.as_ref()?.rtt_s.p95));
        let wanted = Wanted {
            timeout: patience(rtt_s),
            ..Wanted::of(self.target.clone())
        };
        let far_end = session.far_end.as_ref();
        let responder = far_end.and_then(FarEnd::responder);
        let echoes = responder.is_some_and(|responder| responder.welcome().udp_port.is_some());
        probe(
            &wanted,
            Asked::InCheck { echoes },
            session.watcher,
            &session.stop,
        )
    }
}

/// Whether the responder's answers as large as the largest packet that reaches it all vanish.
fn swallows_answers(wanted: &Wanted, path_bytes: Option<u32>, stop: &Arc<AtomicBool>) -> bool {
    let target = &wanted.target;
    // IP and UDP headers.
    let headers_bytes = if target.address.is_ipv4() { 28 } else { 48 };
    let Some(payload) = path_bytes.and_then(|bytes| bytes.checked_sub(headers_bytes)) else {
        return false;
    };
    let plan = Plan {
        sizes: Sizes::One(payload as usize),
        count: Some(LARGE_ANSWERS),
        interval: Duration::from_millis(20),
        timeout: wanted.timeout,
        ..Plan::new(Protocol::Udp, target.name.as_str(), target.address)
    };
    let log = Probing::start(plan, Arc::clone(stop)).map(Probing::join);
    log.is_ok_and(|log| {
        let result = log.result(0.0, f64::INFINITY);
        result.sent == LARGE_ANSWERS && result.received == 0
    })
}

/// How long an answer is waited for on a path with those idle round trips.
fn patience(rtt_s: Option<f64>) -> Duration {
    let least = Duration::from_millis(200);
    let most = Duration::from_secs(1);
    // Routers answer from their slow path.
    let scaled = rtt_s.map(|rtt_s| least + Duration::from_secs_f64(3.0 * rtt_s.clamp(0.0, 1.0)));
    scaled.map_or(most, |scaled| scaled.min(most))
}

/// The largest segment that TCP may send past a black hole which was found, in bytes; `None` where there is none, TCP is
/// kept out of it already, or TCP takes no segment that small.
pub(crate) fn segment_that_fits(run: &Run) -> Option<u16> {
    let results = run.measurements.iter().rev();
    let mut searches = results.filter_map(|measurement| match &measurement.outcome {
        Outcome::Mtu(result) => Some(result),
        _ => None,
    });
    let result = searches.next()?;
    let fits = result.narrowest_bytes()?;
    let v4 = !result.address.contains(':');
    result.swallows()?;
    let segment = u16::try_from(fits.checked_sub(headers_bytes(v4))?).ok()?;
    MSS_BYTES.contains(&segment.into()).then_some(segment)
}

/// What a search is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Alone,
    InCheck {
        /// Whether a responder at the target answers datagrams of any size.
        echoes: bool,
    },
}

fn probe(
    wanted: &Wanted,
    asked: Asked,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Yield, MeasureError> {
    let to = wanted.target.address.ip();
    let mut out = Yield::default();
    let started_ns = clock::monotonic_ns();
    let known = path_mtu::known_bytes(wanted.target.address, &wanted.target.outlet).ok();
    let interface = path_mtu::interface_bytes(to, &wanted.target.outlet)
        .ok()
        .flatten()
        .or(known);
    let largest = interface
        .unwrap_or(LARGEST_BYTES)
        .min(wanted.largest_bytes.map_or(LARGEST_BYTES, u32::from))
        .min(LARGEST_BYTES);
    let plan = MtuPlan {
        target: to,
        largest_bytes: u16::try_from(largest).unwrap_or(u16::MAX),
        listen: wanted.listen,
        max_hops: wanted.max_hops,
        tries: wanted.tries,
        timeout: wanted.timeout,
    };
    watcher.step(
        &format!(
            "probing {} with packets up to {largest} bytes",
            wanted.target.name
        ),
        Duration::ZERO,
    );
    // In a check, whose time a search past a black hole may use up, the segment size comes first.
    let in_check = asked != Asked::Alone;
    let announced = in_check.then(|| segment_size(wanted, 0, stop)).flatten();
    let mut way = both_ways(wanted, &plan, &mut out, stop)?;
    if way.found.stopped {
        out.note("Stopped before the search had ended: sizes are those known by then, and hops may take more.");
    } else if way.found.path_mtu_bytes.is_none() {
        out.note(format!(
            "{} itself did not answer: the sizes describe the path up to the last hop that did.",
            wanted.target.name
        ));
    }
    watcher.update("looking at TCP's maximum segment size");
    let path_mtu = way.found.path_mtu_bytes.map(u32::from);
    let is_raw = way.access == Access::Raw;
    let routers = u8::try_from(way.found.hops.len()).unwrap_or(u8::MAX);
    let sent = announced.as_ref().map_or(0, |(_, sent)| *sent);
    let by_hop = (is_raw && !way.found.stopped)
        .then(|| segment_size(wanted, routers, stop))
        .flatten();
    let sent = sent + by_hop.as_ref().map_or(0, |(_, sent)| *sent);
    let mss = by_hop.or(announced).filter(|_| is_raw);
    let mss = mss.map(|(mss, _)| MssResult {
        answer_below_path: path_mtu
            .zip(mss.answered_bytes)
            .map(|(path, answered)| answered + headers_bytes(to.is_ipv4()) < path),
        ..mss
    });
    if wanted.listen && !plan_is_whole(&way.found) {
        // The numbers of hops are only as good as the routers' answers.
        out.note(
            "Some hops did not answer: a limit found between two that did may be at any of those between.",
        );
    }
    let narrower_back = way.way_back_bytes;
    let way_back_bytes = narrower_back.filter(|_| {
        asked == (Asked::InCheck { echoes: true }) && swallows_answers(wanted, path_mtu, stop)
    });
    let hops = std::mem::take(&mut way.found.hops);
    let mut hops: Vec<MtuHop> = hops
        .into_iter()
        .map(|hop| MtuHop {
            ttl: hop.ttl,
            address: hop.address.map(|address| address.to_string()),
            mtu_bytes: hop.mtu_bytes.map(u32::from),
            told_mtu_bytes: hop.told_mtu_bytes,
        })
        .collect();
    if path_mtu.is_some() {
        hops.push(MtuHop {
            ttl: hops.last().map_or(0, |hop| hop.ttl).saturating_add(1),
            address: Some(to.to_string()),
            mtu_bytes: path_mtu,
            told_mtu_bytes: None,
        });
    }
    let mut result = MtuResult {
        address: to.to_string(),
        path_mtu_bytes: path_mtu,
        path_mtu_at_least: false,
        interface_mtu_bytes: interface,
        largest_tried_bytes: largest,
        partial: way.found.stopped,
        method: method(&way.found),
        direction: way.direction,
        hops,
        black_hole_after: way.found.black_hole_after,
        way_back_bytes,
        sent: way.found.sent + sent,
        mss,
        tcp: tcp(known),
    };
    result.path_mtu_at_least = path_mtu.is_some_and(|path_mtu| result.is_bound(path_mtu));
    let measured = Measured::until_now(started_ns, Outcome::Mtu(Box::new(result)))
        .set("icmp_followed", wanted.listen)
        .set("tries", wanted.tries)
        .set("timeout_s", wanted.timeout.as_secs_f64());
    out.add(measured);
    Ok(out)
}

/// What was found, and by what.
struct Way {
    found: Found,
    direction: MtuDirection,
    access: Access,
    /// The largest answer that came back, where that is less than what got there.
    way_back_bytes: Option<u32>,
}

/// Finds sizes with echoes, and where those give nothing or too little, with UDP.
fn both_ways(
    wanted: &Wanted,
    plan: &MtuPlan,
    out: &mut Yield,
    stop: &AtomicBool,
) -> Result<Way, MeasureError> {
    let udp = ProtocolAndPort::Udp { port: UDP_PORT };
    if wanted.protocol == Some(Protocol::Udp) {
        return find(wanted, plan, udp, out, stop);
    }
    let echoes = find(wanted, plan, ProtocolAndPort::Icmp, out, stop);
    if wanted.protocol.is_some() {
        return echoes;
    }
    match echoes {
        // Large echoes may have been lost on their reverse path.
        Ok(echoes) if echoes.found.stopped => Ok(echoes),
        Ok(echoes) if echoes.found.silent > 0 || echoes.found.path_mtu_bytes.is_none() => {
            let least = echoes.found.path_mtu_bytes.unwrap_or(0);
            match forward_if_wider(wanted, plan, least, out, stop) {
                Some(forward) => {
                    if least > 0 {
                        out.note(format!(
                            "Answers above {least} bytes did not come back: the reverse path from {} takes less.",
                            wanted.target.name
                        ));
                    }
                    Ok(Way {
                        way_back_bytes: (least > 0).then_some(least.into()),
                        ..forward
                    })
                }
                None => Ok(echoes),
            }
        }
        Ok(echoes) => Ok(echoes),
        Err(error) => find(wanted, plan, udp, out, stop).map_err(|_| error),
    }
}

/// What gets there by UDP, where that is more than `least` bytes.
fn forward_if_wider(
    wanted: &Wanted,
    plan: &MtuPlan,
    least: u16,
    out: &mut Yield,
    stop: &AtomicBool,
) -> Option<Way> {
    let udp = ProtocolAndPort::Udp { port: UDP_PORT };
    let mut network = path::open(&wanted.target, udp).ok()?;
    if !arrives(&mut network, plan, least.checked_add(1)?, stop).ok()? {
        return None;
    }
    let forward = find(wanted, plan, udp, out, stop).ok()?;
    (forward.found.path_mtu_bytes? > least).then_some(forward)
}

fn find(
    wanted: &Wanted,
    plan: &MtuPlan,
    protocol: ProtocolAndPort,
    out: &mut Yield,
    stop: &AtomicBool,
) -> Result<Way, MeasureError> {
    let mut network: Opened = path::open(&wanted.target, protocol)?;
    let access = network.access();
    if let Some(missing) = access.missing() {
        out.note(missing);
    }
    let found = search(&mut network, plan, stop).map_err(|error| match error {
        SearchError::Silence => MeasureError::Silence {
            name: wanted.target.name.clone(),
            tried: "probes of any size".to_owned(),
            notes: String::new(),
        },
        SearchError::Nowhere(nowhere) => MeasureError::nowhere(&wanted.target, &nowhere),
        other => MeasureError::Mtu {
            name: wanted.target.name.clone(),
            source: other,
        },
    })?;
    let direction = match protocol {
        ProtocolAndPort::Icmp => MtuDirection::RoundTrip,
        _ => MtuDirection::Forward,
    };
    Ok(Way {
        found,
        direction,
        access,
        way_back_bytes: None,
    })
}

/// Whether every hop answered.
fn plan_is_whole(found: &Found) -> bool {
    found.hops.iter().all(|hop| hop.address.is_some()) || found.silent + found.told == 0
}

fn method(found: &Found) -> MtuMethod {
    match (found.told, found.silent) {
        (0, 0) => MtuMethod::Unlimited,
        (_, 0) => MtuMethod::Told,
        (0, _) => MtuMethod::Probed,
        _ => MtuMethod::Mixed,
    }
}

/// The maximum segment size at so many routers and at the far end, by the first port that answers, and the SYNs sent. Whether it is
/// less than the path takes is left open.
fn segment_size(wanted: &Wanted, routers: u8, stop: &AtomicBool) -> Option<(MssResult, u64)> {
    let to = wanted.target.address.ip();
    // No router handles packets that do not leave this host.
    if to.is_loopback() {
        return None;
    }
    let typed = wanted.tcp_port;
    let ports: Vec<u16> = typed.map_or_else(|| TCP_PORTS.to_vec(), |port| vec![port]);
    let mut total = 0;
    let mut best: Option<(u16, mss::Seen)> = None;
    for port in ports {
        let mut network = path::open(&wanted.target, ProtocolAndPort::Tcp { port }).ok()?;
        let Ok(seen) = mss::look(&mut network, routers, wanted.tries, wanted.timeout, stop) else {
            continue;
        };
        total += seen.sent;
        let answered = seen.answered.is_some();
        if answered || best.is_none() {
            best = Some((port, seen));
        }
        if answered {
            break;
        }
    }
    let (port, seen) = best.filter(|(_, seen)| seen.reached || !seen.hops.is_empty())?;
    let sent_bytes = path_probe::announced_mss(to.is_ipv4());
    let result = MssResult {
        port,
        sent_bytes: sent_bytes.into(),
        clamped_after: seen.lowered_after(sent_bytes),
        lowered_to_bytes: seen
            .hops
            .iter()
            .map(|(_, _, mss)| u32::from(*mss))
            .find(|mss| *mss < sent_bytes.into()),
        hops: seen
            .hops
            .iter()
            .map(|(ttl, address, mss)| MssHop {
                ttl: *ttl,
                address: address.to_string(),
                mss_bytes: (*mss).into(),
            })
            .collect(),
        answered_bytes: seen.answered.map(u32::from),
        answer_below_path: None,
    };
    Some((result, total))
}

/// What TCP here does about packets that do not fit; `known` is what the kernel held before.
fn tcp(known: Option<u32>) -> TcpMtu {
    fn number<T: TryFrom<u64>>(key: &str) -> Option<T> {
        let value = sysctl::read_numbers(key)?.first().copied()?;
        T::try_from(value).ok()
    }
    TcpMtu {
        mtu_probing: number("net.ipv4.tcp_mtu_probing"),
        base_mss_bytes: number("net.ipv4.tcp_base_mss"),
        no_pmtu_disc: number("net.ipv4.ip_no_pmtu_disc"),
        known_mtu_bytes: known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_says_what_each_limit_rests_on() {
        let found = |told, silent| Found {
            path_mtu_bytes: Some(1400),
            hops: Vec::new(),
            told,
            silent,
            black_hole_after: None,
            sent: 0,
            stopped: false,
        };
        let of = |told, silent| method(&found(told, silent));
        assert_eq!(of(0, 0), MtuMethod::Unlimited);
        assert_eq!(of(2, 0), MtuMethod::Told);
        assert_eq!(of(0, 1), MtuMethod::Probed);
        assert_eq!(of(1, 1), MtuMethod::Mixed);
    }
}
