//! What disciplines and classes are made with, as the kernel reads it.
//!
//! Rates are in bits a second here, in bytes a second to the kernel.

use plumb_model::framing::{Cells, Framing};

use crate::netlink::attribute::{encode, find, number, u32_at};

/// A discipline with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discipline {
    Cake(Cake),
    /// Hierarchical token bucket; what no filter finds a class for passes it unshaped.
    Htb,
    Tbf(Tbf),
    FqCodel(FqCodel),
    /// The place for filters of packets that a device receives.
    Ingress,
    /// Any discipline, as read from the kernel.
    Recorded {
        kind: String,
        options: Vec<u8>,
    },
}

/// sch_cake's settings, all that plumb ever gives it (tc-cake(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cake {
    pub rate_bps: u64,
    pub framing: Framing,
    pub tins: Tins,
    pub hosts: Hosts,
    /// Whether hosts are known by their addresses before the translation.
    pub nat: bool,
    pub ack_filter: bool,
    /// Whether it shapes what arrived over the bottleneck: what it drops has taken its rate too.
    pub ingress: bool,
    /// Whether it cuts super-packets apart.
    pub split: bool,
}

/// Into which tins CAKE sorts packets by their DSCP (`CAKE_DIFFSERV_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tins {
    Besteffort,
    Diffserv3,
    Diffserv4,
}

/// Which hosts get equal shares of the rate, before their flows do (`CAKE_FLOW_DUAL_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    Source,
    Destination,
}

/// A token bucket (tc-tbf(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    pub rate_bps: u64,
    /// The largest packet that is not cut into segments, and the burst.
    pub burst_bytes: u32,
    /// What may wait while it has no other discipline in it.
    pub limit_bytes: u32,
}

/// sch_fq_codel's settings (RFC 8290).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodel {
    pub target_us: u32,
    pub interval_us: u32,
    pub flows: u32,
    pub quantum_bytes: u32,
    pub memory_bytes: u32,
}

/// A class of HTB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtbClass {
    /// Its rate whatever the other classes demand.
    pub rate_bps: u64,
    /// Its rate where no other class needs the capacity.
    pub ceil_bps: u64,
    /// Bytes that it may send at once.
    pub burst_bytes: u32,
    /// Bytes that it sends per turn of the capacity that other classes leave.
    pub quantum_bytes: u32,
    /// Bytes that the line adds to what the kernel counts.
    pub overhead_bytes: u16,
    pub mpu_bytes: u16,
    /// Whether the line has cells of ATM.
    pub atm: bool,
}

/// Times in `struct tc_htb_opt` and its like count 64 ns (`PSCHED_SHIFT`).
const TICK_NS: u128 = 64;

/// `TC_LINKLAYER_ETHERNET` and `_ATM`: with one given, the kernel wants no table of times.
const LAYER_ETHERNET: u8 = 1;
const LAYER_ATM: u8 = 2;

/// HTB's version (`HTB_VER >> 16`), and the divisor that gives quanta where none are set.
const HTB_VERSION: u32 = 3;
const HTB_DIVISOR: u32 = 10;

impl Discipline {
    pub fn kind(&self) -> &str {
        match self {
            Self::Cake(_) => "cake",
            Self::Htb => "htb",
            Self::Tbf(_) => "tbf",
            Self::FqCodel(_) => "fq_codel",
            Self::Ingress => "ingress",
            Self::Recorded { kind, .. } => kind,
        }
    }

    pub(super) fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Cake(cake) => cake.encoded(),
            // `struct tc_htb_glob` as TCA_HTB_INIT: class 0, which is none, for what has no class.
            Self::Htb => {
                let glob = [HTB_VERSION, HTB_DIVISOR, 0, 0, 0].map(u32::to_ne_bytes);
                encode(2, &glob.concat())
            }
            Self::Tbf(tbf) => tbf.encoded(),
            Self::FqCodel(fq_codel) => fq_codel.encoded(),
            Self::Ingress => Vec::new(),
            Self::Recorded { options, .. } => options.clone(),
        }
    }
}

impl Cake {
    fn encoded(&self) -> Vec<u8> {
        let tins = match self.tins {
            Tins::Diffserv3 => 0,
            Tins::Diffserv4 => 1,
            Tins::Besteffort => 3,
        };
        let flows = match self.hosts {
            Hosts::Source => 5,
            Hosts::Destination => 6,
        };
        let cells = match self.framing.cells {
            Cells::None => 0,
            Cells::Atm => 1,
            Cells::Ptm => 2,
        };
        let overhead = i32::from(self.framing.overhead_bytes).to_ne_bytes();
        [
            rate_alone(self.rate_bps),
            number(3, tins),
            number(4, cells),
            number(5, flows),
            encode(6, &overhead),
            number(11, self.nat.into()),
            number(14, self.framing.mpu_bytes.into()),
            number(15, self.ingress.into()),
            number(16, self.ack_filter.into()),
            number(17, self.split.into()),
        ]
        .concat()
    }
}

/// CAKE's rate and nothing else: a change with it leaves all other settings (`TCA_CAKE_BASE_RATE64`).
pub(super) fn rate_alone(bps: u64) -> Vec<u8> {
    encode(2, &(bps / 8).to_ne_bytes())
}

