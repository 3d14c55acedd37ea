//! Queues that delay everything while the path is loaded in one direction.
//!
//! When only one direction carries data, the other carries nothing but acknowledgements: a
//! round trip that grows under that load waits in a queue of the loaded direction. Where the gateway
//! was probed too, what it adds up to there tells Wi-Fi and the local network from the line.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{Action, Actor, Cause, Finding, Fix, Place, Severity, ShaperAction};
use plumb_model::grade::Grade;
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds, si};

use crate::Case;
use crate::evidence::{Carried, Loaded, fact};
use crate::signs::{Kind, Sign};

/// An increase from here on is a finding, in seconds: below it DSLReports still grades B, and
/// a game or call (one packet every 16 to 20 ms) loses only a few packets' time.
const WARNING_S: f64 = 0.060;

/// From here on the grade is D or F: conversations break.
const CRITICAL_S: f64 = 0.200;

/// A router answers echo requests with less care than it forwards packets, so that its round trips
/// alone never make a place quite sure.
const LOCAL_CONFIDENCE: f64 = 0.9;

/// Round trips below this number leave a percentile uncertain.
const ENOUGH_PROBES: u64 = 50;

/// Share of the line's rate that a shaper may use, so that the queue forms in it and not in
/// the modem.
const SHAPED_RATIO: f64 = 0.95;

/// A full-size packet, its TCP payload with timestamps (RFC 7323), and what Ethernet or DOCSIS
/// adds to it: headers and checksum, as tc-cake(8) counts them under `docsis`.
const PACKET_BYTES: f64 = 1500.0;
const PAYLOAD_BYTES: f64 = 1448.0;
const FRAMING_BYTES: i16 = 18;
const MPU_BYTES: u16 = 64;

/// Rates are proposed in whole steps of this many bits a second.
const RATE_STEP_BPS: f64 = 100_000.0;

/// Share of segments that a queue which is far too long loses when it overflows.
const OVERFLOW_RATIO: f64 = 0.05;

/// What a managed queue leaves of the increase, in seconds: two CoDel targets (RFC 8289) of
/// 5 ms each way, the packets being served, and the other side.
const MANAGED_S: f64 = 0.030;

/// Queues that a load in `direction` fills: on the local network, and on the line.
pub(crate) fn examine(case: &Case<'_>, direction: Direction) -> Vec<Finding> {
    let loaded = case.loaded(direction);
    let Some(loaded) = loaded.filter(|loaded| loaded.shows_queue()) else {
        return Vec::new();
    };
    let on_the_line = finding(direction, loaded, case.carried_alone(direction));
    local(direction, loaded)
        .into_iter()
        .chain(on_the_line)
        .collect()
}

/// Whether a queue that is far too long brings such a sign about: it overflows, and delays the
/// acknowledgements of the other direction.
pub(crate) fn explains(sign: &Sign, direction: Direction) -> bool {
    let of_its_load = [Some(direction), Some(Direction::Both)].contains(&sign.direction);
    of_its_load
        && match sign.kind {
            Kind::Retransmissions => sign.ratio <= OVERFLOW_RATIO,
            Kind::ProbesLost | Kind::Collapse | Kind::Window => true,
            Kind::Stall | Kind::Unsteady => false,
        }
}

/// The increase that the line has to answer for, and where it is written: all of it, or where the
/// local network delays too, what arose beyond the gateway.
fn on_the_line(loaded: Loaded<'_>) -> (f64, &'static str) {
    match &loaded.result.path {
        Some(path) if path.local_increase_s.p95 >= WARNING_S => {
            (path.beyond_increase_s.p95, "path.beyond_increase_s.p95")
        }
        _ => (loaded.result.increase_s.p95, "increase_s.p95"),
    }
}

/// A queue between this host and its gateway.
fn local(direction: Direction, loaded: Loaded<'_>) -> Option<Finding> {
    let latency = loaded.result;
    let path = latency.path.as_ref()?;
    let gateway = path.places.first()?;
    let increase = path.local_increase_s.p95;
    // A gateway that answers late itself does not delay what passes through it.
    if increase < WARNING_S || latency.increase_s.p95 < WARNING_S {
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
        fixes: vec![Fix::advice(
            Actor::Router,
            "Make the local segment faster than the line or manage its queue: a cable instead of Wi-Fi, the 5 or 6 GHz band, an access point nearer by, or one whose driver queues fairly for each station (Linux's mac80211 with FQ-CoDel; OpenWrt has it). A shaper on the line does not reach this queue.",
            format!(
                "Round trips to the gateway under this load at most {} above idle, instead of {}.",
                human_seconds(MANAGED_S),
                human_seconds(increase)
            ),
        )],
        kb: "loaded-latency".to_owned(),
    })
}

