//! Signs that a path is not healthy, whatever their cause: segments retransmitted though no queue of the
//! load's own fills, stalls, rates that collapse or vary, probes that are lost.
//!
//! A loss-based congestion control loses packets on every healthy line: it sends faster until the
//! queue is full. So what is retransmitted is explained where a queue of the load's own stands all the time,
//! the rate is steady, which says that the line is full, and no more is lost than that many streams of that
//! window need to learn it. Otherwise something else loses packets.

mod full;
mod port;
mod shares;

use plumb_model::finding::{Evidence, Severity};
use plumb_model::loss::at_least_ratio;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::evidence::{Carried, fact, fact_of_series};
use crate::loss::shows_loss;
use crate::{Case, lengths};
pub(crate) use full::{
    FULL_RATIO, is_held_by_losses, is_line_known_full, needed_ratio, queue_stands, waits,
    waits_there,
};
use full::{NEEDED_TIMES, NEGLIGIBLE_RATIO, is_explained_by_load, is_full};
pub(crate) use port::{full_port_bps, port_carries_bps};
pub(crate) use shares::percent;

/// From this share on they cost every use of the path: CUBIC's windows fall below 13 segments
/// (√(1.5 / 1 %)).
pub(crate) const COSTLY_RATIO: f64 = 0.01;

/// No payload of any stream for this long is a stall, in seconds: above the first doubled
/// retransmission timeouts (200 and 400 ms on Linux), which a full queue causes too.
const STALL_S: f64 = 1.0;

/// Full packets that a slow line takes no longer than that for.
const STALL_PACKETS: f64 = 20.0;

/// A rate whose slow seconds (5th percentile) are below this share of its fast ones (95th) varies more
/// than the congestion controls of four streams make it.
pub(crate) const STEADY_RATIO: f64 = 0.5;

/// Seconds that a rate must be seen for this.
const STEADY_NEEDS: u64 = 8;

/// Loaded both ways a path carries at least as much as the better direction alone, also where both
/// share one medium; below half of it the directions destroy each other's packets.
const COLLAPSE_RATIO: f64 = 0.5;

/// A direction that carries less than this share of what it does alone is crowded out by the other one's packets.
const CROWDED_RATIO: f64 = 0.5;

/// An acknowledgement for every second segment takes this share of a transfer's bits (52 to 66 bytes against two segments of
/// 1448), and may take the other direction's line to this share without being its load.
pub(crate) const ACKNOWLEDGED_RATIO: f64 = 0.023;
const ACKNOWLEDGEMENTS_RATIO: f64 = 0.1;

/// TCP carries at least this share of a line that it fills: 0.85 with short and managed queues, less what two seconds of datagrams
/// vary by.
const SHORTFALL_RATIO: f64 = 0.75;

/// A line that stays half empty is no matter of how TCP is tuned.
const HALF: f64 = 0.5;

/// Share of time that senders wait for a window from which on that sets their rate.
pub(crate) const WINDOW_RATIO: f64 = 0.3;

/// Below this round trip, in seconds, a waiting sender waits for a slow reader or processor
/// rather than for a window: at 5 ms the 6 MB default of a receive buffer passes 5 Gbit/s.
pub(crate) const MIN_RTT_S: f64 = 0.005;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Too many segments are retransmitted.
    Retransmissions,
    /// Nothing arrives for a time.
    Stall,
    Unsteady,
    /// Both directions at once carry far less than one, or one of them far less than alone.
    Collapse,
    /// Senders wait for a window.
    Window,
    /// TCP carries far less than datagrams show the line to carry.
    Shortfall,
    ProbesLost,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sign {
    pub(crate) kind: Kind,
    /// Direction of the load; `None` while idle.
    pub(crate) direction: Option<Direction>,
    pub(crate) severity: Severity,
    /// The share of what was sent that is concerned; 1 where it is no share.
    pub(crate) ratio: f64,
    pub(crate) text: String,
    pub(crate) evidence: Evidence,
}

pub(crate) fn signs(case: &Case<'_>) -> Vec<Sign> {
    let mut all = Vec::new();
    for direction in [Direction::Up, Direction::Down] {
        let Some(carried) = case.full_load(direction) else {
            continue;
        };
        all.extend(retransmissions(case, direction, carried));
        all.extend(stall(direction, carried));
        all.extend(unsteady(direction, carried));
        all.extend(window(case, direction, carried));
        all.extend(shortfall(case, direction, carried));
    }
    all.extend(collapse(case).or_else(|| crowded(case)));
    all.extend(idle_losses(case));
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        all.extend(loaded_losses(case, direction));
    }
    all
}

/// What loads a direction, in words.
pub(crate) fn doing(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "uploads",
        Direction::Down => "downloads",
        Direction::Both => "both directions at once",
    }
}

