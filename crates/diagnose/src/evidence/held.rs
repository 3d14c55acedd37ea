//! Times in which nothing passed and nothing was lost: what was sent meanwhile came all at once.

use plumb_model::context::Phase;
use plumb_model::protocol::Protocol;
use plumb_model::results::Kind;
use plumb_model::run::Measurement;

use super::outages::carries_meanwhile;
use crate::Case;

/// From here on, in seconds, TCP sends again what was not lost: the least retransmission timeout of Linux (`TCP_RTO_MIN`
/// in `include/net/tcp.h`). Handovers of LTE without a fault interrupt for 30 to 60 ms (3GPP TR 36.881, table 5.2.1).
pub(crate) const HELD_S: f64 = 0.2;

/// Fewer probes than these, of which there are ten in 0.2 s, do not show that none passed.
const LEAST_PROBES: usize = 8;

/// They come at once where nearly all of them come within this share of the time that they were held: the queue of a
/// line behind that place takes some time to pass them on.
const AT_ONCE_RATIO: f64 = 0.25;
const NEARLY_ALL_RATIO: f64 = 0.8;

/// What is released at once overflows queues behind it; where more is lost than comes, packets are lost rather than held.
const ANSWERED_RATIO: f64 = 0.5;

/// The last answer before waited for less than this share of the time: a queue that empties also passes everything at
/// once, and was filled slowly before.
const BEFORE_RATIO: f64 = 0.5;

/// A time in which no probe was answered, after which the answers to its probes came at once.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    pub(crate) measurement: &'a Measurement,
    /// From the start of its measurement, in seconds.
    from_s: f64,
    pub(crate) lasts_s: f64,
    /// The fastest round trip of the measurement, in seconds.
    fastest_s: f64,
}

impl Held<'_> {
    /// When it was over, from the start of its measurement, in seconds.
    fn until_s(self) -> f64 {
        self.from_s + self.lasts_s
    }

    /// Whether a probe that left at that time would have been answered within it.
    fn holds(self, t_s: f64) -> bool {
        (self.from_s..self.until_s()).contains(&(t_s + self.fastest_s))
    }

    /// Whether probes of that series, in the same measurement or one that began when it did, passed meanwhile;
    /// `None` where it has none of that time.
    fn is_passed_by(self, other: &Measurement, series: &str) -> Option<bool> {
        let shift_s = self.measurement.at_s - other.at_s;
        // At its ends what is held and what passes differ by when each was sent.
        let edge_s = AT_ONCE_RATIO * self.lasts_s;
        let (from_s, until_s) = (self.from_s + edge_s, self.until_s() - edge_s);
        let points = other.series.get(series)?.points();
        let mut arrivals = points
            .map(|(t_s, rtt_s)| (t_s - shift_s, t_s - shift_s + rtt_s))
            .filter(|(t_s, _)| (from_s..until_s).contains(t_s))
            .map(|(_, arrival_s)| arrival_s < until_s)
            .peekable();
        arrivals.peek()?;
        Some(arrivals.any(|passed| passed))
    }

    /// Whether it is between this host and its gateway: where that was probed, it answered nothing meanwhile either.
    pub(crate) fn is_local(self) -> Option<bool> {
        let passed = self.is_passed_by(self.measurement, "rtt_gateway")?;
        Some(!passed)
    }
}

impl<'a> Case<'a> {
    /// The holds of every stream of probes to the far end, one after the other. Echoes and the load, where there are
    /// any, did not pass either.
    pub(crate) fn holds(&self) -> impl Iterator<Item = Held<'a>> + use<'a> {
        let loads = self.loads();
        let pings: Vec<(Option<Phase>, &Measurement)> = self
            .probes_by(Protocol::Icmp)
            .map(|echoes| (echoes.measurement.context.phase, echoes.measurement))
            .collect();
        let of_each = self.probed().flat_map(held);
        of_each.filter(move |held| {
            let beside = held.is_passed_by(held.measurement, "rtt_icmp");
            let same = |phase: &Option<Phase>| *phase == held.measurement.context.phase;
            let is_ping = held.measurement.outcome.kind() == Kind::Ping;
            let pings = pings.iter().filter(|(phase, _)| is_ping && same(phase));
            let mut echoes = pings.filter_map(|(_, ping)| held.is_passed_by(ping, "rtt"));
            beside != Some(true)
                && !echoes.any(|passed| passed)
                && !loads.iter().any(|load| {
                    carries_meanwhile(load, held.measurement, (held.from_s, held.lasts_s))
                })
        })
    }
}

