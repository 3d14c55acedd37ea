//! A line driven by a trace of when a real one could send, in the format of mahimahi
//! (mm-link(1), src/frontend/link_queue.cc): a millisecond for each opportunity to send 1504
//! bytes, repeated with the last one as the period.
//!
//! A packet may take several opportunities and several packets may share one. What of an
//! opportunity finds the queue empty is lost; a packet that comes in the millisecond of an
//! opportunity comes after it.

use plumb_model::framing::{Cells, Framing};
use plumb_model::units::BitRate;
use serde::{Deserialize, Serialize};

use super::shaper::line::Line;
use super::shaper::port::{Port, PortSpec};
use crate::queue::QueueSpec;
use crate::settings::Settings;
use crate::time::Time;

/// Bytes of an opportunity: a packet of 1500 and the 4 bytes that mahimahi's TUN device puts
/// before it.
const OPPORTUNITY_BYTES: u64 = 1504;
const OVERHEAD_BYTES: i16 = 4;
/// The longest trace: a quarter of an hour of 12 Mbit/s.
const MOST_OPPORTUNITIES: usize = 1_000_000;
/// The latest instant, in milliseconds: a day.
const LATEST_MS: u64 = 86_400_000;
const NS_PER_MS: u64 = 1_000_000;

/// `{ type = "trace", file = "lte.trace", queue = { type = "fifo", limit = "500ms" } }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The file that the opportunities are in, until it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When 1504 bytes can be sent, in milliseconds after the start of the lab, in order.
    #[serde(default)]
    pub opportunities_ms: Vec<u64>,
    /// What the line adds to each packet; 4 bytes when absent, as in mahimahi.
    #[serde(default = "mahimahi_framing")]
    pub framing: Framing,
    /// The queue before the line; a FIFO when absent. Its limits in time are
    /// counted at the mean rate of the trace.
    #[serde(default)]
    pub queue: QueueSpec,
}

fn mahimahi_framing() -> Framing {
    Framing {
        overhead_bytes: OVERHEAD_BYTES,
        mpu_bytes: 0,
        cells: Cells::None,
    }
}

impl Settings for TraceSpec {
    fn check(&self) -> Result<(), String> {
        let times = &self.opportunities_ms;
        match (&self.file, times.is_empty()) {
            (Some(_), true) => return Ok(()),
            (Some(_), false) => {
                return Err("a trace is a file or opportunities_ms, not both".into());
            }
            _ => {}
        }
        if times.len() > MOST_OPPORTUNITIES {
            return Err(format!(
                "the trace has {} opportunities, and at most {MOST_OPPORTUNITIES} are possible",
                times.len()
            ));
        }
        for (number, pair) in times.windows(2).enumerate() {
            if let [a, b] = pair
                && a > b
            {
                return Err(format!(
                    "the trace goes back: opportunity {} is at {b} ms, after one at {a} ms",
                    number + 2
                ));
            }
        }
        match times.last() {
            None | Some(0) => {
                Err("the trace needs an opportunity after 0 ms: the last one is its period".into())
            }
            Some(last) if *last > LATEST_MS => Err(format!(
                "the trace ends at {last} ms, and {LATEST_MS} ms is the latest possible"
            )),
            _ => Ok(()),
        }
    }
}

impl TraceSpec {
    /// Takes the opportunities that the text of its file has: a whole number a line; empty
    /// lines and those that begin with `#` do not count.
    pub(crate) fn take_opportunities(&mut self, text: &str) -> Result<(), String> {
        let mut times = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let written = line.trim();
            if written.is_empty() || written.starts_with('#') {
                continue;
            }
            let time = written.parse().map_err(|_| {
                let shown: String = written.chars().take(40).collect();
                format!(
                    "line {}: '{shown}' is not a time in milliseconds",
                    index + 1
                )
            })?;
            times.push(time);
        }
        let taken = Self {
            file: None,
            opportunities_ms: times,
            ..self.clone()
        };
        taken.check()?;
        *self = taken;
        Ok(())
    }
}

impl PortSpec for TraceSpec {
    fn framing(&self) -> &Framing {
        &self.framing
    }

    fn queue(&self) -> &QueueSpec {
        &self.queue
    }
}

pub(crate) type Trace = Port<TraceLine>;

impl Trace {
    /// A line that exists from `now` on; `seed` seeds the queue's hash.
    pub(crate) fn new(spec: TraceSpec, seed: u64, now: Time) -> Self {
        let line = TraceLine::new(&spec);
        Self::with_line(spec, line, seed, now)
    }
}

