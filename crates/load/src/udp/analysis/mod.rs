//! What became of the packets of one UDP stream, found as they come, in bounded memory: loss,
//! duplicates, reordering, delay. Pure; packets come with their number and times.
//!
//! A window over the sequence numbers (`window`) knows for each of the last 131,072 packets
//! whether it came. What leaves the window without having come is lost.

mod delay;
mod density;
mod over_time;
#[cfg(test)]
mod tests;
mod window;

use plumb_model::results::udp::{EcnCounts, Reordering, UdpReceiver};
use plumb_model::summary::Summary;

use delay::Delays;
use density::Density;
use over_time::OverTime;
use plumb_model::loss::Losses;
use plumb_wire::native::control::report::Count;
use window::{Arrival, Window};

/// A packet that came.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    pub sequence: u64,
    /// When it was sent, by the sender's clock in nanoseconds.
    pub sent_ns: i64,
    /// When it came, by the receiver's clock in nanoseconds.
    pub received_ns: i64,
    pub payload_bytes: u32,
    /// The two bits of its ECN field.
    pub ecn: u8,
}

/// The packets of one stream so far.
#[derive(Debug)]
pub struct Analysis {
    window: Window,
    losses: Losses,
    density: Density,
    delays: Delays,
    over_time: OverTime,
    /// When the largest number came, or else when the stream began.
    reached_ns: i64,
    received: u64,
    received_bytes: u64,
    duplicates: u64,
    too_late: u64,
    reordered: u64,
    extent: Summary,
    late: Summary,
    ecn: EcnCounts,
    first_ns: Option<i64>,
    last_ns: i64,
}

/// What it came to.
#[derive(Debug)]
pub struct Findings {
    /// Counts, order and variation.
    pub receiver: UdpReceiver,
    /// Packets that are known of.
    pub known: u64,
    /// Smallest delay by the two clocks.
    pub min_delay_ns: Option<i64>,
    /// From the first to the last that came.
    pub span_s: f64,
    /// What came over time; nothing but a zero where the analysis does not know when it began.
    pub counts: Vec<Count>,
}

/// The end of a stream, as its sender reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Packets that there were.
    pub datagrams: u64,
    /// When the word of it came, by the receiver's clock in nanoseconds.
    pub at_ns: i64,
}

impl Default for Analysis {
    fn default() -> Self {
        Self::with_window(window::PACKETS)
    }
}

impl Analysis {
    /// Nothing came yet of a stream that began at `started_ns` by the receiver's clock, and of which so many
    /// intervals of samples are kept.
    pub fn since(started_ns: i64, intervals: usize) -> Self {
        Self {
            over_time: OverTime::new(started_ns, intervals),
            reached_ns: started_ns,
            ..Self::default()
        }
    }

    fn with_window(packets: usize) -> Self {
        Self {
            over_time: OverTime::default(),
            reached_ns: 0,
            window: Window::new(packets),
            losses: Losses::default(),
            density: Density::default(),
            delays: Delays::default(),
            received: 0,
            received_bytes: 0,
            duplicates: 0,
            too_late: 0,
            reordered: 0,
            extent: Summary::new(),
            late: Summary::new(),
            ecn: EcnCounts::default(),
            first_ns: None,
            last_ns: 0,
        }
    }

    /// Payload received, duplicates not counted.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    pub fn record(&mut self, packet: &Packet) {
        let delay_ns = packet.received_ns.saturating_sub(packet.sent_ns);
        let missing = self.window.next()..packet.sequence;
        let arrival = self.window.arrive(
            packet.sequence,
            packet.received_ns,
            delay_ns,
            &mut self.losses,
        );
        match arrival {
            Arrival::Duplicate => {
                self.duplicates += 1;
                return;
            }
            Arrival::TooLate => {
                self.too_late += 1;
                return;
            }
            Arrival::InOrder => {
                self.miss(missing, packet.received_ns);
                self.over_time.in_order(packet.received_ns);
                self.reached_ns = packet.received_ns;
            }
            Arrival::Reordered {
                extent,
                late_ns,
                due_in,
            } => {
                self.over_time.came_late(due_in);
                self.reordered += 1;
                self.extent.record(extent, 1);
                self.late.record(late_ns, 1);
            }
        }
        self.first_ns.get_or_insert(packet.received_ns);
        self.last_ns = packet.received_ns;
        self.received += 1;
        self.received_bytes += u64::from(packet.payload_bytes);
        self.over_time
            .came(packet.received_ns, packet.payload_bytes, delay_ns);
        let mark = match packet.ecn & 3 {
            0 => &mut self.ecn.not_ect,
            1 => &mut self.ecn.ect1,
            2 => &mut self.ecn.ect0,
            _ => &mut self.ecn.ce,
        };
        *mark += 1;
        self.delays.record(delay_ns);
        let neighbour = |sequence: Option<u64>| sequence.and_then(|s| self.window.delay_ns(s));
        if let Some(before_ns) = neighbour(packet.sequence.checked_sub(1)) {
            self.delays.variation(delay_ns, before_ns);
        }
        if let Some(after_ns) = neighbour(packet.sequence.checked_add(1)) {
            self.delays.variation(after_ns, delay_ns);
        }
        self.density.arrive(packet.sequence, &self.window);
    }

    /// These numbers were passed by `at_ns`, and have not come.
    fn miss(&mut self, numbers: std::ops::Range<u64>, at_ns: i64) {
        if numbers.is_empty() {
            return;
        }
        let window = &mut self.window;
        let mut due = |stretch, numbers| window.due_in(numbers, stretch);
        self.over_time
            .passed(numbers, (self.reached_ns, at_ns), &mut due);
    }

    /// The whole of it, of a stream that ended so, as far as that is known.
    pub fn finish(mut self, end: Option<End>) -> Findings {
        self.density.finish(&self.window);
        if let Some(end) = end {
            self.miss(self.window.next()..end.datagrams, end.at_ns);
        }
        let announced = end.map(|end| end.datagrams);
        let known = self.window.close(announced, &mut self.losses);
        let lost = self.losses.lost();
        let ratio = |part: u64, whole: u64| {
            if whole == 0 {
                0.0
            } else {
                part as f64 / whole as f64
            }
        };
        let receiver = UdpReceiver {
            received: self.received,
            received_bytes: self.received_bytes,
            lost,
            loss_ratio: ratio(lost, known),
            losses: self.losses.pattern(),
            duplicates: self.duplicates,
            reordering: Reordering {
                reordered: self.reordered,
                reordered_ratio: ratio(self.reordered, self.received),
                extent: self.extent.plain_distribution(),
                late_s: self.late.distribution(),
                density: self.density.shares(),
                density_threshold: density::THRESHOLD as u32,
            },
            too_late: self.too_late,
            jitter_s: self.delays.jitter_s(),
            ipdv_s: self.delays.ipdv_s(),
            pdv_s: self.delays.pdv_s(),
            ecn: self.ecn,
            ..UdpReceiver::default()
        };
        Findings {
            receiver,
            known,
            min_delay_ns: self.delays.min_ns(),
            counts: self
                .over_time
                .counts(self.delays.min_ns().unwrap_or_default()),
            span_s: self.first_ns.map_or(0.0, |first_ns| {
                self.last_ns.saturating_sub(first_ns) as f64 / 1e9
            }),
        }
    }
}
