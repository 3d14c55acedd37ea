//! Queues that delay everything while the path is loaded in one direction.
//!
//! When only one direction carries data, the other carries nothing but acknowledgements: a round trip that grows under
//! that load waits in a queue of the loaded direction. Where the gateway was probed too, the increase up to there
//! separates Wi-Fi and the local network from the line.

use plumb_model::context::Experiment;
use plumb_model::direction::OneDirection;
use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds, si};

use crate::Case;
use crate::evidence::{Idle, Loaded, Streamed, fact};
use crate::facts::seconds;
use crate::queue_advice::{self, MANAGED_S};
use crate::signs::{Kind, Sign};

/// An increase from here on is a finding, in seconds: below it DSLReports still grades B, and
/// a game or call (one packet every 16 to 20 ms) loses only a few packets' time.
pub(crate) const WARNING_S: f64 = 0.060;

/// From here on the grade is D or F: conversations break.
pub(crate) const CRITICAL_S: f64 = 0.200;

/// A router answers echo requests with less care than it forwards packets, so that its round trips
/// alone never make a place quite sure.
const LOCAL_CONFIDENCE: f64 = 0.9;

/// The queue vanished with the load that filled it.
const PROVEN_CONFIDENCE: f64 = 0.99;

/// Packets also waited while ours left the line room: the rate of the line varies, or others use it.
const PERHAPS_CONFIDENCE: f64 = 0.8;

/// Round trips below this number leave a percentile uncertain.
const ENOUGH_PROBES: u64 = 50;

/// Connections of a load: a queue that is fair to them holds a packet of each (RFC 8290, section 5.2).
const FLOWS: f64 = 4.0;

/// Share of segments that a queue which is far too long loses when it overflows.
const OVERFLOW_RATIO: f64 = 0.05;

/// From this increase on, in seconds, a second holds three round trips at most: its rate is the rate of single bursts.
const SECONDS_APART_S: f64 = 0.3;

/// What operating systems send as the first hop limit: Linux and macOS, Windows, and routers.
const FIRST_HOP_LIMITS: [u8; 3] = [64, 128, 255];

/// A far end without a router before it is on this host's own segment if it answers within this time while idle, in
/// seconds: a radio's access takes less, and a provider's line to a far end takes more.
const SEGMENT_RTT_S: f64 = 0.005;

/// Queues that a load in `direction` fills: on the local network, and on the line.
pub(crate) fn examine(case: &Case<'_>, direction: Direction) -> Vec<Finding> {
    let loaded = case.loaded(direction);
    let loaded = loaded.filter(|loaded| loaded.shows_queue());
    let facts = case.facts(direction);
    let Some(loaded) = facts.known("round trips beside a load that fills any queue", loaded) else {
        return Vec::new();
    };
    let own_s = loaded.increase_s(direction, case.idle());
    // What waits in the other direction waits for something else.
    let own = "increase of the delay in the load's own direction";
    if own_s.is_some_and(|own_s| !facts.at_least(own, seconds(own_s), WARNING_S)) {
        return Vec::new();
    }
    if !facts.is(
        "packets come later under load than the latest while idle",
        !waits_at_any_load(case, loaded),
    ) {
        return Vec::new();
    }
    let on_the_line = finding(case, direction, loaded, own_s);
    local(case, direction, loaded)
        .into_iter()
        .chain(on_the_line)
        .collect()
}

/// Whether packets come as late while idle: where delay varies by itself the load has to add to the latest of the idle path,
/// and what something held altogether waited in no queue.
fn waits_at_any_load(case: &Case<'_>, loaded: Loaded<'_>) -> bool {
    let varying = case.varying().filter(|v| v.spread_s >= WARNING_S);
    let idle_s = match varying {
        Some(varying) => Some(varying.rtt_s.max),
        None if case.holds().next().is_some() => {
            let idle = case.idle().and_then(Idle::awake_s);
            idle.map(|awake| awake.p50)
        }
        None => None,
    };
    let not_held = loaded.not_held_s();
    idle_s
        .zip(not_held)
        .is_some_and(|(idle_s, rtt_s)| rtt_s.p95 - idle_s < WARNING_S)
}

/// Whether a queue that is far too long brings such a sign about: it overflows, and delays the
/// acknowledgements of the other direction.
pub(crate) fn explains(finding: &Finding, sign: &Sign, direction: Direction) -> bool {
    let first = finding.decisive();
    let increase_s = first
        .and_then(|evidence| evidence.value.number())
        .unwrap_or(0.0);
    let of_its_load = [Some(direction), Some(Direction::Both)].contains(&sign.direction);
    of_its_load
        && match sign.kind {
            Kind::Retransmissions => sign.ratio <= OVERFLOW_RATIO,
            Kind::ProbesLost | Kind::Collapse | Kind::Window => true,
            Kind::Unsteady => increase_s >= SECONDS_APART_S,
            Kind::Stall | Kind::Shortfall => false,
        }
}

