//! How long packets waited in each direction, by the clocks of both hosts. Pure.
//!
//! What the two clocks differ by cancels out when delays of one direction are compared with each other, so that a queue is
//! found in its direction without clocks that are synchronised.

use plumb_model::distribution::Distribution;
use plumb_model::results::{Direction, OneWayQueueing};
use plumb_probe::{Exchange, ProbeLog};

use crate::clocks::by_probes;
use crate::probes::{Window, relative};

/// A drift that is known no better than this is left in the delays: in the 100 s of a check it is 10 ms, a sixth of the
/// queue that is worth a warning.
const SKEW_ERROR: f64 = 100e-6;

/// What two clocks of crystals drift at most against each other (RFC 5905, appendix A.5.5.6).
const MAX_SKEW: f64 = 500e-6;

/// What stamps of a program on a busy host may be off by, in nanoseconds.
const STAMP_ERROR_NS: f64 = 1e6;

/// Delays of each direction, less the delay of the fastest probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneWay {
    /// Share by which the far clock runs faster, as far as known.
    skew: f64,
    /// The time of ours from which that counts, ns.
    since_ns: i64,
    fastest_up_ns: i64,
    fastest_down_ns: i64,
}

impl OneWay {
    /// By all probes of a stream so far; `None` where the far end stamps none, or a clock was stepped.
    pub(crate) fn of(log: &ProbeLog) -> Option<Self> {
        let exchanges: Vec<Exchange> = log.samples.iter().filter_map(|s| s.exchange).collect();
        let known = by_probes(&exchanges).ok().filter(|compared| {
            let error = compared.skew_error;
            error.is_some_and(|error| error <= SKEW_ERROR)
        });
        Self::by(&exchanges, known.map_or(0.0, |compared| compared.skew))
    }

    fn by(exchanges: &[Exchange], skew: f64) -> Option<Self> {
        let quickest = exchanges
            .iter()
            .min_by_key(|exchange| round_trip_ns(exchange))?;
        if exchanges
            .iter()
            .any(|exchange| is_stepped(quickest, exchange))
        {
            return None;
        }
        let mut this = Self {
            skew,
            since_ns: exchanges.first()?.departed_ns,
            fastest_up_ns: 0,
            fastest_down_ns: 0,
        };
        let delays = || exchanges.iter().map(|exchange| this.delays_ns(exchange));
        let fastest = (
            delays().map(|(up, _)| up).min()?,
            delays().map(|(_, down)| down).min()?,
        );
        (this.fastest_up_ns, this.fastest_down_ns) = fastest;
        Some(this)
    }

    /// What the probes of a window waited; `None` where none was answered.
    pub(crate) fn waits(&self, log: &ProbeLog, window: Window) -> Option<OneWayQueueing> {
        let (from, to) = relative(log, window);
        self.waits_of(log.window(from, to).filter_map(|sample| sample.exchange))
    }

    fn waits_of(&self, exchanges: impl Iterator<Item = Exchange>) -> Option<OneWayQueueing> {
        let above = |ns: i64, fastest: i64| ns.saturating_sub(fastest).max(0) as f64 / 1e9;
        let waits = exchanges.map(|exchange| {
            let (up, down) = self.delays_ns(&exchange);
            (
                above(up, self.fastest_up_ns),
                above(down, self.fastest_down_ns),
            )
        });
        let (up, down): (Vec<f64>, Vec<f64>) = waits.unzip();
        Some(OneWayQueueing {
            up_s: Distribution::of(up)?,
            down_s: Distribution::of(down)?,
        })
    }

    /// How much longer than the fastest probe a packet of a stream in a phase took, in seconds. Both ends stamped it by their
    /// wall clocks, of which ours was `apart_ns` ahead of our monotonic one; by those it took `took_ns`.
    pub(crate) fn standing_s(
        &self,
        direction: Direction,
        phase: Window,
        apart_ns: i64,
        took_ns: i64,
    ) -> f64 {
        let middle = i64::try_from(phase.from_ns / 2 + phase.to_ns / 2).unwrap_or(i64::MAX);
        let drifted_ns = self.drifted_ns(middle);
        let above_ns = match direction {
            Direction::Down => took_ns
                .saturating_sub(apart_ns)
                .saturating_add(drifted_ns)
                .saturating_sub(self.fastest_down_ns),
            Direction::Up | Direction::Both => took_ns
                .saturating_add(apart_ns)
                .saturating_sub(drifted_ns)
                .saturating_sub(self.fastest_up_ns),
        };
        above_ns.max(0) as f64 / 1e9
    }

