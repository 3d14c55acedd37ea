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
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, bandwidth_delay_product, buffer_for, largest_window,
    window_limited_rate,
};
use plumb_model::results::Direction;
use plumb_model::run::{HostFacts, Measurement};
use plumb_model::units::{capital, human_seconds, si};

use crate::evidence::Carried;
use crate::facts::{bytes, ratio as share_of, seconds};
use crate::loss::LOSS_WARNING;
use crate::path_to_prepare::{HEADROOM, Prepared, rate_to_prepare};
use crate::signs::{Kind, MIN_RTT_S, Sign, is_line_known_full, queue_stands};
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
    let first = finding.decisive();
    sign.kind == Kind::Window && first.is_some_and(|e| e.measurement == sign.evidence.measurement)
}

/// Whose buffer it is.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl Side {
    /// Share of its buffer that is window.
    fn window_ratio(self) -> f64 {
        match self {
            Side::Sender => SEND_WINDOW_RATIO,
            Side::Receiver => RECEIVE_WINDOW_RATIO,
        }
    }

    /// Whether it is this host where that direction is loaded.
    fn is_here(self, direction: Direction) -> bool {
        matches!(
            (self, direction),
            (Side::Sender, Direction::Up) | (Side::Receiver, Direction::Down)
        )
    }

    /// What is waited for, as a fact has it.
    fn waited(self) -> &'static str {
        match self {
            Side::Sender => "time that senders wait for their own buffer",
            Side::Receiver => "time that senders wait for the receiver's window",
        }
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
    let facts = case.facts(result.direction);
    let waits = is_largest || facts.at_least(side.waited(), share_of(ratio), WARNING_RATIO);
    if !waits
        || !facts.at_least("round trip of the empty path", seconds(rtt), MIN_RTT_S)
        || !facts.is("windows are scaled", !is_unscaled)
    {
        return None;
    }
    // A full line takes no more, but one connection alone may not fill it.
    let alone_bps = alone_bps(carried, side, rtt).filter(|_| is_full);
    let has_room = !is_full || alone_bps.is_some();
    if !facts.is("the line is not full", has_room) {
        return None;
    }
    // A buffer full of what is being retransmitted is not too small, and one that is still growing may
    // become large enough.
    let grown_s = lengths::buffers_s(rtt, result.tcp.max_in_flight_bytes as f64);
    let is_known = result.tcp.min_rtt_s.is_some();
    let length = seconds(measurement.duration_s);
    if !facts.at_least(
        "length of the load, so that buffers have grown",
        length,
        grown_s,
    ) || !facts.is(
        "what waits is not being retransmitted",
        !(is_known && is_losing(carried)),
    ) {
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
    let window = largest.map(|max| bytes(max as f64 * side.window_ratio()));
    if window.is_some_and(|window| !facts.below("window that the kernel allows", window, needed)) {
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
            // All together they just fill the line, and nothing waits in its queue: fewer of them do not fill it.
            CRITICAL_RATIO.. if is_full && !queue_stands(carried) => Severity::Warning,
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
        let window = (buffer_bytes as f64 * side.window_ratio()).min(largest_window());
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
    // Defaults of the kernel (`tcp_init`) are used for a host that did not report its own.
    let [least, initial, largest] = host.and_then(|h| limits(h, side)).unwrap_or(match side {
        Side::Sender => [4096, 16_384, 4 << 20],
        Side::Receiver => [4096, 131_072, 6 << 20],
    });
    // No larger than kernels take, which may be less than the path needs.
    let proposal = buffer_for(wanted.needed);
    let each = wanted.carried(side, proposal);
    let target = si(wanted.target.bps, "bit/s");
    // A rate that the line was not seen to carry is not promised.
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
mod tests;
