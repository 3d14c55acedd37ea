//! Buffers at the ends that are smaller than what the path can hold.
//!
//! Counted is the time that a sender waited for the receiver's window (`tcpi_rwnd_limited`) or for
//! its own send buffer (`tcpi_sndbuf_limited`, or plumb's own wait where that is more). Where that is a good part of the
//! time, and the buffer is smaller than the path, a larger one carries more; not where what is in flight waits in a queue
//! already, for then the line is full.

use plumb_model::distribution::Distribution;
use plumb_model::finding::{
    Action, Actor, Cause, Evidence, Finding, Fix, Place, Severity, SysctlAction,
};
use plumb_model::formula::{
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, USABLE_BUFFER_RATIO, bandwidth_delay_product,
    buffer_for, largest_window, window_limited_rate,
};
use plumb_model::results::Direction;
use plumb_model::run::{HostFacts, Measurement};
use plumb_model::units::{capital, human_seconds, si};

use crate::evidence::Carried;
use crate::loss::LOSS_WARNING;
use crate::path_to_prepare::{HEADROOM, Prepared, rate_to_prepare};
use crate::signs::{Kind, MIN_RTT_S, Sign, is_line_known_full};
use crate::{Case, lengths, reading};

/// Share of the time spent waiting for a buffer from which on it is a finding. Autotuning lags
/// the sender by a few round trips at the start of every connection, which alone stays below.
const WARNING_RATIO: f64 = 0.3;

/// Share from which on the buffer is what sets the rate.
const CRITICAL_RATIO: f64 = 0.6;

/// A queue of a connection's own is taken for one when it adds this share of the empty path's round trip, and at least
/// [`LEAST_QUEUE_S`], which Wi-Fi adds without any.
const QUEUE_RATIO: f64 = 0.1;

const LEAST_QUEUE_S: f64 = 0.010;

/// Less of the time than this is no waiting, as a share.
const SOME_RATIO: f64 = 0.05;

/// A buffer that several connections fill the line with is worth a word where one of them alone carries less than this share
/// of it.
const ALONE_RATIO: f64 = 0.5;

/// Buffers of one side that hold back what goes up, and what comes down.
pub(crate) fn examine(case: &Case<'_>, side: Side) -> Vec<Finding> {
    [Direction::Up, Direction::Down]
        .into_iter()
        .filter_map(|direction| case.carried_alone(direction))
        .filter(|carried| !reading::is_held_on_purpose(carried.measurement))
        .filter_map(|carried| finding(case, side, carried))
        .collect()
}

/// Whether a finding of such a buffer accounts for a sign: for the senders' waiting in the phase that it was found in.
pub(crate) fn explains(finding: &Finding, sign: &Sign) -> bool {
    let first = finding.evidence.first();
    sign.kind == Kind::Window && first.is_some_and(|e| e.measurement == sign.evidence.measurement)
}

/// Whose buffer it is.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl Side {
    /// Whether it is this host where that direction is loaded.
    fn is_here(self, direction: Direction) -> bool {
        matches!(
            (self, direction),
            (Side::Sender, Direction::Up) | (Side::Receiver, Direction::Down)
        )
    }

    fn host<'a>(self, case: &Case<'a>, direction: Direction) -> Option<&'a HostFacts> {
        match self.is_here(direction) {
            true => Some(case.local),
            false => case.far,
        }
    }
}

/// Whether a sender's buffer has grown as far as its host lets it.
fn has_largest(case: &Case<'_>, side: Side, carried: Carried<'_>) -> bool {
    let largest = side
        .host(case, carried.result.direction)
        .and_then(|host| limits(host, side))
        .map(|[_, _, most]| most as f64);
    let held = carried.result.tcp.send_buffer_bytes.map(|held| held as f64);
    let grown = largest
        .zip(held)
        .is_some_and(|(most, held)| held >= GROWN_RATIO * most);
    matches!(side, Side::Sender) && grown
}

