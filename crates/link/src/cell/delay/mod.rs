//! Delay: every packet leaves so much later than it came, the same for all or each by its own
//! draw from a distribution.

pub mod distribution;

use std::time::Duration;

use plumb_model::units::duration_text;
use serde::{Deserialize, Serialize};

use crate::cell::timed::Timing;
use crate::packet::Packet;
use crate::random::Random;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;
use distribution::Distribution;

/// `{ type = "delay", delay = "9ms", jitter = "2ms", distribution = "normal" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// The delay; with jitter its mean, with samples what is added to each of them.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// How far the delay varies, in the measure of its distribution; never below zero.
    #[serde(default, with = "duration_text")]
    pub jitter: Duration,
    #[serde(default, skip_serializing_if = "Distribution::is_uniform")]
    pub distribution: Distribution,
    /// Whether a packet with less delay overtakes those before it, as in netem; otherwise it
    /// leaves together with the last of them, as in a queue.
    #[serde(default)]
    pub reordering: bool,
}

impl Settings for DelaySpec {
    fn check(&self) -> Result<(), String> {
        self.distribution.check()?;
        if self.distribution.is_of_samples() && !self.jitter.is_zero() {
            return Err("samples vary by themselves: leave out jitter or the samples".into());
        }
        Ok(())
    }
}

impl DelaySpec {
    /// The file of its samples, when they were not read yet.
    pub(crate) fn file(&self) -> Option<&str> {
        match &self.distribution {
            Distribution::File(file) => Some(file),
            _ => None,
        }
    }
}

/// The delay. When it is changed, packets under way keep the old one.
pub(crate) struct Delay {
    spec: DelaySpec,
    random: Random,
}

impl Delay {
    pub(crate) fn new(spec: DelaySpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
        }
    }

    fn is_constant(&self) -> bool {
        self.spec.jitter.is_zero() && !self.spec.distribution.is_of_samples()
    }
}

impl Timing for Delay {
    type Spec = DelaySpec;

    fn departure(&mut self, now: Time, packet: &Packet) -> Result<Time, DropCause> {
        let delay = self.spec.delay;
        // What is sent unasked must not shift the draws of data.
        if self.is_constant() || packet.is_link_multicast() {
            return Ok(now + delay);
        }
        let jitter_ns = self.spec.jitter.as_nanos() as f64;
        let varies_ns = self.spec.distribution.draw(jitter_ns, &mut self.random);
        // The cast makes what is below zero zero.
        let ns = (delay.as_nanos() as f64 + varies_ns).round() as u64;
        Ok(now + Duration::from_nanos(ns))
    }

    fn least(&self) -> Duration {
        if self.is_constant() {
            self.spec.delay
        } else {
            Duration::ZERO
        }
    }

    fn may_overtake(&self) -> bool {
        self.spec.reordering
    }

    fn crossing(&self) -> Crossing {
        if self.is_constant() {
            Crossing::Whole
        } else {
            Crossing::Split
        }
    }

