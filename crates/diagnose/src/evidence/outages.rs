//! Times in which a path carried nothing at all.

use plumb_model::context::Experiment;
use plumb_model::protocol::Protocol;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Measurement;

use crate::{Case, reading};

/// Shorter gaps may be a burst of loss, in seconds: radio sends again for a tenth of that.
pub(crate) const OUTAGE_S: f64 = 0.5;

/// So many probes in a row, at the least.
const LEAST_PROBES: usize = 10;

/// Payload may arrive in so much of an outage, as a share: samples of the rate lie across its ends.
const STILL_ARRIVES_RATIO: f64 = 0.4;

/// What fills a queue leaves it empty after so long, in seconds: the deepest hold some seconds of their line's rate.
const EMPTIES_S: f64 = 10.0;

/// A time in which no probe was answered, with answers before and after; where one of them is in another phase, at least so long.
#[derive(Clone, Copy)]
pub(crate) struct Outage<'a> {
    pub(crate) measurement: &'a Measurement,
    /// From the start of its measurement, in seconds.
    from_s: f64,
    pub(crate) lasts_s: f64,
}

impl<'a> Case<'a> {
    /// The outages of every stream of probes to the far end, one after the other. A load at the same time carried
    /// nothing either.
    pub(crate) fn outages(&self) -> impl Iterator<Item = Outage<'a>> + use<'a> {
        let loads = self.loads();
        let probed: Vec<&Measurement> = self.probed().collect();
        let answered: Vec<bool> = probed.iter().map(|m| is_answered(m)).collect();
        let first = answered.iter().position(|answered| *answered);
        let last = answered.iter().rposition(|answered| *answered);
        // What an experiment left in a queue is no outage.
        let experiments = self.measurements.iter().filter(|measurement| {
            let experiment = reading::experiment(measurement);
            matches!(
                experiment,
                Some(Experiment::Overload | Experiment::ManyFlows)
            )
        });
        let ends: Vec<f64> = experiments.map(|m| m.at_s + m.duration_s).collect();
        let fills_between = move |before: &Measurement, after: &Measurement| {
            let last_s = after.at_s - EMPTIES_S;
            let between = before.at_s.max(last_s)..=after.at_s;
            ends.iter().any(|end_s| between.contains(end_s))
        };
        let of_each = probed
            .clone()
            .into_iter()
            .enumerate()
            .flat_map(move |(at, measurement)| {
                let before = at.checked_sub(1).and_then(|at| probed.get(at));
                let follows = before.is_some_and(|before| fills_between(before, measurement));
                let around = (
                    first.is_some_and(|first| first < at) && !follows,
                    last.is_some_and(|last| last > at),
                );
                outages(measurement, around)
            });
        of_each.filter(move |outage| {
            let time = (outage.from_s, outage.lasts_s);
            let mut loads = loads.iter();
            !loads.any(|load| carries_meanwhile(load, outage.measurement, time))
        })
    }

    /// The measurements of every load.
    pub(super) fn loads(&self) -> Vec<&'a Measurement> {
        let loads = [Direction::Up, Direction::Down, Direction::Both];
        let loads = loads
            .into_iter()
            .flat_map(|direction| self.carried(direction));
        loads.map(|carried| carried.measurement).collect()
    }

    /// How long the path was watched by probes, in seconds.
    pub(crate) fn watched_s(&self) -> f64 {
        self.probed().map(|m| m.duration_s).sum()
    }

    /// One measurement of round trips for each phase: several streams of probes see the same outage. All are of the
    /// protocol that was answered first: who limits answers to another one does not take the path away.
    pub(super) fn probed(&self) -> impl Iterator<Item = &'a Measurement> + use<'a> {
        // Single probes far apart watch no path.
        let watching = |measurement: &&Measurement| !reading::follows_silence(measurement);
        let measurements = self.measurements.iter().filter(watching);
        let mut answered = measurements.clone().filter(|m| is_answered(m));
        let protocol = answered.find_map(protocol);
        let mut last_s = f64::NEG_INFINITY;
        measurements.filter(move |measurement| {
            let of = self::protocol(measurement);
            let watches = of.is_some() && (protocol.is_none() || of == protocol);
            let is_next = watches && measurement.at_s >= last_s;
            if is_next {
                last_s = measurement.at_s + measurement.duration_s;
            }
            is_next
        })
    }
}

/// What it probed the far end with; none where it is no measurement of round trips.
fn protocol(measurement: &Measurement) -> Option<Protocol> {
    match &measurement.outcome {
        Outcome::Ping(ping) => Some(ping.protocol),
        Outcome::LoadedLatency(latency) => Some(latency.protocol),
        _ => None,
    }
}

/// Whether any of its probes was answered.
fn is_answered(measurement: &Measurement) -> bool {
    let series = measurement.series.get("rtt");
    series.is_some_and(|series| series.points().next().is_some())
}

