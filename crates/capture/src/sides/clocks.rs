//! The clocks of two captures, compared by the fastest packets of both directions.

use std::collections::BTreeMap;

use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::formula::clocks::{Comparison, Exchange, Incomparable};
use plumb_model::results::capture::sides::{CaptureClocks, CaptureWay};
use plumb_model::results::udp::OneWayDelay;

use super::delays::{Delays, Sample};
use super::pairs::FlowId;

const NS_PER_S: f64 = 1e9;
/// A packet there and one back that are so far apart at most make a round trip, in ns.
const ROUND_TRIP_NS: u64 = 1_000_000_000;

/// What two clocks drift at most against each other: a nanosecond in so many (RFC 5905, appendix A.5.5.6: 500 ppm).
const NS_PER_DRIFT_NS: u64 = 2000;

/// The direction of each packet's flow, where it is known.
pub(super) type Directions<'a> = &'a dyn Fn(FlowId) -> Option<OneDirection>;

/// Compares the clocks by the fastest packets of each stretch of time.
pub(super) fn compare(
    delays: &Delays,
    direction: Directions<'_>,
) -> Result<Comparison, Incomparable> {
    let fastest = |way: OneDirection| {
        let mut fastest: BTreeMap<u64, &Sample> = BTreeMap::new();
        for sample in &delays.extremes {
            if direction(sample.flow) == Some(way) {
                let number = sample.at_ns / delays.width_ns;
                let kept = fastest.entry(number).or_insert(sample);
                // The fastest one back has the largest difference.
                let faster = match way {
                    OneDirection::Up => sample.difference_ns < kept.difference_ns,
                    OneDirection::Down => sample.difference_ns > kept.difference_ns,
                };
                if faster {
                    *kept = sample;
                }
            }
        }
        fastest
    };
    let (there, back) = (fastest(OneDirection::Up), fastest(OneDirection::Down));
    let reach = (ROUND_TRIP_NS / delays.width_ns).max(1);
    let exchanges = there.into_iter().filter_map(|(number, up)| {
        let near = back.range(number.saturating_sub(reach)..=number.saturating_add(reach));
        // What the clocks may have drifted in between counts against it.
        let drift_ns = |down: &Sample| (down.at_ns.abs_diff(up.at_ns) / NS_PER_DRIFT_NS) as i64;
        let best = near.max_by_key(|(_, down)| down.difference_ns.saturating_sub(drift_ns(down)));
        exchange(up, best?.1)
    });
    let exchanges: Vec<Exchange> = exchanges.collect();
    let compared = Comparison::of(&exchanges)?;
    let equal = Comparison::of_equal_clocks(&exchanges)?;
    // A drift that is one makes no packet faster than it was. A queue that fills and empties may look like one.
    let shortest = |compared| shortest_ns(delays, direction, compared);
    Ok(match shortest(&compared) < shortest(&equal) {
        true => equal,
        false => compared,
    })
}

/// The shortest way there and the shortest way back together, in ns, by clocks that are compared so.
fn shortest_ns(delays: &Delays, direction: Directions<'_>, compared: &Comparison) -> i64 {
    let shortest = |way: OneDirection| {
        let own = delays.extremes.iter();
        let own = own.filter(|sample| direction(sample.flow) == Some(way));
        let apart = own.map(|sample| {
            let at = i64::try_from(sample.at_ns).unwrap_or(i64::MAX);
            let apart = sample.difference_ns.saturating_sub(compared.offset_at(at));
            match way {
                OneDirection::Up => apart,
                OneDirection::Down => apart.saturating_neg(),
            }
        });
        apart.min().unwrap_or_default()
    };
    shortest(OneDirection::Up).saturating_add(shortest(OneDirection::Down))
}

/// As if the one back had been sent the moment that the one there came: their clocks are compared by their differences alone.
fn exchange(up: &Sample, down: &Sample) -> Option<Exchange> {
    let middle = up.at_ns / 2 + down.at_ns / 2;
    let departed_ns = i64::try_from(middle).ok()?;
    let received_ns = departed_ns.checked_add(up.difference_ns)?;
    Some(Exchange {
        departed_ns,
        received_ns,
        sent_ns: received_ns,
        arrived_ns: received_ns.checked_sub(down.difference_ns)?,
    })
}

/// What is said of the clocks.
pub(super) fn told(compared: Result<Comparison, Incomparable>, one_way: bool) -> CaptureClocks {
    match compared {
        Ok(compared) => CaptureClocks {
            offset_s: Some(compared.offset_ns as f64 / NS_PER_S),
            uncertainty_s: Some(compared.uncertainty_s),
            skew_ratio: (compared.skew != 0.0).then_some(compared.skew),
            skew_uncertainty_ratio: compared.skew_error,
            incomparable: None,
        },
        Err(why) => CaptureClocks {
            incomparable: Some(match (why, one_way) {
                (Incomparable::Silence, true) => {
                    "packets of one direction alone were seen at both places".to_owned()
                }
                (Incomparable::Silence, false) => {
                    "no packets of both directions were seen at both places within a second"
                        .to_owned()
                }
                (Incomparable::Stepped, _) => why.to_string(),
            }),
            ..CaptureClocks::default()
        },
    }
}

/// Fills in the delays of a direction.
pub(super) fn fill(
    way: &mut CaptureWay,
    delays: &Delays,
    compared: Option<&Comparison>,
    is_of: &dyn Fn(FlowId) -> bool,
    up: bool,
) {
    let delay_s = |sample: &Sample| {
        let at = i64::try_from(sample.at_ns).unwrap_or(i64::MAX);
        let offset = compared.map_or(0, |compared| compared.offset_at(at));
        let apart = sample.difference_ns.saturating_sub(offset);
        (if up { apart } else { apart.saturating_neg() }) as f64 / NS_PER_S
    };
    let of = |samples: &[Sample]| {
        let own = samples.iter().filter(|sample| is_of(sample.flow));
        Distribution::of(own.map(delay_s))
    };
    // All count that were seen at both places, of which some are kept.
    let extremes = of(&delays.extremes);
    let Some((kept, extremes)) = of(&delays.kept).or(extremes).zip(extremes) else {
        return;
    };
    let whole = Distribution {
        count: way.both,
        min: kept.min.min(extremes.min),
        max: kept.max.max(extremes.max),
        ..kept
    };
    way.queueing_s = Some(whole.above(whole.min));
    way.delay = compared.map(|compared| OneWayDelay {
        delay_s: whole,
        uncertainty_s: compared.uncertainty_s,
        clock_offset_s: compared.offset_ns as f64 / NS_PER_S,
        clock_drift_s: None,
    });
}