/// The opportunities, numbered through all the repetitions.
pub(crate) struct TraceLine {
    /// In milliseconds, in order.
    times: Vec<u64>,
    /// The first opportunity that was not taken.
    next: u64,
    /// Bytes left of the last one that was.
    left: u64,
    /// Whether what is left, and what comes before the next packet, is lost.
    resting: bool,
    packet: Option<OnLine>,
}

struct OnLine {
    /// Bytes that it takes of opportunities from `first` on.
    bytes: u64,
    first: u64,
    departs: Time,
}

impl TraceLine {
    fn new(spec: &TraceSpec) -> Self {
        Self {
            times: spec.opportunities_ms.clone(),
            next: 0,
            left: 0,
            resting: true,
            packet: None,
        }
    }

    /// Never zero: [`TraceSpec`] does not allow it.
    fn period_ms(&self) -> u64 {
        self.times.last().copied().unwrap_or(1).max(1)
    }

    fn count(&self) -> u64 {
        (self.times.len() as u64).max(1)
    }

    fn time(&self, number: u64) -> Time {
        let within = usize::try_from(number % self.count()).unwrap_or(0);
        let within = self.times.get(within).copied().unwrap_or(0);
        let ms = (number / self.count())
            .saturating_mul(self.period_ms())
            .saturating_add(within);
        Time::from_nanos(ms.saturating_mul(NS_PER_MS))
    }

    /// The number of the first opportunity after an instant.
    fn after(&self, now: Time) -> u64 {
        let ms = now.as_nanos() / NS_PER_MS;
        let within = ms % self.period_ms();
        let gone = self.times.partition_point(|time| *time <= within) as u64;
        ms / self.period_ms() * self.count() + gone
    }

    /// When the opportunities from `next` on have carried `bytes` more than what is left of the
    /// one before, and how many of them that takes.
    fn carried(&self, now: Time, bytes: u64) -> (Time, u64) {
        let count = bytes.saturating_sub(self.left).div_ceil(OPPORTUNITY_BYTES);
        match self.next.saturating_add(count).checked_sub(1) {
            Some(last) if count > 0 => (self.time(last), count),
            _ => (now, 0),
        }
    }
}

impl Line for TraceLine {
    type Spec = TraceSpec;

    fn rate(&self, _: Time) -> BitRate {
        let bits = self.times.len() as u64 * OPPORTUNITY_BYTES * 8;
        BitRate::from_bps((bits * 1000 / self.period_ms()).max(1))
    }

    fn start(&mut self, now: Time, wire_bytes: u64) -> Time {
        if std::mem::replace(&mut self.resting, false) {
            (self.next, self.left) = (self.after(now), 0);
        }
        let (departs, count) = self.carried(now, wire_bytes);
        self.packet = Some(OnLine {
            bytes: wire_bytes.saturating_sub(self.left),
            first: self.next,
            departs,
        });
        self.next += count;
        self.left = self.left + count * OPPORTUNITY_BYTES - wire_bytes;
        departs
    }

    fn finish(&mut self, _: Time) {
        self.packet = None;
    }

    fn rest(&mut self) {
        self.resting = true;
    }

    fn sent_bytes(&self, _: Time) -> u64 {
        0 // Only asked for large segments, which do not pass.
    }

    fn clears(&self, now: Time, more_bytes: u64) -> Time {
        let departs = self.packet.as_ref().map_or(now, |packet| packet.departs);
        self.carried(departs, more_bytes).0
    }

    /// Opportunities are few and far between, so that each packet's own time shows.
    fn whole_bytes(&self) -> u64 {
        0
    }