/// The holds of one series of probes.
pub(super) fn held(measurement: &Measurement) -> Vec<Held<'_>> {
    let Some(series) = measurement.series.get("rtt") else {
        return Vec::new();
    };
    // When each answer came, and what it had waited.
    let mut answers: Vec<(f64, f64)> = series.points().map(|(t, rtt)| (t + rtt, rtt)).collect();
    answers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let fastest_s = answers.iter().map(|(_, rtt)| *rtt).reduce(f64::min);
    let Some(fastest_s) = fastest_s else {
        return Vec::new();
    };
    let gaps = answers.iter().zip(answers.iter().skip(1));
    let gaps = gaps.filter(|(last, next)| {
        let lasts_s = next.0 - last.0;
        lasts_s >= HELD_S && last.1 - fastest_s <= BEFORE_RATIO * lasts_s
    });
    let all = gaps.map(|(last, next)| Held {
        measurement,
        from_s: last.0,
        lasts_s: next.0 - last.0,
        fastest_s,
    });
    all.filter(|held| {
        let (mut sent, mut answered, mut at_once) = (0usize, 0usize, 0usize);
        let within = series.t_s.iter().zip(&series.values);
        for (t_s, rtt_s) in within.filter(|(t_s, _)| held.holds(**t_s)) {
            sent += 1;
            let Some(rtt_s) = rtt_s else { continue };
            answered += 1;
            let until_s = held.until_s() + AT_ONCE_RATIO * held.lasts_s;
            at_once += usize::from(t_s + rtt_s <= until_s);
        }
        sent >= LEAST_PROBES
            && answered as f64 >= ANSWERED_RATIO * sent as f64
            && at_once as f64 >= NEARLY_ALL_RATIO * answered as f64
    })
    .collect()
}

/// Round trips of probes over time that were not held, from that time on.
pub(super) fn not_held(measurement: &Measurement, from_s: f64) -> Vec<(f64, f64)> {
    let times = held(measurement);
    let points = measurement.series.get("rtt").into_iter();
    let points = points.flat_map(|series| series.points());
    points
        .filter(|(t_s, _)| *t_s >= from_s && !times.iter().any(|held| held.holds(*t_s)))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing;
    use plumb_model::series::{Series, Unit};

    /// Four seconds of probes 20 ms apart, each with that round trip.
    fn probed(rtt_s: impl Fn(f64) -> Option<f64>) -> Vec<f64> {
        let mut series = Series::new(Unit::Seconds);
        for probe in 0..200 {
            let t_s = f64::from(probe) * 0.02;
            series.push(t_s, rtt_s(t_s));
        }
        let mut measured = testing::idle(Protocol::Udp, 200, 200, 0.03);
        measured.series.insert("rtt".to_owned(), series);
        held(&measured).iter().map(|held| held.lasts_s).collect()
    }

    #[test]
    fn what_comes_at_once_after_a_silence_was_held() {
        let within = |t: f64| (1.0..1.6).contains(&t);
        let released = |t: f64| Some(0.03 + if within(t) { 1.6 - t } else { 0.0 });
        let [lasts_s] = probed(released)[..] else {
            panic!("one");
        };
        assert!((0.6..0.65).contains(&lasts_s), "{lasts_s}");
        // The same with everything lost is an outage.
        let lost = |t: f64| (!within(t)).then_some(0.03);
        assert!(probed(lost).is_empty());
        // One probe that waits, and a short gap.
        let one = |t: f64| Some(if (t - 1.0).abs() < 0.01 { 0.5 } else { 0.03 });
        assert!(probed(one).is_empty());
        let short = |t: f64| {
            Some(
                0.03 + if (1.0..1.15).contains(&t) {
                    1.15 - t
                } else {
                    0.0
                },
            )
        };
        assert!(probed(short).is_empty());
    }

    #[test]
    fn a_queue_that_empties_was_filled_slowly() {
        // It grows by half of the time, and then nothing comes any more.
        let sawtooth = |t: f64| Some(0.03 + if t < 2.0 { t / 2.0 } else { (3.0 - t).max(0.0) });
        assert!(probed(sawtooth).is_empty());
        // Nothing but the delay grew by one step: what follows is not passed at once.
        let step = |t: f64| Some(if t < 2.0 { 0.03 } else { 0.6 });
        assert!(probed(step).is_empty());
    }
}