fn finding(case: &Case<'_>, side: Side, carried: Carried<'_>) -> Option<Finding> {
    let Carried {
        measurement,
        result,
    } = carried;
    let (cause, key, what) = match side {
        Side::Sender => (Cause::SendBufferSmall, "net.ipv4.tcp_wmem", "send buffer"),
        Side::Receiver => (
            Cause::ReceiveBufferSmall,
            "net.ipv4.tcp_rmem",
            "receive buffer",
        ),
    };
    let Waiting {
        ratio,
        rtt,
        field,
        rule,
    } = match result.tcp.min_rtt_s {
        Some(rtt) => Waiting::counted(carried, side, rtt),
        None => Waiting::inferred(case, carried, side)?,
    };
    let is_full = match case.line_bps(result.direction) {
        Some(_) => is_line_known_full(case, carried),
        None => is_queueing(measurement, rtt),
    };
    // Without scaling a window is at most 64 KiB, however large the buffer is.
    let is_unscaled = matches!(side, Side::Receiver) && result.tcp.window_scaling == Some(false);
    // Several connections fill the line and hardly wait, each with all that it may have: one alone would wait.
    let is_largest = is_full && ratio >= SOME_RATIO && has_largest(case, side, carried);
    if ratio < WARNING_RATIO && !is_largest || rtt < MIN_RTT_S || is_unscaled {
        return None;
    }
    // A full line takes no more, but one connection alone may not fill it.
    let alone_bps = alone_bps(carried, side, rtt).filter(|_| is_full);
    if is_full && alone_bps.is_none() {
        return None;
    }
    // A buffer full of what is being retransmitted is not too small, and one that is still growing may
    // become large enough.
    let grown_s = lengths::buffers_s(rtt, result.tcp.max_in_flight_bytes as f64);
    let is_known = result.tcp.min_rtt_s.is_some();
    if measurement.duration_s < grown_s || is_known && is_losing(carried) {
        return None;
    }
    let here = side.is_here(result.direction);
    let (place, actor) = match here {
        true => (Place::ThisHost, Actor::ThisHost),
        false => (Place::FarHost, Actor::FarHost),
    };
    let host = side.host(case, result.direction);
    let target = match is_full {
        true => Prepared {
            bps: carried.bps(),
            shown: true,
        },
        false => rate_to_prepare(case.measurements, result.direction, result.bps),
    };
    let target_bps = target.bps;
    let needed = bandwidth_delay_product(target_bps, rtt);
    let largest = host.and_then(|h| limits(h, side)).map(|[_, _, max]| max);
    // What the kernel may use is already enough for one flow to fill the path: not the buffer.
    if largest.is_some_and(|max| max as f64 * USABLE_BUFFER_RATIO >= needed) {
        return None;
    }
    let whose = if here {
        "this host's"
    } else {
        "the far host's"
    };
    let waits = (ratio >= WARNING_RATIO).then(|| Evidence {
        measurement: measurement.id.clone(),
        field: field.to_owned(),
        value: ratio.into(),
        rule: rule.to_owned(),
        threshold: WARNING_RATIO.into(),
    });
    let mut evidence: Vec<Evidence> = waits.into_iter().collect();
    let (held, held_field, held_name) = match side {
        Side::Sender => (
            result.tcp.send_buffer_bytes,
            "result.tcp.send_buffer_bytes",
            "send buffer",
        ),
        Side::Receiver => (
            result.tcp_receiver.max_window_bytes,
            "result.tcp_receiver.max_window_bytes",
            "largest receive window",
        ),
    };
    if let Some(held) = held {
        evidence.push(Evidence {
            measurement: measurement.id.clone(),
            field: held_field.to_owned(),
            value: (held as f64).into(),
            rule: format!(
                "{held_name}, against the bandwidth-delay product of {} and {}",
                match target.shown {
                    true => si(target_bps, "bit/s"),
                    false => format!("{HEADROOM:.0} times the rate reached"),
                },
                human_seconds(rtt)
            ),
            threshold: needed.into(),
        });
    }
    Some(Finding {
        cause,
        place,
        severity: match ratio {
            _ if is_full => Severity::Info,
            CRITICAL_RATIO.. => Severity::Critical,
            _ => Severity::Warning,
        },
        confidence: if largest.is_some() && is_known {
            0.95
        } else {
            0.8
        },
        matters_for: Vec::new(),
        summary: match alone_bps {
            None => format!(
                "{} {what} is smaller than the path: {}loads reach {} and wait for it {:.0} % of the time; {}.",
                capital(whose),
                result.direction.name(),
                si(result.bps, "bit/s"),
                ratio * 100.0,
                wants(target, rtt, needed),
            ),
            Some(alone_bps) => format!(
                "{} {what} holds one connection to {} of the {} that {} connections {}load; {}.",
                capital(whose),
                si(alone_bps, "bit/s"),
                si(target.bps, "bit/s"),
                result.streams.len(),
                result.direction.name(),
                wants(target, rtt, needed),
            ),
        },
        evidence,
        fixes: vec![fix(
            actor,
            side,
            host,
            key,
            what,
            &Wanted {
                needed,
                target,
                rtt,
            },
        )],
        kb: "tcp-buffers".to_owned(),
    })
}