    /// What a probe took to the far end and its answer back, ns; all are wrong by what the clocks differ.
    fn delays_ns(&self, exchange: &Exchange) -> (i64, i64) {
        let Exchange {
            departed_ns,
            far,
            arrived_ns,
        } = *exchange;
        let up = far.received_ns.saturating_sub(departed_ns);
        let down = arrived_ns.saturating_sub(far.sent_ns);
        (
            up.saturating_sub(self.drifted_ns(departed_ns)),
            down.saturating_add(self.drifted_ns(arrived_ns)),
        )
    }

    fn drifted_ns(&self, at_ns: i64) -> i64 {
        (self.skew * at_ns.saturating_sub(self.since_ns) as f64) as i64
    }
}

fn round_trip_ns(exchange: &Exchange) -> i64 {
    let there = exchange.arrived_ns.saturating_sub(exchange.departed_ns);
    let kept = exchange
        .far
        .sent_ns
        .saturating_sub(exchange.far.received_ns);
    there.saturating_sub(kept)
}

/// Whether two exchanges differ in the clocks by more than their round trips and a drift explain.
fn is_stepped(quickest: &Exchange, exchange: &Exchange) -> bool {
    let offset_ns = |e: &Exchange| {
        let there = e.far.received_ns.saturating_sub(e.departed_ns) / 2;
        there.saturating_sub(e.arrived_ns.saturating_sub(e.far.sent_ns) / 2)
    };
    let apart_ns = offset_ns(exchange).saturating_sub(offset_ns(quickest));
    let by_path_ns = (round_trip_ns(exchange) / 2).saturating_add(round_trip_ns(quickest) / 2);
    let between_ns = exchange.departed_ns.saturating_sub(quickest.departed_ns);
    let allowed_ns = by_path_ns as f64 + MAX_SKEW * between_ns.abs() as f64 + STAMP_ERROR_NS;
    apart_ns.abs() as f64 > allowed_ns
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_probe::FarEnd;

    const MS: i64 = 1_000_000;

    /// Probes every 20 ms over a path of 10 ms each way, that wait `up` and `down` ms; the far clock is an hour ahead.
    fn exchanges(waits: impl Iterator<Item = (i64, i64)>) -> Vec<Exchange> {
        let hour_ns = 3600 * 1000 * MS;
        let of = |(n, (up, down)): (i64, (i64, i64))| {
            let departed_ns = n * 20 * MS;
            let received_ns = departed_ns + (10 + up) * MS;
            Exchange {
                departed_ns,
                far: FarEnd {
                    received_ns: received_ns + hour_ns,
                    sent_ns: received_ns + hour_ns,
                    count: None,
                    hop_limit: None,
                },
                arrived_ns: received_ns + (10 + down) * MS,
            }
        };
        (0..).zip(waits).map(of).collect()
    }

    #[test]
    fn a_queue_is_found_in_its_direction_however_the_clocks_differ() {
        let seen = exchanges((0..500).map(|n| (if n > 250 { 150 } else { 0 }, n % 2)));
        let one_way = OneWay::by(&seen, 0.0).unwrap();
        let waits = one_way.waits_of(seen.into_iter().skip(300)).unwrap();
        assert!((waits.up_s.p50 - 0.150).abs() < 1e-9, "{waits:?}");
        assert!(waits.down_s.max <= 0.001, "{waits:?}");
    }

    #[test]
    fn a_stream_is_compared_with_the_fastest_probe_of_its_direction() {
        let one_way = OneWay::by(&exchanges((0..50).map(|_| (0, 0))), 0.0).unwrap();
        let phase = Window {
            from_ns: 0,
            to_ns: 2_000_000_000,
        };
        // Our wall clock is half an hour ahead of our monotonic one, and the far end's an hour.
        let apart = 1800 * 1000 * MS;
        let up = one_way.standing_s(Direction::Up, phase, apart, apart + 40 * MS);
        let down = one_way.standing_s(Direction::Down, phase, apart, 15 * MS - apart);
        assert!(
            (up - 0.030).abs() < 1e-6 && (down - 0.005).abs() < 1e-6,
            "{up} {down}"
        );
    }

    #[test]
    fn by_clocks_that_were_stepped_nothing_is_said() {
        let mut seen = exchanges((0..50).map(|_| (0, 0)));
        for exchange in seen.iter_mut().skip(25) {
            exchange.far.received_ns += 60 * MS;
            exchange.far.sent_ns += 60 * MS;
        }
        assert!(OneWay::by(&seen, 0.0).is_none());
        assert!(OneWay::by(&[], 0.0).is_none());
    }
}