/// The increase that the line has to answer for, and the field in which it is written: the increase of its direction,
/// or of round trips where the direction is not known, or where the local network delays too, the part beyond the
/// gateway.
fn on_the_line(
    direction: Direction,
    loaded: Loaded<'_>,
    own_s: Option<f64>,
) -> (f64, &'static str) {
    match (&loaded.result.path, own_s, direction) {
        (Some(path), _, _) if path.local_increase_s.p95 >= WARNING_S => {
            (path.beyond_increase_s.p95, "path.beyond_increase_s.p95")
        }
        (_, Some(own_s), Direction::Up) => (own_s, "one_way.up_s.p95"),
        (_, Some(own_s), _) => (own_s, "one_way.down_s.p95"),
        (_, None, _) => (loaded.result.increase_s.p95, "increase_s.p95"),
    }
}

/// A queue between this host and its gateway.
fn local(case: &Case<'_>, direction: Direction, loaded: Loaded<'_>) -> Option<Finding> {
    let latency = loaded.result;
    let path = latency.path.as_ref()?;
    let gateway = path.places.first()?;
    let increase = path.local_increase_s.p95;
    // A gateway that answers late itself does not delay what passes through it.
    let facts = case.facts(direction).by("up to the gateway");
    let name = "increase of round trips under load";
    if !facts.at_least(name, seconds(increase), WARNING_S) || latency.increase_s.p95 < WARNING_S {
        return None;
    }
    let (cause, doing) = match direction {
        Direction::Up => (Cause::BufferbloatUp, "uploads"),
        _ => (Cause::BufferbloatDown, "downloads"),
    };
    Some(Finding {
        cause,
        place: Place::LocalSegment,
        severity: severity(increase),
        confidence: confidence(loaded).min(LOCAL_CONFIDENCE),
        matters_for: Vec::new(),
        summary: format!(
            "{} fill a queue between this host and its gateway {}, on Wi-Fi or the local network and not on the line: round trips to the gateway go from {} to {}.",
            capital(doing),
            gateway.address,
            human_seconds(gateway.idle_rtt_s.p50),
            human_seconds(gateway.rtt_s.p95),
        ),
        evidence: vec![fact(
            loaded.measurement,
            "path.local_increase_s.p95",
            increase,
            "increase of the 95th percentile to the gateway under load over its idle median",
            WARNING_S,
        )],
        fixes: of_the_segment("the gateway", increase),
        kb: "loaded-latency".to_owned(),
    })
}

/// What to do about a queue of the segment that ends at such a host.
fn of_the_segment(end: &str, increase_s: f64) -> Vec<Fix> {
    vec![Fix::advice(
        Actor::Router,
        "A shaper (SQM) on the line does not reach this queue. On Wi-Fi use a cable instead, the 5 or 6 GHz band, a place nearer to the access point, or an access point whose driver limits queued airtime (AQL) and has FQ-CoDel for each station (Linux's mac80211; OpenWrt has it). On a cable use a faster port.",
        format!(
            "Round trips to {end} under this load at most {} above idle, instead of {}.",
            human_seconds(MANAGED_S),
            human_seconds(increase_s)
        ),
    )]
}

/// Whether the far end is on this host's own segment: no router took from the hop limit of its answers, and they come as
/// fast as a local network's.
fn is_on_the_segment(case: &Case<'_>, loaded: Loaded<'_>) -> bool {
    let idle = case.idle();
    let hop_limits = idle.iter().flat_map(|idle| &idle.result.hop_limits);
    let mut hop_limits = hop_limits.map(|seen| seen.hop_limit).peekable();
    hop_limits.peek().is_some()
        && hop_limits.all(|limit| FIRST_HOP_LIMITS.contains(&limit))
        && loaded.result.idle_rtt_s.min < SEGMENT_RTT_S
}

fn severity(increase_s: f64) -> Severity {
    if increase_s >= CRITICAL_S {
        Severity::Critical
    } else {
        Severity::Warning
    }
}

