//! What became of the packets of one UDP stream, found as they come, in bounded memory: loss,
//! duplicates, reordering, delay. Pure; packets come with their number and times.
//!
//! A window over the sequence numbers (`window`) knows for each of the last 131,072 packets
//! whether it came. What leaves the window without having come is lost.

mod delay;
mod density;
#[cfg(test)]
mod tests;
mod window;

use plumb_model::results::udp::{EcnCounts, Reordering, UdpReceiver};
use plumb_model::summary::Summary;

use delay::Delays;
use density::Density;
use plumb_model::loss::Losses;
use window::{Arrival, Window};

/// A packet that came.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// Its number.
    pub sequence: u64,
    /// When it was sent, by the sender's clock in nanoseconds.
    pub sent_ns: i64,
    /// When it came, by the receiver's clock in nanoseconds.
    pub received_ns: i64,
    /// UDP payload.
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
}

impl Default for Analysis {
    /// Nothing came yet.
    fn default() -> Self {
        Self::with_window(window::PACKETS)
    }
}

impl Analysis {
    fn with_window(packets: usize) -> Self {
        Self {
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

    /// A packet came.
    pub fn record(&mut self, packet: &Packet) {
        let delay_ns = packet.received_ns.saturating_sub(packet.sent_ns);
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
            Arrival::InOrder => {}
            Arrival::Reordered { extent, late_ns } => {
                self.reordered += 1;
                self.extent.record(extent, 1);
                self.late.record(late_ns, 1);
            }
        }
        self.first_ns.get_or_insert(packet.received_ns);
        self.last_ns = packet.received_ns;
        self.received += 1;
        self.received_bytes += u64::from(packet.payload_bytes);
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

    /// The whole of it, of a stream that had `announced` packets, as far as that is known.
    pub fn finish(mut self, announced: Option<u64>) -> Findings {
        self.density.finish(&self.window);
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
            span_s: self.first_ns.map_or(0.0, |first_ns| {
                self.last_ns.saturating_sub(first_ns) as f64 / 1e9
            }),
        }
    }
}
