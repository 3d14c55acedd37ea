//! What the gateway reports of its line, and what of that was not this host's.

use plumb_model::results::gateway::GatewayResult;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Measurement;
use plumb_model::series::Series;

use crate::Case;
use crate::evidence::Carried;

/// What headers of the line make of a packet of the local network at most: 58 bytes of 1500 with PPPoE over ATM (RFC 2684),
/// and the kernel counts a large segment that it splits later with one header for all (54 of each 1500 bytes).
const FRAMING_RATIO: f64 = 0.08;

/// Others who carry this share of what the line does take more of it than a load's rate varies by itself: a load of ours would
/// carry a quarter more without them.
pub(crate) const OTHERS_RATIO: f64 = 0.2;

/// A gateway that was asked.
#[derive(Clone, Copy)]
pub(crate) struct Gateway<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a GatewayResult,
}

/// What a line carried in a direction while a load went over it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shared {
    /// All of it, by the gateway's counter.
    pub(crate) line: f64,
    /// What this host's interface counted of it.
    own: f64,
    /// The largest step of the gateway's counter: by so much may its beginning and its end be wrong.
    step: f64,
    seconds: f64,
}

impl Shared {
    /// What others carried, in bit/s, as measured.
    pub(crate) fn others_bps(self) -> f64 {
        (self.line - self.own).max(0.0) * 8.0 / self.seconds
    }

    /// The share of the line that others had at least: headers, and when the counters were read, may make up the rest.
    pub(crate) fn others_at_least(self) -> f64 {
        let others = self.line - self.own * (1.0 + FRAMING_RATIO) - self.step;
        (others / self.line.max(1.0)).max(0.0)
    }

    /// The share that they had at most.
    pub(crate) fn others_at_most(self) -> f64 {
        let others = self.line - self.own * (1.0 - FRAMING_RATIO) + self.step;
        (others / self.line.max(1.0)).clamp(0.0, 1.0)
    }
}

impl Gateway<'_> {
    /// What its line carries at most by its physical layer in a direction, in bit/s, and the name of the field.
    pub(crate) fn line_bps(self, direction: Direction) -> Option<(f64, &'static str)> {
        match direction {
            Direction::Up => Some((self.result.up_bps?, "up_bps")),
            Direction::Down => Some((self.result.down_bps?, "down_bps")),
            Direction::Both => None,
        }
    }

    /// What the line carried beside a load; `None` where the counters were not read all the while, do not move, or began anew.
    pub(crate) fn shared(self, load: Carried<'_>) -> Option<Shared> {
        let name = load.result.direction.name();
        let series = |name: String| self.measurement.series.get(&name);
        let line = series(format!("{name}_bytes"))?;
        let own = series(format!("own_{name}_bytes"))?;
        let from_s = load.measurement.at_s - self.measurement.at_s;
        let window = [from_s, from_s + load.measurement.duration_s];
        let grown = |of: &Series| {
            let [from, to] = window.map(|t_s| at(of, t_s));
            Some(to? - from?)
        };
        let (line_bytes, own_bytes) = (grown(line)?, grown(own)?);
        let counted = self.result.restarts == 0 && line_bytes > 0.0;
        counted.then(|| Shared {
            line: line_bytes,
            own: own_bytes,
            step: largest_step(line, window),
            seconds: load.measurement.duration_s.max(f64::MIN_POSITIVE),
        })
    }
}

/// The value at an instant, linear between the readings before and after it.
fn at(series: &Series, t_s: f64) -> Option<f64> {
    let points: Vec<(f64, f64)> = series.points().collect();
    let after = points.partition_point(|(t, _)| *t <= t_s);
    let (t0, v0) = *points.get(after.checked_sub(1)?)?;
    let (t1, v1) = *points.get(after)?;
    Some(v0 + (v1 - v0) * (t_s - t0) / (t1 - t0).max(f64::MIN_POSITIVE))
}

/// The largest growth between two readings of which one at least lies in the window.
fn largest_step(series: &Series, [from_s, to_s]: [f64; 2]) -> f64 {
    let points: Vec<(f64, f64)> = series.points().collect();
    let steps = points.iter().zip(points.iter().skip(1));
    let within = steps.filter(|((before, _), (after, _))| *after >= from_s && *before <= to_s);
    let grown = within.map(|((_, before), (_, after))| after - before);
    grown.fold(0.0, f64::max)
}