fn finding(
    case: &Case<'_>,
    direction: Direction,
    loaded: Loaded<'_>,
    own_s: Option<f64>,
) -> Option<Finding> {
    let latency = loaded.result;
    let carried = case.carried_alone(direction);
    let (increase, field) = on_the_line(direction, loaded, own_s);
    let limit_s = limit_s(case, direction);
    let name = "increase of the 95th percentile under load over the idle median";
    if !case
        .facts(direction)
        .at_least(name, seconds(increase), limit_s)
    {
        return None;
    }
    let (cause, place, line, doing) = match direction {
        Direction::Up => (
            Cause::BufferbloatUp,
            Place::Uplink,
            OneDirection::Up,
            "uploads",
        ),
        _ => (
            Cause::BufferbloatDown,
            Place::Downlink,
            OneDirection::Down,
            "downloads",
        ),
    };
    let paced = case.streamed(Experiment::Paced, direction).next();
    let paced = paced.map(|stream| {
        (
            stream,
            stream.standing_s().unwrap_or(0.0) + stream.queue_s(),
        )
    });
    let pass = carried.map_or_else(String::new, |carried| {
        format!(" while {} pass", si(carried.bps(), "bit/s"))
    });
    let on_the_segment = is_on_the_segment(case, loaded);
    let (place, where_) = match on_the_segment {
        true => (
            Place::LocalSegment,
            " on the first hop, on Wi-Fi or the local network",
        ),
        false => (place, ""),
    };
    // A phase too short for a steady rate does not show what the line carries.
    let fixes = match on_the_segment {
        true => of_the_segment("the far end", increase),
        false => carried
            .map(|carried| queue_advice::fixes(line, carried, latency))
            .unwrap_or_default(),
    };
    Some(Finding {
        cause,
        place,
        severity: severity(increase),
        confidence: match paced {
            Some((_, waits_s)) if waits_s < WARNING_S => PROVEN_CONFIDENCE,
            Some(_) => confidence(loaded).min(PERHAPS_CONFIDENCE),
            None => confidence(loaded),
        },
        matters_for: Vec::new(),
        summary: format!(
            "{} fill a queue{where_} and everything else waits in it: round trips go from {} to {}{pass}.",
            capital(doing),
            human_seconds(latency.idle_rtt_s.p50),
            human_seconds(latency.rtt_s.p95),
        ),
        evidence: vec![
            fact(
                loaded.measurement,
                field,
                increase,
                "increase of the 95th percentile under load over the idle median, in the load's own direction where the clocks show it",
                limit_s,
            ),
            fact(
                loaded.measurement,
                "rtt_s.p50",
                latency.rtt_s.p50,
                "median under load, compared with the idle median plus 60 ms",
                latency.idle_rtt_s.p50 + WARNING_S,
            ),
        ]
        .into_iter()
        .chain(paced.map(below_the_rate))
        .collect(),
        fixes,
        kb: "bufferbloat".to_owned(),
    })
}