fn retransmissions(case: &Case<'_>, direction: Direction, carried: Carried<'_>) -> Option<Sign> {
    let segments = carried.segments()?;
    if is_explained_by_load(case, carried)? {
        return None;
    }
    let queue = match is_full(case, carried) {
        true => "more than a full queue loses",
        false => "and no full queue explains it",
    };
    Some(Sign {
        kind: Kind::Retransmissions,
        direction: Some(direction),
        severity: match segments.ratio() >= COSTLY_RATIO {
            true => Severity::Warning,
            false => Severity::Info,
        },
        ratio: segments.ratio(),
        text: format!(
            "{} of the segments of {} are retransmitted, {queue}",
            percent(segments.ratio()),
            doing(direction),
        ),
        evidence: fact(
            carried.measurement,
            "tcp.retransmits",
            segments.again,
            "segments retransmitted after slow start, against what hardly holds TCP back; more is explained only by a standing queue, and by as many losses as such windows need",
            NEGLIGIBLE_RATIO * segments.sent,
        ),
    })
}

fn stall(direction: Direction, carried: Carried<'_>) -> Option<Sign> {
    let gap_s = carried.longest_gap_s()?;
    let allowed_s = STALL_S.max(STALL_PACKETS * carried.packet_s());
    // A rate of nothing at all allows any gap, and is a finding of its own.
    (gap_s > allowed_s).then(|| Sign {
        kind: Kind::Stall,
        direction: Some(direction),
        severity: Severity::Warning,
        ratio: 1.0,
        text: format!("{} stall for {}", doing(direction), human_seconds(gap_s)),
        evidence: fact_of_series(
            carried.measurement,
            "bps.t_s",
            gap_s,
            "longest time without payload of any stream",
            allowed_s,
        ),
    })
}

fn unsteady(direction: Direction, carried: Carried<'_>) -> Option<Sign> {
    let rate = carried.seconds_bps()?;
    let unsteady = rate.count >= STEADY_NEEDS && rate.p5 < STEADY_RATIO * rate.p95;
    unsteady.then(|| Sign {
        kind: Kind::Unsteady,
        direction: Some(direction),
        severity: Severity::Info,
        ratio: 1.0,
        text: format!(
            "{} vary between {} and {} from second to second",
            doing(direction),
            si(rate.p5, "bit/s"),
            si(rate.p95, "bit/s")
        ),
        evidence: fact_of_series(
carried.measurement,
"bps",
rate.p5,
                "5th percentile of the rates of whole seconds after slow start, against half of the 95th",
                STEADY_RATIO * rate.p95,
),
    })
}

fn window(case: &Case<'_>, direction: Direction, carried: Carried<'_>) -> Option<Sign> {
    let tcp = &carried.result.tcp;
    let (ratio, what, field) = match tcp.limited.rwnd_ratio >= tcp.limited.sndbuf_ratio {
        true => (
            tcp.limited.rwnd_ratio,
            "receiver's window",
            "tcp.limited.rwnd_ratio",
        ),
        false => (
            tcp.limited.sndbuf_ratio,
            "send buffer",
            "tcp.limited.sndbuf_ratio",
        ),
    };
    let grown_s = lengths::buffers_s(tcp.min_rtt_s.unwrap_or(0.0), tcp.max_in_flight_bytes as f64);
    let held = ratio >= WINDOW_RATIO
        && carried.measurement.duration_s >= grown_s
        && tcp.min_rtt_s.is_some_and(|rtt| rtt >= MIN_RTT_S)
        && !is_line_known_full(case, carried);
    held.then(|| Sign {
        kind: Kind::Window,
        direction: Some(direction),
        severity: Severity::Warning,
        ratio,
        text: format!(
            "{} wait for the {what} {} of the time, which no setting of the hosts explains",
            doing(direction),
            percent(ratio)
        ),
        evidence: fact(
            carried.measurement,
            field,
            ratio,
            "share of the time that the senders waited for it while the line was not known to be full",
            WINDOW_RATIO,
        ),
    })
}

/// What TCP carried, compared with what the line does; where the ends held it back, that is the sign.
pub(crate) fn shortfall(
    case: &Case<'_>,
    direction: Direction,
    carried: Carried<'_>,
) -> Option<Sign> {
    let line_bps = case.line_bps(direction)?;
    let limited = &carried.result.tcp.limited;
    let by_ends = limited.rwnd_ratio + limited.sndbuf_ratio + limited.app_ratio;
    let short = carried.bps() < SHORTFALL_RATIO * line_bps && by_ends < WINDOW_RATIO;
    short.then(|| Sign {
        kind: Kind::Shortfall,
        direction: Some(direction),
        severity: match carried.bps() < HALF * line_bps {
            true => Severity::Warning,
            false => Severity::Info,
        },
        ratio: 1.0,
        text: format!(
            "{} carry {}, and the line {}",
            doing(direction),
            si(carried.bps(), "bit/s"),
            si(line_bps, "bit/s")
        ),
        evidence: fact(
            carried.measurement,
            "steady_bps",
            carried.bps(),
            "rate of TCP, against three quarters of what faster datagrams show the line to carry",
            SHORTFALL_RATIO * line_bps,
        ),
    })
}

