//! For which rate to prepare a path that was measured, and which of its ends holds it back.

use plumb_model::finding::{Actor, Cause, Place};
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};

/// A path as a Run saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedPath {
    /// The rate to prepare for.
    pub rate_bps: f64,
    pub rtt_s: f64,
    /// Share of idle probes that were lost; absent where there were too few to know.
    pub loss_ratio: Option<f64>,
    /// The ends that hold it back, as the findings say; this host where they say nothing.
    pub ends: Vec<Actor>,
}

/// A Run that does not contain enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPath {
    #[error(
        "the Run measured no rate: make one with plumb check HOST or plumb rate HOST, or give --rate and --rtt"
    )]
    NoRate,
    #[error("the Run measured no round trip: make one with plumb check HOST, or give --rtt")]
    NoRtt,
}

/// Idle probes from which on their loss says something about a thousandth.
const ENOUGH_PROBES: u64 = 200;

/// How much more than it reached a held-back direction is prepared for, when nothing better is
/// known of the path.
pub(crate) const HEADROOM: f64 = 4.0;

/// What to prepare a direction for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prepared {
    /// The rate, in bit/s.
    pub(crate) bps: f64,
    /// Whether the path showed it in another direction; otherwise it is [`HEADROOM`] times what this one reached, and
    /// whether the line carries it is unknown.
    pub(crate) shown: bool,
}

/// The best that the path showed in another direction, or a good deal more than `direction` reached, in bit/s, when
/// that was the best.
pub(crate) fn rate_to_prepare(
    measurements: &[Measurement],
    direction: Direction,
    reached_bps: f64,
) -> Prepared {
    let least = Prepared {
        bps: reached_bps * HEADROOM,
        shown: false,
    };
    let carried = measurements.iter().filter_map(|m| m.outcome.throughput());
    let others = carried.filter(|other| other.direction != direction);
    let others = others.map(|other| other.steady_bps.unwrap_or(other.bps));
    others.fold(least, |best, bps| match bps > best.bps {
        true => Prepared { bps, shown: true },
        false => best,
    })
}

/// Reads the path out of a Run.
///
/// # Errors
/// When it measured no rate or no round trip.
pub fn path_to_prepare(run: &Run) -> Result<PreparedPath, NoPath> {
    let throughputs = || {
        run.measurements
            .iter()
            .filter_map(|m| m.outcome.throughput())
    };
    let pings = || run.measurements.iter().filter_map(|m| m.outcome.ping());
    let ends = ends(run);
    let held_back = throughputs().map(|result| {
        let steady = result.steady_bps.unwrap_or(result.bps);
        if ends.is_empty() {
            steady
        } else {
            let prepared = rate_to_prepare(&run.measurements, result.direction, result.bps);
            prepared.bps.max(steady)
        }
    });
    let rate_bps = match ends.is_empty() {
        true => held_back.reduce(f64::max),
        // The least of what each direction is prepared for: the best that the other one showed.
        false => held_back.reduce(f64::min).map(|least| {
            throughputs()
                .map(|result| result.steady_bps.unwrap_or(result.bps))
                .fold(least, f64::max)
        }),
    }
    .ok_or(NoPath::NoRate)?;
    let rtt_s = throughputs()
        .filter_map(|result| result.tcp.min_rtt_s)
        .chain(pings().filter_map(|ping| Some(ping.rtt_s?.min)))
        .filter(|rtt| *rtt > 0.0)
        .reduce(f64::min)
        .ok_or(NoPath::NoRtt)?;
    Ok(PreparedPath {
        rate_bps,
        rtt_s,
        loss_ratio: pings()
            .next()
            .filter(|ping| ping.sent >= ENOUGH_PROBES)
            .and_then(|ping| ping.loss_ratio)
            .filter(|ratio| *ratio > 0.0),
        ends: if ends.is_empty() {
            vec![Actor::ThisHost]
        } else {
            ends
        },
    })
}

/// The ends whose buffers a finding names, worst first.
fn ends(run: &Run) -> Vec<Actor> {
    let mut ends = Vec::new();
    for finding in &run.findings {
        let end = match (finding.cause, finding.place) {
            (Cause::SendBufferSmall | Cause::ReceiveBufferSmall, Place::ThisHost) => {
                Actor::ThisHost
            }
            (Cause::SendBufferSmall | Cause::ReceiveBufferSmall, Place::FarHost) => Actor::FarHost,
            _ => continue,
        };
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    ends
}
