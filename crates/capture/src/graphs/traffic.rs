//! Packets and bytes of the whole capture over time.

use plumb_model::results::capture::TrafficGraph;

use super::bins::{Bin, Bins};

const NS_PER_S: f64 = 1e9;

/// What came within a bin.
#[derive(Debug, Default)]
struct Came {
    packets: u64,
    bytes: u64,
}

impl Bin for Came {
    fn join(&mut self, next: Self) {
        self.packets += next.packets;
        self.bytes += next.bytes;
    }
}

/// All packets over time.
#[derive(Debug, Default)]
pub(super) struct Traffic(Option<Bins<Came>>);

impl Traffic {
    /// Takes in a packet.
    #[inline]
    pub(super) fn add(&mut self, unix_ns: u64, wire_bytes: u32) {
        let bins = self.0.get_or_insert_with(|| Bins::new(unix_ns));
        if let Some(bin) = bins.at(unix_ns) {
            bin.packets += 1;
            bin.bytes += u64::from(wire_bytes);
        }
    }

    pub(super) fn finish(&self) -> TrafficGraph {
        let Some(bins) = &self.0 else {
            return TrafficGraph::default();
        };
        let dense = bins.dense();
        let column = |of: fn(&Came) -> u64| dense.iter().map(|bin| bin.map_or(0, of)).collect();
        TrafficGraph {
            bin_s: bins.bin_ns() as f64 / NS_PER_S,
            packets: column(|bin| bin.packets),
            bytes: column(|bin| bin.bytes),
        }
    }
}