/// What datagrams waited that leave the line a fifth of its rate.
fn below_the_rate((stream, waits_s): (Streamed<'_>, f64)) -> Evidence {
    fact(
        stream.measurement,
        stream.queue_field(),
        waits_s,
        "wait of datagrams at 80 % of TCP's rate: less than this proves that the queue is the load's own",
        WARNING_S,
    )
}

/// From which increase on a queue is too long, in seconds: on a line so slow that four full packets take longer than the usual
/// limit, no managed queue of four flows is shorter. The line may carry more than TCP did.
fn limit_s(case: &Case<'_>, direction: Direction) -> f64 {
    let Some(load) = case.full_load(direction) else {
        return WARNING_S;
    };
    let line_bps = case.line_bps(direction).unwrap_or(0.0);
    let faster = (line_bps / load.bps().max(f64::MIN_POSITIVE)).max(1.0);
    (FLOWS * load.packet_s() / faster).clamp(WARNING_S, CRITICAL_S)
}

/// A delay that lasts is a queue; one that shows in few probes may be something else.
fn confidence(loaded: Loaded<'_>) -> f64 {
    let latency = loaded.result;
    let lasting = latency.increase_s.p50 >= WARNING_S / 2.0;
    match (lasting, latency.rtt_s.count >= ENOUGH_PROBES) {
        (true, true) => 0.98,
        (true, false) => 0.8,
        (false, true) => 0.7,
        (false, false) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::testing;
    use plumb_model::distribution::Distribution;
    use plumb_model::protocol::Protocol;
    use plumb_model::results::{
        LoadedLatencyResult, Outcome, PathPlace, PathQueueing, PlaceLatency, PlaceMethod,
    };
    use plumb_model::run::HostFacts;

    fn spread(seconds: f64) -> Distribution {
        Distribution::of([seconds; 100]).unwrap()
    }

    /// Where the increase of an upload is said to be.
    fn found(local_s: f64, beyond_s: f64, probed: bool) -> Vec<(Place, Severity)> {
        lasting(15.0, 0.02, local_s, beyond_s, probed)
    }

    /// The same of a phase of so many seconds on a path of that idle round trip.
    fn lasting(
        seconds: f64,
        idle_s: f64,
        local_s: f64,
        beyond_s: f64,
        probed: bool,
    ) -> Vec<(Place, Severity)> {
        let gateway = PlaceLatency {
            place: PathPlace::Gateway,
            address: "192.0.2.1".to_owned(),
            method: PlaceMethod::Echo,
            idle_rtt_s: spread(0.002),
            rtt_s: spread(0.002 + local_s),
            increase_s: spread(local_s),
            loss_ratio: 0.0,
        };
        let latency = LoadedLatencyResult {
            one_way: None,
            direction: Direction::Up,
            protocol: Protocol::Udp,
            idle_rtt_s: spread(idle_s),
            rtt_s: spread(idle_s + local_s + beyond_s),
            increase_s: spread(local_s + beyond_s),
            loss_ratio: 0.0,
            down_bps: None,
            up_bps: None,
            grade: None,
            grade_table: None,
            rpm: None,
            rpm_method: None,
            drain_s: None,
            classes: Default::default(),
            periodic: Vec::new(),
            path: probed.then(|| PathQueueing {
                local_increase_s: gateway.increase_s,
                beyond_increase_s: spread(beyond_s),
                local_ratio: None,
                places: vec![gateway],
            }),
        };
        let mut measured = testing::measurement(Outcome::LoadedLatency(latency));
        measured.duration_s = seconds;
        let case = Case {
            measurements: &[measured],
            local: &HostFacts::default(),
            far: None,
            asked: None,
            log: None,
        };
        let findings = examine(&case, Direction::Up);
        findings.iter().map(|f| (f.place, f.severity)).collect()
    }

    #[test]
    fn the_place_is_where_the_increase_arises() {
        use Place::{LocalSegment, Uplink};
        use Severity::{Critical, Warning};
        assert_eq!(found(0.0, 0.3, false), [(Uplink, Critical)]);
        assert_eq!(found(0.001, 0.3, true), [(Uplink, Critical)]);
        assert_eq!(found(0.3, 0.001, true), [(LocalSegment, Critical)]);
        let both = [(LocalSegment, Critical), (Uplink, Warning)];
        assert_eq!(found(0.3, 0.1, true), both);
        assert_eq!(found(0.01, 0.01, true), []);
    }

    /// An upload to a far end whose answers have this hop limit, and that answers within so long while idle.
    fn towards(hop_limit: u8, idle_s: f64) -> Finding {
        let mut probes = testing::idle(Protocol::Udp, 250, 250, idle_s);
        if let Outcome::Ping(ping) = &mut probes.outcome {
            ping.hop_limits = vec![plumb_model::results::ping::HopLimit {
                hop_limit,
                answers: 250,
            }];
        }
        let run =
            plumb_model::run::Run::from_json(include_str!("../fixtures/policer.json")).unwrap();
        let mut loads = run.measurements;
        loads.retain(|m| m.context.phase == Some(plumb_model::context::Phase::Up));
        for measurement in &mut loads {
            measurement.duration_s = 15.0;
            if let Outcome::LoadedLatency(latency) = &mut measurement.outcome {
                (latency.path, latency.one_way) = (None, None);
                latency.idle_rtt_s = spread(idle_s);
                latency.rtt_s = spread(idle_s + 0.3);
                latency.increase_s = spread(0.3);
            }
        }
        loads.push(probes);
        let case = Case {
            measurements: &loads,
            local: &HostFacts::default(),
            far: None,
            asked: None,
            log: None,
        };
        examine(&case, Direction::Up).remove(0)
    }

    #[test]
    fn no_shaper_is_advised_for_a_queue_of_the_first_hop() {
        let near = towards(64, 0.002);
        assert_eq!(near.place, Place::LocalSegment);
        let fix = &near.fixes[0].summary;
        assert!(fix.contains("AQL") && fix.contains("cable"), "{fix}");
        assert!(near.fixes.iter().all(|fix| fix.action.is_none()));
        for behind_a_line in [towards(63, 0.002), towards(64, 0.02)] {
            assert_eq!(behind_a_line.place, Place::Uplink);
            let fix = &behind_a_line.fixes[0];
            assert!(fix.summary.contains("SQM"), "{}", fix.summary);
        }
    }

    #[test]
    fn what_slow_start_fills_is_no_long_queue() {
        let found = |seconds, idle_s| lasting(seconds, idle_s, 0.0, 0.3, false).len();
        assert_eq!([2.5, 4.0].map(|seconds| found(seconds, 0.02)), [0, 1]);
        // Twelve round trips of 600 ms are 7.2 s.
        assert_eq!([8.0, 15.0].map(|seconds| found(seconds, 0.6)), [0, 1]);
    }
}