/// The outages of one measurement; `before` and `after` say whether others had answers before it and after it.
fn outages(measurement: &Measurement, (before, after): (bool, bool)) -> Vec<Outage<'_>> {
    let mut found = Vec::new();
    let Some(series) = measurement.series.get("rtt") else {
        return found;
    };
    let mut answered_s = series.t_s.first().copied().filter(|_| before);
    let mut lost = 0;
    for (t_s, value) in series.t_s.iter().zip(&series.values) {
        if value.is_none() {
            lost += 1;
            continue;
        }
        if let Some(from_s) = answered_s
            && lost >= LEAST_PROBES
            && t_s - from_s >= OUTAGE_S
        {
            found.push(Outage {
                measurement,
                from_s,
                lasts_s: t_s - from_s,
            });
        }
        (answered_s, lost) = (Some(*t_s), 0);
    }
    // Those that were on their way at the end are answered, or given up, before a measurement is judged.
    if let (Some(from_s), Some(last_s), true) = (answered_s, series.t_s.last(), after)
        && lost >= LEAST_PROBES
        && last_s - from_s >= OUTAGE_S
    {
        found.push(Outage {
            measurement,
            from_s,
            lasts_s: last_s - from_s,
        });
    }
    found
}

/// Whether a load carried payload in much of a time of another measurement, from and for so many seconds.
pub(super) fn carries_meanwhile(
    load: &Measurement,
    other: &Measurement,
    (from_s, lasts_s): (f64, f64),
) -> bool {
    let Some(series) = load.series.get("bps") else {
        return false;
    };
    // Both began in one Run; their starts may differ by a connection's set-up.
    let from_s = other.at_s + from_s - load.at_s;
    let within = series
        .points()
        .filter(|(t_s, _)| (from_s..from_s + lasts_s).contains(t_s));
    let (mut all, mut with_payload) = (0u32, 0u32);
    for (_, bps) in within {
        all += 1;
        with_payload += u32::from(bps > 0.0);
    }
    all > 0 && f64::from(with_payload) > STILL_ARRIVES_RATIO * f64::from(all)
}

#[cfg(test)]
mod tests {
    use plumb_model::series::{Series, Unit};

    use super::*;
    use crate::testing;

    /// Four seconds of probes 20 ms apart, lost in that time.
    fn probed(at_s: f64, lost: std::ops::Range<f64>) -> Measurement {
        let mut series = Series::new(Unit::Seconds);
        for probe in 0..200 {
            let t_s = f64::from(probe) * 0.02;
            series.push(t_s, (!lost.contains(&t_s)).then_some(0.03));
        }
        let mut measured = testing::idle(Protocol::Udp, 200, 200, 0.03);
        (measured.at_s, measured.duration_s) = (at_s, 4.0);
        measured.series.insert("rtt".to_owned(), series);
        measured
    }

    #[test]
    fn an_outage_across_the_ends_of_phases_is_one_where_the_path_comes_back() {
        let lasts = |measurements: &[Measurement]| -> Vec<f64> {
            let local = Default::default();
            let case = Case {
                measurements,
                local: &local,
                far: None,
                asked: None,
                log: None,
            };
            case.outages().map(|outage| outage.lasts_s).collect()
        };
        let whole = || probed(5.0, 9.0..9.0);
        let end = || probed(0.0, 3.0..4.0);
        let [lasts_s] = lasts(&[end(), whole()])[..] else {
            panic!("one");
        };
        assert!((0.95..1.05).contains(&lasts_s), "{lasts_s}");
        assert!(lasts(&[end()]).is_empty(), "it is down");
        let begin = || probed(10.0, 0.0..0.7);
        assert_eq!(lasts(&[whole(), begin()]).len(), 1);
        assert!(lasts(&[begin()]).is_empty(), "not up yet");
        assert!(lasts(&[whole(), probed(10.0, 0.0..0.3)]).is_empty());
        // Between two phases in neither of which all is lost.
        assert_eq!(
            lasts(&[whole(), probed(10.0, 0.0..4.0), probed(15.0, 1.0..1.1)]).len(),
            1
        );
        // Behind an experiment.
        let mut filling = testing::idle(Protocol::Udp, 1, 0, 0.03);
        filling.context.experiment = Some(Experiment::Overload);
        filling.at_s = 9.0;
        filling.outcome = Outcome::HostRates(Default::default());
        assert!(lasts(&[whole(), filling, begin()]).is_empty());
        // Of another protocol, answers to which may be limited.
        let mut other = probed(10.0, 0.0..4.0);
        if let Outcome::Ping(ping) = &mut other.outcome {
            ping.protocol = Protocol::Icmp;
        }
        assert!(lasts(&[whole(), other, probed(15.0, 1.0..1.1)]).is_empty());
    }
}
