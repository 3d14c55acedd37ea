//! A box that needs as long for a small packet as for a large one: a router, a firewall or a VPN endpoint whose processor
//! looks at each packet, which is why the throughput of such boxes is stated in frames per second (RFC 2544, section
//! 26.1). A queue stands before it, as before a line.

use plumb_model::framing::{Cells, Framing};
use plumb_model::units::BitRate;
use serde::{Deserialize, Serialize};

use super::shaper::ShaperSpec;
use super::shaper::line::Line;
use super::shaper::port::{Port, PortSpec};
use super::shaper::token_bucket::TokenBucket;
use crate::queue::QueueSpec;
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "packet_rate", per_second = 3000, queue = { type = "fifo", limit = "256p" } }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketRateSpec {
    /// Packets that pass each second, whatever their size.
    pub per_second: f64,
    /// The queue before the box; a FIFO when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

/// At this rate [`COUNTED`] stays below 1 Tbit/s, to which a line's arithmetic is exact.
const MOST_PER_SECOND: f64 = 1e6;

/// Every packet counts as the largest that IP has, so that all are alike to a line of bits.
const COUNTED: Framing = Framing {
    overhead_bytes: 0,
    mpu_bytes: u16::MAX,
    cells: Cells::None,
};

impl Settings for PacketRateSpec {
    fn check(&self) -> Result<(), String> {
        if !(1.0..=MOST_PER_SECOND).contains(&self.per_second) {
            return Err(format!(
                "per_second = {} is not possible: write 1 to {MOST_PER_SECOND} packets",
                self.per_second
            ));
        }
        Ok(())
    }
}

impl PortSpec for PacketRateSpec {
    fn framing(&self) -> &Framing {
        &COUNTED
    }

    fn queue(&self) -> &QueueSpec {
        &self.queue
    }
}

impl PacketRateSpec {
    /// The same as a line of bits that carries packets of [`COUNTED`] bytes.
    fn line(&self) -> ShaperSpec {
        let bits = f64::from(COUNTED.mpu_bytes) * 8.0;
        ShaperSpec {
            rate: Some(BitRate::from_bps((self.per_second * bits) as u64)),
            schedule: Vec::new(),
            period: None,
            burst: None,
            peak_rate: None,
            framing: COUNTED,
            queue: self.queue.clone(),
        }
    }
}

pub(crate) type PacketRate = Port<PacketLine>;

impl PacketRate {
    /// A box that exists from `now` on; `seed` seeds the queue's hash.
    pub(crate) fn new(spec: PacketRateSpec, seed: u64, now: Time) -> Self {
        let line = PacketLine(TokenBucket::new(&spec.line(), now));
        Self::with_line(spec, line, seed, now)
    }
}

/// A line of bits to which all packets are alike.
pub(crate) struct PacketLine(TokenBucket);

impl Line for PacketLine {
    type Spec = PacketRateSpec;

    fn rate(&self, now: Time) -> BitRate {
        self.0.rate(now)
    }

    fn start(&mut self, now: Time, wire_bytes: u64) -> Time {
        self.0.start(now, wire_bytes)
    }

    fn finish(&mut self, at: Time) {
        self.0.finish(at);
    }

    fn rest(&mut self) {
        self.0.rest();
    }

    fn sent_bytes(&self, now: Time) -> u64 {
        self.0.sent_bytes(now)
    }

    fn clears(&self, now: Time, more_bytes: u64) -> Time {
        self.0.clears(now, more_bytes)
    }

    /// Each packet by itself: the number of them is what counts.
    fn whole_bytes(&self) -> u64 {
        0
    }

    fn reconfigure(&mut self, now: Time, spec: &PacketRateSpec) -> Option<Time> {
        self.0.reconfigure(now, &spec.line())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cell::Cell;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::{AnyCell, CellSpec};

    fn cell(pairs: &[(&str, &str)]) -> Box<dyn AnyCell> {
        let spec = CellSpec::from_pairs("packet_rate", pairs).unwrap();
        spec.build(1, Time::ZERO).own()
    }

    /// After all that a test does.
    const LATER: Time = Time::from_nanos(1_000_000_000);

    fn departures_us(cell: &mut dyn Cell) -> Vec<u64> {
        std::iter::from_fn(|| cell.dequeue(LATER))
            .map(|(at, _)| at.as_nanos() / 1000)
            .collect()
    }

    #[test]
    fn small_packets_take_as_long_as_large_ones() {
        let mut box_ = cell(&[("per_second", "1000")]);
        for size in [64, 1500, 9000, 64] {
            box_.enqueue(Time::ZERO, udp(size, 1, 0));
        }
        assert_eq!(departures_us(&mut *box_), [1000, 2000, 3000, 4000]);
        // A large TCP segment counts as the number of packets that it is cut into.
        box_.enqueue(
            Time::from_nanos(10_000_000),
            tcp(false, 3 * 1448, 1448, ACK),
        );
        assert_eq!(departures_us(&mut *box_), [11_000, 12_000, 13_000]);
    }

    #[test]
    fn the_queue_holds_packets_or_a_time_of_them() {
        for limit in ["3p", "3ms"] {
            let mut box_ = cell(&[("per_second", "1000"), ("limit", limit)]);
            for size in [64, 1500, 64, 1500, 64, 1500] {
                box_.enqueue(Time::ZERO, udp(size, 1, 0));
            }
            assert_eq!(departures_us(&mut *box_), [1000, 2000, 3000], "{limit}");
            let stats = box_.stats(LATER, "packet_rate");
            assert_eq!(stats.dropped["overflow"], 3, "{limit}");
        }
    }

    #[test]
    fn settings_change_and_mistakes_are_named() {
        let spec = CellSpec::from_pairs("packet_rate", &[("per_second", "1000")]).unwrap();
        let mut box_ = spec.build(1, Time::ZERO).own();
        box_.enqueue(Time::ZERO, udp(100, 1, 0));
        box_.enqueue(Time::ZERO, udp(100, 1, 0));
        let faster = spec.with(&[("per_second", "2000")]).unwrap();
        // Half of the first has passed.
        box_.set(Time::from_nanos(500_000), &faster);
        assert_eq!(departures_us(&mut *box_), [750, 1250]);
        for wrong in ["0", "1000001"] {
            let error = spec.with(&[("per_second", wrong)]).unwrap_err().to_string();
            assert!(error.contains("1 to 1000000"), "{error}");
        }
    }
}