impl<'a> Case<'a> {
    /// The gateway, where it was asked.
    pub(crate) fn gateway(&self) -> Option<Gateway<'a>> {
        let mut all = self.measurements.iter();
        all.find_map(|measurement| match &measurement.outcome {
            Outcome::Gateway(result) => Some(Gateway {
                measurement,
                result,
            }),
            _ => None,
        })
    }

    /// What the line carried beside the load in a direction.
    pub(crate) fn shared(&self, direction: Direction) -> Option<(Gateway<'a>, Shared)> {
        let gateway = self.gateway()?;
        let shared = gateway.shared(self.carried_alone(direction)?)?;
        Some((gateway, shared))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_model::series::Unit;

    use super::*;
    use crate::testing::{carrying, measurement};

    /// A gateway whose line reports those rates, and whose counters were read each `every_s` for 20 s, from 2 s before a load
    /// of 15 s that begins at 0 s. While that lasts the line carries `line_bps` down, and this host's interface `own_bps`.
    pub(crate) fn gateway(
        rates_bps: [Option<f64>; 2],
        [line_bps, own_bps]: [f64; 2],
        every_s: f64,
    ) -> Measurement {
        let [down_bps, up_bps] = rates_bps;
        let mut gateway = measurement(Outcome::Gateway(Box::new(GatewayResult {
            address: "192.168.1.1".to_owned(),
            down_bps,
            up_bps,
            readings: 20,
            ..GatewayResult::default()
        })));
        gateway.at_s = -2.0;
        gateway.duration_s = 20.0;
        for (name, bps, refresh_s) in [
            ("down_bytes", line_bps, every_s),
            ("own_down_bytes", own_bps, 1.0),
        ] {
            let mut series = Series::new(Unit::Bytes);
            for second in 0..=20 {
                let t_s = f64::from(second);
                let counted_until_s = (t_s / refresh_s).floor() * refresh_s;
                let loaded_s = (counted_until_s - 2.0).clamp(0.0, 15.0);
                series.push(t_s, Some(bps / 8.0 * loaded_s));
            }
            gateway.series.insert(name.to_owned(), series);
        }
        gateway
    }

    /// The share that others had at least and at most.
    fn others(line_bps: f64, every_s: f64) -> (f64, f64) {
        let all = [
            gateway([None; 2], [line_bps, 1e7], every_s),
            carrying(Direction::Down, 9.5e6),
        ];
        let case = Case {
            measurements: &all,
            local: &Default::default(),
            far: None,
            asked: None,
            log: None,
        };
        let (_, shared) = case.shared(Direction::Down).unwrap();
        (shared.others_at_least(), shared.others_at_most())
    }

    #[test]
    fn the_share_of_others_is_bounded_by_how_often_the_counter_moves() {
        let (least, most) = others(2e7, 1.0);
        assert!(least > 0.35 && most < 0.65, "{least} {most}");
        let (coarse, _) = others(2e7, 5.0);
        assert!(
            coarse < 0.2,
            "a counter that moves each 5 s proves little: {coarse}"
        );
        let (least, most) = others(1.05e7, 1.0);
        assert!(
            least == 0.0 && most < 0.25,
            "headers are no host's: {least} {most}"
        );
    }

    #[test]
    fn a_counter_that_began_anew_or_does_not_move_shows_nothing() {
        let load = carrying(Direction::Down, 9.5e6);
        let shared = |change: fn(&mut GatewayResult), line_bps| {
            let mut gateway = gateway([None; 2], [line_bps, 1e7], 1.0);
            if let Outcome::Gateway(result) = &mut gateway.outcome {
                change(result);
            }
            let all = [gateway, load.clone()];
            let case = Case {
                measurements: &all,
                local: &Default::default(),
                far: None,
                asked: None,
                log: None,
            };
            case.shared(Direction::Down).is_some()
        };
        assert!(shared(|_| {}, 2e7));
        assert!(!shared(|result| result.restarts = 1, 2e7));
        assert!(!shared(|_| {}, 0.0));
    }
}