/// How much a sender waits for a buffer.
struct Waiting {
    /// Share of the time.
    ratio: f64,
    /// Round trip of the empty path, in seconds.
    rtt: f64,
    field: &'static str,
    rule: &'static str,
}

impl Waiting {
    /// As the sender's kernel counts it.
    fn counted(carried: Carried<'_>, side: Side, rtt: f64) -> Self {
        let limited = carried.result.tcp.limited;
        let (ratio, field, rule) = match side {
            Side::Sender => (
                limited.sndbuf_ratio,
                "result.tcp.limited.sndbuf_ratio",
                "share of time waiting for the send buffer",
            ),
            Side::Receiver => (
                limited.rwnd_ratio,
                "result.tcp.limited.rwnd_ratio",
                "share of time waiting for the receive buffer",
            ),
        };
        Self {
            ratio,
            rtt,
            field,
            rule,
        }
    }

    /// Of a download whose sender reports nothing: each connection carries in a round trip what this host's buffer, which has
    /// grown as far as it may, lets be in flight, and no queue fills.
    fn inferred(case: &Case<'_>, carried: Carried<'_>, side: Side) -> Option<Self> {
        let result = carried.result;
        if !matches!((side, result.direction), (Side::Receiver, Direction::Down)) {
            return None;
        }
        let [_, _, most] = case.local.tcp_rmem_bytes?;
        let held = result.tcp_receiver.receive_buffer_bytes?;
        let rtt = case.idle()?.result.rtt_s?.p50;
        let loaded = case.loaded(result.direction)?.result.rtt_s.p50;
        let grows = loaded - rtt > LEAST_QUEUE_S.max(QUEUE_RATIO * rtt);
        let each_bps = carried.bps() / carried.streams().max(1.0);
        let allowed_bps = window_limited_rate(held as f64 * RECEIVE_WINDOW_RATIO, rtt);
        let ratio = each_bps / allowed_bps;
        let waits = held as f64 >= GROWN_RATIO * most as f64 && !grows && ratio >= CARRIED_RATIO;
        waits.then_some(Self {
            ratio: ratio.min(1.0),
            rtt,
            field: "result.tcp_receiver.receive_buffer_bytes",
            rule: "what each connection carries in a round trip, of what its receive buffer lets be in flight",
        })
    }
}

/// A buffer of this share of the most that the kernel allows has grown as far as it may.
const GROWN_RATIO: f64 = 0.9;

/// What a connection carries that waits for its window nearly all the time, as a share of what the window allows: slow start and
/// the kernel's overhead for each packet take the rest.
const CARRIED_RATIO: f64 = 0.75;

/// What one of several connections carries with its buffer on the empty path, in bit/s, where that is a small part of what
/// they carried together.
fn alone_bps(carried: Carried<'_>, side: Side, rtt_s: f64) -> Option<f64> {
    let result = carried.result;
    let window = match side {
        Side::Sender => result.tcp.send_buffer_bytes? as f64 * SEND_WINDOW_RATIO,
        Side::Receiver => result.tcp_receiver.max_window_bytes? as f64,
    };
    let bps = window_limited_rate(window, rtt_s);
    let is_small = result.streams.len() > 1 && bps < ALONE_RATIO * carried.bps();
    is_small.then_some(bps)
}