    fn reconfigure(&mut self, now: Time, spec: &TraceSpec) -> Option<Time> {
        if self.times == spec.opportunities_ms {
            return self.packet.as_ref().map(|packet| packet.departs);
        }
        let carried = self.packet.take().map(|packet| {
            let used = (packet.first..self.next).filter(|number| self.time(*number) <= now);
            packet
                .bytes
                .saturating_sub(used.count() as u64 * OPPORTUNITY_BYTES)
        });
        *self = Self::new(spec);
        carried.map(|bytes| self.start(now, bytes))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cell::Cell;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::segment::Crossing;
    use crate::spec::AnyCell;
    use crate::spec::CellSpec;

    fn cell(times: &str, more: &[(&str, &str)]) -> Trace {
        let mut pairs = vec![("opportunities_ms", times)];
        pairs.extend(more);
        match CellSpec::from_pairs("trace", &pairs).unwrap() {
            CellSpec::Trace(spec) => Trace::new(spec, 1, Time::ZERO),
            _ => panic!(),
        }
    }

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    fn departures_ms(cell: &mut Trace) -> Vec<u64> {
        std::iter::from_fn(|| cell.dequeue(us(1 << 40)))
            .map(|(at, _)| at.as_nanos() / NS_PER_MS)
            .collect()
    }

    #[test]
    fn one_full_packet_an_opportunity_and_the_trace_repeats() {
        let mut c = cell("[1, 3, 3, 10]", &[]);
        for _ in 0..7 {
            c.enqueue(us(0), udp(1500, 1, 0));
        }
        assert_eq!(departures_ms(&mut c), [1, 3, 3, 10, 11, 13, 13]);
        // Unused opportunities are lost: in the millisecond 23 there were two.
        c.enqueue(us(23_000), udp(1500, 1, 0));
        c.enqueue(us(23_001), udp(1500, 1, 0));
        assert_eq!(departures_ms(&mut c), [30, 31]);
        // After a thousand periods it is as in the first.
        c.enqueue(us(10_002_999), udp(1500, 1, 0));
        assert_eq!(departures_ms(&mut c), [10_003]);
    }

    #[test]
    fn packets_share_opportunities_and_use_several() {
        let mut c = cell("[1, 2, 3, 4]", &[("framing", "raw")]);
        // 752 + 752 fill the first; 2000 needs the second and a third of the third, where the
        // two of 500 and 508 go too; the last begins in it with no byte left.
        for size in [752, 752, 2000, 500, 508, 100] {
            c.enqueue(us(500), udp(size, 1, 0));
        }
        assert_eq!(departures_ms(&mut c), [1, 1, 3, 3, 3, 4]);
        // An empty queue loses what is left of an opportunity.
        c.enqueue(us(4_500), udp(100, 1, 0));
        assert_eq!(departures_ms(&mut c), [5]);
        c.enqueue(us(5_000), udp(100, 1, 0));
        assert_eq!(departures_ms(&mut c), [6]);
    }

    #[test]
    fn the_queue_fills_between_opportunities() {
        // 2 of 1504 bytes in 100 ms are 240,640 bit/s: 200 ms are 6016 bytes, four packets.
        let mut c = cell("[50, 100]", &[("limit", "200ms")]);
        assert_eq!(c.crossing(), Crossing::Split);
        c.enqueue(us(0), tcp(false, 6 * 1448, 1448, ACK));
        let stats = c.stats(us(10_001), "trace");
        assert_eq!(stats.dropped["overflow"], 2);
        // A packet that came then would follow the last of the four.
        let delay = stats.queue_delay.unwrap();
        let points: Vec<_> = delay
            .points()
            .map(|(t, v)| ((t * 1e3).round(), (v * 1e3).round()))
            .collect();
        assert_eq!(points, [(0.0, 200.0), (10.0, 190.0)]);
        assert_eq!(departures_ms(&mut c), [50, 100, 150, 200]);
    }

    #[test]
    fn another_trace_takes_over_what_is_on_the_line() {
        let mut c = cell("[10, 20]", &[("framing", "raw")]);
        c.enqueue(us(0), udp(1504, 1, 0));
        c.enqueue(us(0), udp(3008, 1, 0));
        // Half of the second was carried at 20 ms.
        let spec =
            CellSpec::from_pairs("trace", &[("opportunities_ms", "[7]"), ("framing", "raw")]);
        c.set(us(25_000), &spec.unwrap());
        assert_eq!(departures_ms(&mut c), [10, 28]);
    }

    #[test]
    fn mistakes_in_a_trace_are_named() {
        for (times, says) in [
            ("[]", "after 0 ms"),
            ("[0, 0]", "after 0 ms"),
            ("[1, 5, 4]", "opportunity 3 is at 4 ms"),
            ("[99999999999]", "latest"),
            ("[-1]", "integer"),
        ] {
            let error = CellSpec::from_pairs("trace", &[("opportunities_ms", times)]).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_file_has_an_opportunity_a_line() {
        let cell = CellSpec::from_pairs("trace", &[("file", "t.trace")]).unwrap();
        assert_eq!(cell.file(), Some("t.trace"));
        let read = |text: &str| {
            let mut cell = cell.clone();
            cell.take_file(text).map(|()| cell)
        };
        let CellSpec::Trace(spec) = read("# two\n1\n\n 5 \n5\r\n").unwrap() else {
            panic!()
        };
        assert_eq!((spec.opportunities_ms, spec.file), (vec![1, 5, 5], None));
        for (text, says) in [
            ("1\nfive\n", "line 2: 'five'"),
            ("0.5\n", "line 1"),
            ("", "after 0 ms"),
            ("5\n1\n", "goes back"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