/// What both directions carried at once, against the better one alone.
fn collapse(case: &Case<'_>) -> Option<Sign> {
    let alone = [Direction::Up, Direction::Down]
        .map(|direction| case.full_load(direction))
        .into_iter()
        .flatten()
        .max_by(|a, b| a.result.bps.total_cmp(&b.result.bps))?;
    let both = || {
        let carried = case.carried(Direction::Both);
        carried.filter(|carried| carried.shows_rate())
    };
    let first = both().next()?;
    let together: f64 = both().map(|carried| carried.result.bps).sum();
    (together < COLLAPSE_RATIO * alone.result.bps).then(|| Sign {
        kind: Kind::Collapse,
        direction: Some(Direction::Both),
        severity: Severity::Warning,
        ratio: 1.0,
        text: format!(
            "both directions at once carry {} together, and {} alone {}",
            si(together, "bit/s"),
            doing(alone.result.direction),
            si(alone.result.bps, "bit/s")
        ),
        evidence: fact(
            first.measurement,
            "bps",
            together,
            "payload of both directions together, against half of the better one alone",
            COLLAPSE_RATIO * alone.result.bps,
        ),
    })
}

/// A direction that hardly carries anything while the other one is loaded too. Where its own acknowledgements are a good part of
/// the other one's line, as on lines with one fast direction, they wait there, and that is known beforehand.
fn crowded(case: &Case<'_>) -> Option<Sign> {
    let alone = |direction| case.full_load(direction).map(Carried::bps);
    let (up, down) = (alone(Direction::Up)?, alone(Direction::Down)?);
    let both = case.carried(Direction::Both).filter(|c| c.shows_rate());
    both.filter_map(|together| {
        let direction = together.result.direction;
        let (alone_bps, other_bps) = match direction {
            Direction::Up => (up, down),
            _ => (down, up),
        };
        let crowded = together.bps() < CROWDED_RATIO * alone_bps
            && ACKNOWLEDGED_RATIO * alone_bps <= ACKNOWLEDGEMENTS_RATIO * other_bps;
        crowded.then(|| Sign {
            kind: Kind::Collapse,
            direction: Some(Direction::Both),
            severity: Severity::Info,
            ratio: 1.0,
            text: format!(
                "{} carry {} while the other direction is loaded too, and {} alone",
                doing(direction),
                si(together.bps(), "bit/s"),
                si(alone_bps, "bit/s")
            ),
            evidence: fact(
                together.measurement,
                "steady_bps",
                together.bps(),
                "payload of this direction with both loaded, against half of what it carries alone",
                CROWDED_RATIO * alone_bps,
            ),
        })
    })
    .next()
}

fn idle_losses(case: &Case<'_>) -> Option<Sign> {
    let idle = case.idle()?;
    let (sent, lost) = (idle.sent(), idle.lost());
    // Where nothing is answered, probes are filtered: nothing was measured.
    (lost > 0 && idle.result.received > 0).then(|| {
        lost_probes(
            None,
            lost,
            sent,
            "while idle",
            fact(
                idle.measurement,
                "loss_ratio",
                lost as f64 / sent as f64,
                "share of idle probes lost",
                0.0,
            ),
        )
    })
}

/// Probes lost beside a load, where no full queue of the load's own explains it.
fn loaded_losses(case: &Case<'_>, direction: Direction) -> Option<Sign> {
    let loaded = case.loaded(direction)?;
    let (sent, lost) = loaded.probes();
    let loads = match direction {
        Direction::Both => vec![Direction::Up, Direction::Down],
        one => vec![one],
    };
    let alone = || loads.iter().filter_map(|load| case.carried_alone(*load));
    // Whether its queue overflows, a load too short for a rate does not show.
    if !loaded.shows_queue() || alone().any(|carried| !carried.shows_rate()) {
        return None;
    }
    // A queue that overflows loses probes as it loses segments.
    let overflows = loads.iter().any(|load| {
        case.full_load(*load).is_some_and(|carried| {
            let again = carried.segments().map_or(0.0, |segments| segments.ratio());
            is_explained_by_load(case, carried) == Some(true)
                && queue_stands(carried)
                && at_least_ratio(sent, lost) <= NEEDED_TIMES * again
        })
    });
    if lost == 0 || overflows {
        return None;
    }
    let when = match direction {
        Direction::Up => "under upload",
        Direction::Down => "under download",
        Direction::Both => "with both directions loaded",
    };
    Some(lost_probes(
        Some(direction),
        lost,
        sent,
        when,
        fact(
            loaded.measurement,
            "loss_ratio",
            loaded.result.loss_ratio,
            "share of probes lost beside the load, where its own queue does not explain it",
            0.0,
        ),
    ))
}

fn lost_probes(
    direction: Option<Direction>,
    lost: u64,
    sent: u64,
    when: &str,
    evidence: Evidence,
) -> Sign {
    Sign {
        kind: Kind::ProbesLost,
        direction,
        // What may be chance is no health either.
        severity: match shows_loss(sent, lost) {
            true => Severity::Warning,
            false => Severity::Info,
        },
        ratio: lost as f64 / sent.max(1) as f64,
        text: format!("{lost} of {sent} probes are lost {when}"),
        evidence,
    }
}