/// What must be in flight, and for which rate: the line's own is known only where another direction
/// showed it.
fn wants(target: Prepared, rtt_s: f64, needed: f64) -> String {
    let (rate, rtt, needed) = (
        si(target.bps, "bit/s"),
        human_seconds(rtt_s),
        si(needed, "B"),
    );
    match target.shown {
        true => format!("to fill {rate} over {rtt} takes {needed} in flight"),
        false => format!(
            "how much more the line carries is not known, and {HEADROOM:.0} times as much over {rtt} would take {needed} in flight"
        ),
    }
}

/// Whether nothing arrives, or so much is retransmitted that the sender waits for it to arrive.
fn is_losing(carried: Carried<'_>) -> bool {
    carried
        .segments()
        .is_none_or(|segments| segments.ratio() > LOSS_WARNING || segments.sent <= segments.again)
}

/// Whether what is in flight waited in a queue for most of the time: more of it would only wait longer.
fn is_queueing(measurement: &Measurement, empty_rtt_s: f64) -> bool {
    let smoothed = measurement.series.get("srtt_s");
    let usual = smoothed.and_then(|s| Distribution::of(s.points().map(|(_, rtt)| rtt)));
    usual.is_some_and(|rtt| rtt.p50 - empty_rtt_s > LEAST_QUEUE_S.max(QUEUE_RATIO * empty_rtt_s))
}

fn limits(host: &HostFacts, side: Side) -> Option<[u64; 3]> {
    match side {
        Side::Sender => host.tcp_wmem_bytes,
        Side::Receiver => host.tcp_rmem_bytes,
    }
}

/// What a buffer is to allow.
struct Wanted {
    needed: f64,
    /// The rate that takes so many.
    target: Prepared,
    /// Round trip of the empty path, in seconds.
    rtt: f64,
}

impl Wanted {
    /// What one connection carries once a buffer has grown to that size.
    fn carried(&self, side: Side, buffer_bytes: u64) -> f64 {
        let ratio = match side {
            Side::Sender => SEND_WINDOW_RATIO,
            Side::Receiver => RECEIVE_WINDOW_RATIO,
        };
        let window = (buffer_bytes as f64 * ratio).min(largest_window());
        window_limited_rate(window, self.rtt).min(self.target.bps)
    }
}