    fn reconfigure(&mut self, _: Time, spec: DelaySpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::chain::build;
    use crate::packet::tests::{ACK, listener_report, tcp, udp};
    use crate::spec::AnyCell;
    use crate::spec::CellSpec;
    use crate::spec::ChainSpec;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn delay(pairs: &[(&str, &str)]) -> CellSpec {
        CellSpec::from_pairs("delay", pairs).unwrap()
    }

    /// Ports and times of what leaves.
    fn departures(cell: &mut Box<dyn AnyCell>) -> Vec<(u16, Time)> {
        std::iter::from_fn(|| cell.dequeue(Time::MAX))
            .map(|(at, p)| (u16::from_be_bytes([p.data[20], p.data[21]]), at))
            .collect()
    }

    #[test]
    fn a_shorter_delay_does_not_reorder() {
        let mut cell = delay(&[("delay", "20ms")]).build(1, ms(0)).own();
        cell.enqueue(ms(0), udp(100, 1, 0));
        cell.set(ms(1), &delay(&[("delay", "5ms")]));
        cell.enqueue(ms(2), udp(100, 2, 0));
        cell.enqueue(ms(17), udp(100, 3, 0));
        assert_eq!(cell.next_event(), Some(ms(20)));
        let out = departures(&mut cell);
        assert_eq!(out, [(1, ms(20)), (2, ms(20)), (3, ms(22))]);
        let stats = cell.stats(ms(99), "delay");
        assert_eq!((stats.delivered.packets, stats.backlog.packets), (3, 0));
        assert_eq!((stats.sojourn_s.unwrap().max, stats.reordered), (0.020, 0));
    }

    #[test]
    fn with_reordering_it_does() {
        let mut cell = delay(&[("delay", "20ms"), ("reordering", "true")])
            .build(1, ms(0))
            .own();
        cell.enqueue(ms(0), udp(100, 1, 0));
        cell.enqueue(ms(1), udp(100, 2, 0));
        cell.set(ms(1), &delay(&[("delay", "5ms"), ("reordering", "true")]));
        cell.enqueue(ms(2), udp(100, 3, 0));
        cell.enqueue(ms(15), udp(100, 4, 0));
        // The last comes to the same time as the first and leaves after it.
        let out = departures(&mut cell);
        assert_eq!(out, [(3, ms(7)), (1, ms(20)), (4, ms(20)), (2, ms(21))]);
        assert_eq!(cell.stats(ms(99), "delay").reordered, 2);
    }

    #[test]
    fn each_packet_has_its_own_delay() {
        let spec = delay(&[
            ("delay", "10ms"),
            ("distribution", r#"{ samples = ["0ms", "4ms", "8ms"] }"#),
            ("reordering", "true"),
        ]);
        let mut cell = spec.build(1, ms(0)).own();
        assert_eq!(cell.crossing(), Crossing::Split);
        // All in one instant: those with 0, with 4 and with 8 ms leave together.
        for port in 1..=9 {
            cell.enqueue(ms(0), udp(100, port, 0));
            cell.enqueue(ms(0), listener_report());
        }
        let out: Vec<_> = std::iter::from_fn(|| cell.dequeue(Time::MAX)).collect();
        let of_data = out.iter().filter(|(_, p)| !p.is_link_multicast());
        let delays: Vec<_> = of_data.map(|(at, _)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(delays, [10, 10, 10, 10, 14, 18, 18, 18, 18]);
        let unasked = out.iter().filter(|(_, p)| p.is_link_multicast());
        assert!(unasked.into_iter().all(|(at, _)| *at == ms(10)));
    }

    #[test]
    fn never_before_it_came() {
        let mut cell = delay(&[("delay", "1ms"), ("jitter", "50ms"), ("reordering", "true")])
            .build(1, ms(0))
            .own();
        for _ in 0..1000 {
            cell.enqueue(ms(7), udp(100, 1, 0));
        }
        let out = departures(&mut cell);
        assert!(out.iter().all(|(_, at)| *at >= ms(7)));
        // Uniform from −49 to 51 ms: below zero with the probability 0.49; the deviation of
        // the count is 16, the bound five of them.
        let at_once = out.iter().filter(|(_, at)| *at == ms(7)).count();
        assert!(at_once.abs_diff(490) <= 80, "{at_once}");
    }

    #[test]
    fn large_segments_cross_whole_while_the_delay_is_constant() {
        let mut cell = delay(&[("delay", "1ms")]).build(1, ms(0)).own();
        cell.enqueue(ms(0), tcp(false, 3 * 1448, 1448, ACK));
        assert_eq!(departures(&mut cell).len(), 1);
        cell.set(ms(1), &delay(&[("delay", "1ms"), ("jitter", "1us")]));
        cell.enqueue(ms(1), tcp(false, 3 * 1448, 1448, ACK));
        assert_eq!(departures(&mut cell).len(), 3);
    }

    #[test]
    fn contradictions_are_named() {
        for (key, value, says) in [
            ("distribution", "nrmal", "did you mean 'normal'?"),
            ("distribution", "{ samples = [] }", "no samples"),
            ("distribution", r#"{ samples = ["1"] }"#, "250ms"),
            ("jitter", "some", "250ms"),
        ] {
            let pairs = [("delay", "1ms"), (key, value)];
            let error = CellSpec::from_pairs("delay", &pairs)
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
        let samples = ("distribution", r#"{ samples = ["1ms"] }"#);
        let pairs = [("delay", "1ms"), ("jitter", "1ms"), samples];
        let error = CellSpec::from_pairs("delay", &pairs).unwrap_err();
        assert!(error.to_string().contains("leave out jitter"), "{error}");
        // Other settings of a cell with samples change by themselves.
        let spec = delay(&[("delay", "1ms"), samples]).with(&[("delay", "2ms")]);
        assert_eq!(spec, Ok(delay(&[("delay", "2ms"), samples])));
    }

    #[test]
    fn a_file_that_nobody_read_is_refused() {
        let file = [
            ("delay", "1ms"),
            ("distribution", r#"{ file = "lte.txt" }"#),
        ];
        let error = build(&ChainSpec(vec![delay(&file).into()]), 1)
            .err()
            .unwrap();
        assert!(error.to_string().contains("'lte.txt'"), "{error}");
        let chain = ChainSpec(vec![delay(&[("delay", "1ms")]).into()]);
        let mut chain = build(&chain, 1).unwrap();
        let error = chain.set(ms(0), "delay", &file).unwrap_err().to_string();
        assert!(error.contains("samples = [\"1ms\""), "{error}");
        let samples = ("distribution", r#"{ samples = ["3ms"] }"#);
        chain.set(ms(0), "delay", &[samples]).unwrap();
        chain.enqueue(ms(0), udp(100, 1, 0));
        assert_eq!(chain.next_event(), Some(ms(4)));
        let mut read = delay(&file);
        read.take_file("3ms").unwrap();
        assert_eq!(read, delay(&[("delay", "1ms"), samples]));
    }
}