impl Tbf {
    fn encoded(&self) -> Vec<u8> {
        // `struct tc_tbf_qopt`: rate, peak rate, limit, buffer, largest packet of the peak rate.
        let parameters = [
            rate(self.rate_bps, LAYER_ETHERNET, 0, 0),
            vec![0; 12],
            self.limit_bytes.to_ne_bytes().to_vec(),
            ticks(self.burst_bytes, self.rate_bps)
                .to_ne_bytes()
                .to_vec(),
            vec![0; 4],
        ];
        [
            encode(1, &parameters.concat()),
            long_rate(4, self.rate_bps),
            number(6, self.burst_bytes),
        ]
        .concat()
    }
}

impl FqCodel {
    fn encoded(&self) -> Vec<u8> {
        [
            number(1, self.target_us),
            number(3, self.interval_us),
            // Congestion is marked (ECN) for flows that support it.
            number(4, 1),
            number(5, self.flows),
            number(6, self.quantum_bytes),
            number(9, self.memory_bytes),
        ]
        .concat()
    }
}

impl HtbClass {
    pub(super) fn encoded(&self) -> Vec<u8> {
        let layer = if self.atm { LAYER_ATM } else { LAYER_ETHERNET };
        let spec = |bps| rate(bps, layer, self.overhead_bytes, self.mpu_bytes);
        // `struct tc_htb_opt`: rate, ceil, their bursts, quantum, level (the kernel's), priority.
        let parameters = [
            spec(self.rate_bps),
            spec(self.ceil_bps),
            ticks(self.burst_bytes, self.rate_bps)
                .to_ne_bytes()
                .to_vec(),
            ticks(self.burst_bytes, self.ceil_bps)
                .to_ne_bytes()
                .to_vec(),
            self.quantum_bytes.to_ne_bytes().to_vec(),
            vec![0; 8],
        ];
        [
            encode(1, &parameters.concat()),
            long_rate(6, self.rate_bps),
            long_rate(7, self.ceil_bps),
        ]
        .concat()
    }
}

/// `struct tc_ratespec`: logarithm of cells, link layer, overhead, alignment, smallest packet, bytes a second.
fn rate(bps: u64, layer: u8, overhead: u16, mpu: u16) -> Vec<u8> {
    let bytes = u32::try_from(bps / 8).unwrap_or(u32::MAX);
    let mut spec = vec![0, layer];
    spec.extend(overhead.to_ne_bytes());
    spec.extend(0_i16.to_ne_bytes());
    spec.extend(mpu.to_ne_bytes());
    spec.extend(bytes.to_ne_bytes());
    spec
}

/// The 64 bits of a rate that its structure cannot hold.
fn long_rate(kind: u16, bps: u64) -> Vec<u8> {
    let bytes = bps / 8;
    match u32::try_from(bytes) {
        Ok(_) => Vec::new(),
        Err(_) => encode(kind, &bytes.to_ne_bytes()),
    }
}

/// How long bytes take at a rate, in the kernel's ticks.
fn ticks(bytes: u32, bps: u64) -> u32 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(bps.max(1));
    u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX)
}

/// The rate of a CAKE, of its listed options; `None` where it has none.
pub fn cake_rate_bps(options: &[u8]) -> Option<u64> {
    let rate = find(options, 2)?.u64()?;
    (rate != 0).then_some(rate.saturating_mul(8))
}

/// What a class of HTB is assured and what it may have, of its listed options.
pub fn htb_rates_bps(options: &[u8]) -> Option<(u64, u64)> {
    let parameters = find(options, 1)?.value;
    let long = |kind| find(options, kind).and_then(|rate| rate.u64());
    let rate = |kind, at| long(kind).or_else(|| u32_at(parameters, at).map(u64::from));
    let bits = |bytes: u64| bytes.saturating_mul(8);
    Some((bits(rate(6, 8)?), bits(rate(7, 20)?)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_its_time_at_the_rate() {
        // 1600 bytes at 20 Mbit/s are 640 us, which are 10,000 ticks.
        assert_eq!(ticks(1600, 20_000_000), 10_000);
        assert_eq!(ticks(u32::MAX, 1), u32::MAX);
    }

    #[test]
    fn a_rate_beyond_32_bits_has_64() {
        let class = |bps| HtbClass {
            rate_bps: bps,
            ceil_bps: 8_000,
            burst_bytes: 1600,
            quantum_bytes: 1514,
            overhead_bytes: 4,
            mpu_bytes: 64,
            atm: false,
        };
        let bytes = class(40_000_000_000).encoded();
        assert_eq!(find(&bytes, 6).unwrap().u64(), Some(5_000_000_000));
        assert!(find(&bytes, 7).is_none());
        let parameters = find(&bytes, 1).unwrap().value;
        assert_eq!(parameters.len(), 44);
        assert_eq!(parameters.get(8..12).unwrap(), u32::MAX.to_ne_bytes());
        assert_eq!(htb_rates_bps(&bytes), Some((40_000_000_000, 8_000)));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (cake_rate_bps(&bytes), htb_rates_bps(&bytes));
        }
    }
}
