//! A router that handles ICMP on its slow path: it comes later than everything else. What ping
//! then shows is not what other traffic meets.

use std::time::Duration;

use plumb_model::units::duration_text;
use serde::{Deserialize, Serialize};

use crate::cell::middlebox::icmp_kind::is_selected;
use crate::cell::timed::Timing;
use crate::packet::Packet;
use crate::random::Random;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "icmp_deprioritise", delay = "20ms", jitter = "5ms" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IcmpDeprioritiseSpec {
    /// How much later ICMP leaves.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// How much more or less than `delay`, at most; every value is as probable.
    #[serde(with = "duration_text", default)]
    pub jitter: Duration,
}

impl Settings for IcmpDeprioritiseSpec {
    fn check(&self) -> Result<(), String> {
        if self.jitter > self.delay {
            return Err(
                "a jitter of more than the delay would let ICMP leave before it came".into(),
            );
        }
        Ok(())
    }
}

/// When packets leave. ICMP stays in order, and so does the rest; a shorter delay lets none
/// overtake.
pub(crate) struct IcmpDeprioritise {
    spec: IcmpDeprioritiseSpec,
    random: Random,
    last_icmp: Time,
}

impl IcmpDeprioritise {
    pub(crate) fn new(spec: IcmpDeprioritiseSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
            last_icmp: Time::ZERO,
        }
    }

    fn extra(&mut self) -> Duration {
        let IcmpDeprioritiseSpec { delay, jitter } = self.spec;
        delay.saturating_sub(jitter) + jitter.mul_f64(2.0 * self.random.uniform())
    }
}

impl Timing for IcmpDeprioritise {
    type Spec = IcmpDeprioritiseSpec;

    fn departure(&mut self, now: Time, packet: &Packet) -> Result<Time, DropCause> {
        if !is_selected(&[], &packet.data) {
            return Ok(now);
        }
        self.last_icmp = self.last_icmp.max(now + self.extra());
        Ok(self.last_icmp)
    }

    fn may_overtake(&self) -> bool {
        true
    }

    fn crossing(&self) -> Crossing {
        Crossing::Whole
    }

    fn reconfigure(&mut self, _: Time, spec: IcmpDeprioritiseSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cell::Cell;
    use crate::cell::middlebox::icmp_kind::tests::icmp;
    use crate::packet::tests::udp;
    use crate::spec::AnyCell;
    use crate::spec::CellSpec;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn cell(pairs: &[(&str, &str)]) -> Box<dyn AnyCell> {
        CellSpec::from_pairs("icmp_deprioritise", pairs)
            .unwrap()
            .build(3, ms(0))
            .own()
    }

    /// Departures with the length of the packets.
    fn all(cell: &mut dyn Cell, now: Time) -> Vec<(Time, usize)> {
        std::iter::from_fn(|| cell.dequeue(now))
            .map(|(at, packet)| (at, packet.data.len()))
            .collect()
    }

    #[test]
    fn only_icmp_waits() {
        let mut cell = cell(&[("delay", "20ms")]);
        cell.enqueue(ms(0), icmp(false, 8, 0));
        cell.enqueue(ms(1), udp(100, 1, 0));
        cell.enqueue(ms(20), udp(200, 1, 0));
        cell.enqueue(ms(21), icmp(true, 135, 0)); // neighbour discovery
        assert_eq!(cell.next_event(), Some(ms(1)));
        assert_eq!(
            all(cell.as_mut(), ms(99)),
            [(ms(1), 100), (ms(20), 84), (ms(20), 200), (ms(21), 104)]
        );
        cell.enqueue(ms(100), icmp(false, 8, 0));
        cell.enqueue(ms(101), udp(100, 1, 0));
        assert_eq!(cell.backlog().packets, 2);
        assert_eq!(all(cell.as_mut(), ms(110)), [(ms(101), 100)]);
        assert_eq!(cell.next_event(), Some(ms(120)));
    }

    /// 10,000 uniform values of 15 to 25 ms: their mean has a standard deviation of
    /// 10 / √12 / 100 = 0.029 ms, of which five (confidence 1 − 6·10⁻⁷) are 0.145 ms.
    #[test]
    fn jitter_is_around_the_delay() {
        let mut cell = cell(&[("delay", "20ms"), ("jitter", "5ms")]);
        let (mut sum, mut least, mut most) = (0.0, f64::MAX, 0.0f64);
        for index in 0..10_000 {
            // Far enough apart to keep their order by themselves.
            let now = ms(index * 100);
            cell.enqueue(now, icmp(false, 8, 0));
            let (at, _) = cell.dequeue(now + Duration::from_millis(99)).unwrap();
            let extra_ms = (at - now).as_secs_f64() * 1e3;
            sum += extra_ms;
            least = least.min(extra_ms);
            most = most.max(extra_ms);
        }
        assert!((sum / 10_000.0 - 20.0).abs() < 0.145, "{sum}");
        assert!(
            (15.0..15.1).contains(&least) && (24.9..=25.0).contains(&most),
            "{least} {most}"
        );
        assert!(
            CellSpec::from_pairs("icmp_deprioritise", &[("delay", "1ms"), ("jitter", "2ms")])
                .is_err()
        );
    }
}