fn severity(increase_s: f64) -> Severity {
    if increase_s >= CRITICAL_S {
        Severity::Critical
    } else {
        Severity::Warning
    }
}

fn finding(
    direction: Direction,
    loaded: Loaded<'_>,
    carried: Option<Carried<'_>>,
) -> Option<Finding> {
    let latency = loaded.result;
    let (increase, field) = on_the_line(loaded);
    if increase < WARNING_S {
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
    let pass = carried.map_or_else(String::new, |carried| {
        format!(" while {} pass", si(carried.bps(), "bit/s"))
    });
    Some(Finding {
        cause,
        place,
        severity: severity(increase),
        confidence: confidence(loaded),
        matters_for: Vec::new(),
        summary: format!(
            "{} fill a queue and everything else waits in it: round trips go from {} to {}{pass}.",
            capital(doing),
            human_seconds(latency.idle_rtt_s.p50),
            human_seconds(latency.rtt_s.p95),
        ),
        evidence: vec![
            fact(
                loaded.measurement,
                field,
                increase,
                "increase of the 95th percentile under load over the idle median",
                WARNING_S,
            ),
            fact(
                loaded.measurement,
                "rtt_s.p50",
                latency.rtt_s.p50,
                "median under load, compared with the idle median plus 60 ms",
                latency.idle_rtt_s.p50 + WARNING_S,
            ),
        ],
        // A phase too short for a steady rate does not tell what the line carries.
        fixes: carried
            .and_then(|carried| carried.result.steady_bps)
            .map(|rate| fixes(line, rate, latency.increase_s.p95))
            .unwrap_or_default(),
        kb: "bufferbloat".to_owned(),
    })
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

fn fixes(direction: OneDirection, payload_bps: f64, increase_s: f64) -> Vec<Fix> {
    let line_bps = payload_bps * (PACKET_BYTES + f64::from(FRAMING_BYTES)) / PAYLOAD_BYTES;
    let rate_bps = (line_bps * SHAPED_RATIO / RATE_STEP_BPS).floor() * RATE_STEP_BPS;
    if rate_bps < RATE_STEP_BPS {
        return Vec::new();
    }
    let grade = Grade::of_increase(MANAGED_S * 0.99);
    vec![
        Fix::advice(
            Actor::Router,
            format!(
                "Shape the {} to {} on the router, just below the line, and manage the queue that then forms there with FQ-CoDel.",
                match direction { OneDirection::Up => "upload", OneDirection::Down => "download" },
                si(rate_bps, "bit/s"),
            ),
            format!(
                "Round trips under this load at most {} above idle, instead of {}; grade {} or better; {} % of the rate.",
                human_seconds(MANAGED_S),
                human_seconds(increase_s),
                grade.name(),
                SHAPED_RATIO * 100.0,
            ),
        )
        .by(Action::Shaper(ShaperAction {
            direction,
            rate_bps: rate_bps as u64,
            overhead_bytes: FRAMING_BYTES,
            mpu_bytes: MPU_BYTES,
            qdisc: "fq_codel".to_owned(),
        })),
        Fix::advice(
            Actor::Provider,
            "Ask the provider for queue management in the modem and the access node: DOCSIS-PIE (RFC 8034) is a line in a cable modem's configuration.",
            "The same, without giving up any of the rate.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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

    #[test]
    fn what_slow_start_fills_is_no_long_queue() {
        let found = |seconds, idle_s| lasting(seconds, idle_s, 0.0, 0.3, false).len();
        assert_eq!([2.5, 4.0].map(|seconds| found(seconds, 0.02)), [0, 1]);
        // Twelve round trips of 600 ms are 7.2 s.
        assert_eq!([8.0, 15.0].map(|seconds| found(seconds, 0.6)), [0, 1]);
    }
}
