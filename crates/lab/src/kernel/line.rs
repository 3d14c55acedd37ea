//! A rate with its queue: tbf(8), or tc-cake(8), which has both.

use std::time::Duration;

use plumb_link::cell::shaper::ShaperSpec;
use plumb_link::queue::QueueSpec;
use plumb_model::framing::{Cells, Framing};
use plumb_model::units::BitRate;

use super::queue::Queue;
use super::words::words;

/// The Ethernet header, which the kernel counts as part of every packet and a [`Framing`] does
/// not.
pub(super) const ETHERNET_HEADER_BYTES: i64 = 14;

/// How late the kernel's timer may be without the line losing rate: what tbf may send ahead.
/// hrtimers are late by tens of microseconds, more on a busy machine.
const BURST_TIME: Duration = Duration::from_micros(250);

/// A rate with its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub rate: BitRate,
    /// What the line adds to each packet.
    pub framing: Framing,
    /// Bytes that can be saved up while the line is free.
    pub burst_bytes: u64,
    /// The rate at which they leave; at once when absent.
    pub peak_rate: Option<BitRate>,
    pub queue: Queue,
}

impl Line {
    /// The line that a shaper is.
    pub(super) fn of(spec: &ShaperSpec) -> Result<Self, String> {
        // Taken apart whole, so that no setting is passed over.
        let ShaperSpec {
            rate,
            schedule,
            period: _,
            burst,
            peak_rate,
            framing,
            queue,
        } = spec;
        let rate = match rate {
            Some(rate) if schedule.is_empty() => *rate,
            _ => return Err("tbf has one rate and no schedule".to_owned()),
        };
        let is_cake = matches!(queue, QueueSpec::Cake(_));
        if burst.is_some() && is_cake {
            return Err("CAKE saves up no bursts".to_owned());
        }
        if framing.cells == Cells::Ptm && !is_cake {
            return Err("tbf counts no PTM blocks; only a cake queue does".to_owned());
        }
        Ok(Self {
            rate,
            framing: *framing,
            burst_bytes: burst.map_or(0, |burst| burst.bytes()),
            peak_rate: *peak_rate,
            queue: Queue::of(queue, rate)?,
        })
    }

    /// Bytes of framing that the size table at the root adds to each packet as the kernel counts
    /// it; the rest is added by tbf. The table cannot know minimum sizes and cells, tbf cannot
    /// subtract, and the queue counts what the table made of the packet.
    ///
    /// CAKE counts from the IP header by itself, and needs no table.
    pub(super) fn stab_overhead(&self) -> i64 {
        let overhead = i64::from(self.framing.overhead_bytes);
        let counted = match self.queue {
            Queue::Cake { .. } => return 0,
            Queue::Own {
                counts_framing: true,
                ..
            } => overhead,
            Queue::Own { .. } | Queue::Leaf { .. } => overhead.min(0),
        };
        counted - ETHERNET_HEADER_BYTES
    }

    /// Bytes that tbf may send ahead: two full frames, or one would be lost with every late
    /// timer, and what the line sends in [`BURST_TIME`].
    fn burst_bytes(&self, mtu_bytes: u32) -> u64 {
        let ahead = BURST_TIME.as_secs_f64() * self.rate.bps() as f64 / 8.0;
        let least = 2 * u64::from(self.framing.wire_bytes(mtu_bytes)) + ahead as u64;
        self.burst_bytes.max(least)
    }

    pub(super) fn arguments(&self, mtu_bytes: u32) -> Vec<String> {
        match &self.queue {
            Queue::Cake { options, .. } => self.cake(options),
            Queue::Own { limit_bytes, .. } => self.tbf(mtu_bytes, Some(*limit_bytes)),
            Queue::Leaf { .. } => self.tbf(mtu_bytes, None),
        }
    }

    fn cake(&self, options: &[String]) -> Vec<String> {
        let cells = match self.framing.cells {
            Cells::None => "noatm",
            Cells::Atm => "atm",
            Cells::Ptm => "ptm",
        };
        let mut arguments = words(&format!(
            "cake bandwidth {}bit overhead {} mpu {} {cells}",
            self.rate.bps(),
            self.framing.overhead_bytes,
            self.framing.mpu_bytes
        ));
        arguments.extend(options.iter().cloned());
        arguments
    }

    fn tbf(&self, mtu_bytes: u32, limit_bytes: Option<u64>) -> Vec<String> {
        let burst = self.burst_bytes(mtu_bytes);
        let overhead =
            i64::from(self.framing.overhead_bytes) - self.stab_overhead() - ETHERNET_HEADER_BYTES;
        // tbf insists on a limit; where another queue takes the place of its own it means nothing.
        let limit = limit_bytes.unwrap_or(burst).min(u64::from(u32::MAX));
        let mut arguments = words(&format!(
            "tbf rate {}bit burst {burst} limit {limit}",
            self.rate.bps()
        ));
        if let Some(peak) = self.peak_rate {
            let mtu = 2 * self.framing.wire_bytes(mtu_bytes);
            arguments.extend(words(&format!("peakrate {}bit mtu {mtu}", peak.bps())));
        }
        if overhead > 0 {
            arguments.extend(words(&format!("overhead {overhead}")));
        }
        if self.framing.mpu_bytes > 0 {
            arguments.extend(words(&format!("mpu {}", self.framing.mpu_bytes)));
        }
        if self.framing.cells == Cells::Atm {
            arguments.extend(words("linklayer atm"));
        }
        arguments
    }
}