fn fix(
    actor: Actor,
    side: Side,
    host: Option<&HostFacts>,
    key: &str,
    what: &str,
    wanted: &Wanted,
) -> Fix {
    // Defaults of the kernel (`tcp_init`) stand in for a host that did not tell.
    let [least, initial, largest] = host.and_then(|h| limits(h, side)).unwrap_or(match side {
        Side::Sender => [4096, 16_384, 4 << 20],
        Side::Receiver => [4096, 131_072, 6 << 20],
    });
    // No larger than kernels take, which may be less than the path needs.
    let proposal = buffer_for(wanted.needed);
    let each = wanted.carried(side, proposal);
    let target = si(wanted.target.bps, "bit/s");
    // What nobody saw the line carry is not promised.
    let (several, one) = match wanted.target.shown {
        true => (
            format!(
                "{:.0} side by side carry {target}",
                (wanted.target.bps / each).ceil()
            ),
            format!("about {target}"),
        ),
        false => (
            "several side by side carry more".to_owned(),
            "more".to_owned(),
        ),
    };
    if largest >= proposal {
        return Fix {
            on: actor,
            summary: format!(
                "The {what} may grow to {} already, which is as much as a kernel takes: use several connections side by side.",
                si(largest as f64, "B")
            ),
            action: None,
            commands: Vec::new(),
            expect: format!(
                "One connection carries about {} at most; {several}, if the line and the other end can.",
                si(each, "bit/s")
            ),
        };
    }
    Fix {
        on: actor,
        summary: format!(
            "Let the kernel's {what} grow to {}; it grows only as far as a connection needs.",
            si(proposal as f64, "B")
        ),
        action: Some(Action::Sysctl(SysctlAction {
            key: key.to_owned(),
            value: format!("{least} {initial} {proposal}"),
        })),
        commands: Vec::new(),
        expect: if each < wanted.target.bps {
            format!(
                "No kernel takes more, with which one connection can carry about {} at most; {several}, if the line and the other end can.",
                si(each, "bit/s")
            )
        } else {
            format!("One connection can then carry {one}, if the line and the other end can.")
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_model::results::Outcome;
    use plumb_model::series::{Series, Unit};

    use super::*;
    use crate::testing::{beside_gateway, carrying, idle_spread, measurement};

    /// Findings of a download that waits for the window of this host nearly all the time, of so many bit/s over
    /// 150 ms while round trips take so long, with a receive buffer that may grow so far.
    fn findings(bps: f64, smoothed_rtt_s: f64, largest_bytes: u64) -> Vec<Finding> {
        lasting(20.0, bps, smoothed_rtt_s, largest_bytes, 0)
    }

    /// The same of a phase of so many seconds, in which so many segments were retransmitted.
    fn lasting(
        seconds: f64,
        bps: f64,
        smoothed_rtt_s: f64,
        largest_bytes: u64,
        retransmits: u64,
    ) -> Vec<Finding> {
        of_streams(
            0,
            [seconds, bps, smoothed_rtt_s],
            largest_bytes,
            retransmits,
        )
    }

    /// The same of several streams.
    fn of_streams(
        streams: u32,
        [seconds, bps, smoothed_rtt_s]: [f64; 3],
        largest_bytes: u64,
        retransmits: u64,
    ) -> Vec<Finding> {
        let stream = |id| serde_json::json!({ "id": id, "bytes": 0, "bps": 0.0, "retransmits": 0, "error": null });
        let streams: Vec<_> = (0..streams).map(stream).collect();
        let result = serde_json::json!({
            "direction": "down", "protocol": "tcp", "bps": bps, "steady_bps": bps * 1.17, "bytes": (bps * seconds / 8.0) as u64, "cc": "cubic",
            "streams": streams,
            "tcp": {
                "retransmits": retransmits, "min_rtt_s": 0.150, "max_srtt_s": 0.2, "mss_bytes": 1448,
                "send_buffer_bytes": null, "max_in_flight_bytes": 22_000_000,
                "limited": { "rwnd_ratio": 0.9, "sndbuf_ratio": 0.0, "app_ratio": 0.0, "network_ratio": 0.1 }
            },
            "tcp_receiver": { "receive_buffer_bytes": 33_554_432, "max_window_bytes": 22_000_000 },
            "cpu": { "local_ratio": 0.1, "remote_ratio": null }
        });
        let result = serde_json::from_value(result).unwrap();
        let mut measurement = measurement(Outcome::Throughput(result));
        measurement.duration_s = seconds;
        let mut rtt = Series::new(Unit::Seconds);
        for step in 0..20 {
            // Slow start takes the first of them.
            let now = if step < 4 { 0.150 } else { smoothed_rtt_s };
            rtt.push(f64::from(step), Some(now));
        }
        measurement.series.insert("srtt_s".to_owned(), rtt);
        let local = HostFacts {
            tcp_rmem_bytes: Some([4096, 131_072, largest_bytes]),
            ..HostFacts::default()
        };
        let case = Case {
            measurements: &[measurement],
            local: &local,
            far: None,
            asked: None,
        };
        examine(&case, Side::Receiver)
    }

    fn causes(smoothed_rtt_s: f64) -> Vec<Cause> {
        let found = findings(804e6, smoothed_rtt_s, 33_554_432);
        found.into_iter().map(|finding| finding.cause).collect()
    }

    #[test]
    fn what_no_kernel_takes_is_not_promised() {
        let fix = |largest| {
            let mut found = findings(20e9, 0.150, largest);
            found
                .pop()
                .and_then(|mut finding| finding.fixes.pop())
                .unwrap()
        };
        let capped = fix(33_554_432);
        assert!(
            matches!(&capped.action, Some(Action::Sysctl(set)) if set.value.ends_with(" 2147483647")),
            "{capped:?}"
        );
        // The largest window of TCP, 1 GiB, over 150 ms.
        assert!(
            capped.expect.contains(
                "one connection can carry about 57.3 Gbit/s at most; several side by side"
            ),
            "{capped:?}"
        );
        let already = fix((1 << 31) - 1);
        assert!(
            already.action.is_none() && already.expect.contains("57.3 Gbit/s at most"),
            "{already:?}"
        );
    }

    #[test]
    fn a_phase_too_short_for_a_window_to_grow_accuses_no_buffer() {
        // Eight doublings of 64 KiB, twice, at 150 ms, after the first two seconds.
        let short = |seconds| lasting(seconds, 804e6, 0.151, 33_554_432, 0).len();
        assert_eq!([1.3, 4.0, 5.0].map(short), [0, 0, 1]);
    }

    #[test]
    fn a_buffer_full_of_what_is_sent_again_is_not_too_small() {
        let segments = 804e6 * 20.0 / 8.0 / 1448.0;
        let losing = |share: f64| {
            let again = (segments * share) as u64;
            lasting(20.0, 804e6, 0.151, 33_554_432, again).len()
        };
        assert_eq!([0.0005, 0.037].map(losing), [1, 0]);
    }

    #[test]
    fn a_rate_that_nobody_saw_is_not_printed() {
        let found = findings(804e6, 0.151, 33_554_432);
        let finding = found.first().unwrap();
        assert!(
            finding.summary.contains("the line carries is not known"),
            "{finding:?}"
        );
        let text = serde_json::to_string(finding).unwrap();
        assert!(text.contains("804 Mbit/s"), "{text}");
        assert!(!text.contains("Gbit/s"), "{text}");
    }

    #[test]
    fn a_window_that_fills_the_line_several_times_over_is_worth_a_word() {
        // 22 MB over 150 ms are 1.17 Gbit/s.
        let found = |streams, bps| of_streams(streams, [20.0, bps, 0.185], 33_554_432, 0);
        let four = found(4, 4e9).pop().unwrap();
        assert_eq!(four.severity, Severity::Info);
        assert!(
            four.summary.contains("holds one connection to 1.17 Gbit/s"),
            "{}",
            four.summary
        );
        assert!(found(1, 4e9).is_empty() && found(4, 1e9).is_empty());
    }

    #[test]
    fn a_download_whose_sender_reports_nothing_is_compared_with_what_its_buffer_allows() {
        let found = |bps: f64, held: u64| {
            let mut load = carrying(Direction::Down, bps);
            if let Outcome::Throughput(result) = &mut load.outcome {
                result.tcp.min_rtt_s = None;
                result.tcp.limited.network_ratio = 0.0;
                result.tcp_receiver.receive_buffer_bytes = Some(held);
            }
            let local = HostFacts {
                tcp_rmem_bytes: Some([4096, 32_768, 63_530]),
                ..HostFacts::default()
            };
            let case = Case {
                measurements: &[
                    idle_spread(0.090, 0.0001),
                    beside_gateway(0.090, 0.0001),
                    load,
                ],
                local: &local,
                far: None,
                asked: None,
            };
            examine(&case, Side::Receiver)
        };
        // 65 % of 63.5 kB over 90 ms are 3.67 Mbit/s.
        let [finding] = &found(3.4e6, 63_530)[..] else {
            panic!("one");
        };
        assert_eq!(
            (finding.place, finding.severity, finding.confidence),
            (Place::ThisHost, Severity::Critical, 0.8)
        );
        assert!(found(1.5e6, 63_530).is_empty());
        assert!(found(3.4e6, 40_000).is_empty(), "it may still grow");
    }

    #[test]
    fn a_window_that_fills_a_queue_is_large_enough() {
        assert_eq!(causes(0.151), [Cause::ReceiveBufferSmall]);
        assert_eq!(causes(0.160), [Cause::ReceiveBufferSmall]);
        assert_eq!(causes(0.185), []);
    }
}
