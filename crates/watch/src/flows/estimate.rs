//! What sampled counts say of all packets, and how certain that is.
//!
//! Where one packet of `s` is counted, each counted packet represents `s`: the Horvitz-Thompson estimate. Of packets that are chosen
//! independently of each other the variance of a sum of values `y` is estimated by `s(s-1)y²` of each that was chosen (Cochran,
//! "Sampling Techniques", section 9A.7; Duffield, Lund and Thorup, "Estimating flow distributions from sampled flow statistics",
//! 2003): for `n` packets a relative standard error of `sqrt((1-1/s)/n)`. Routers that count exactly each `s`th packet, and do not
//! choose by chance, are no worse as long as traffic has no such rhythm.

use plumb_wire::flow_export::record::FlowRecord;

/// The shortest and longest packets that are assumed where an exporter says nothing of them, in bytes: headers of IPv4 and TCP,
/// and what Ethernet carries.
const SHORTEST_BYTES: f64 = 40.0;
const LONGEST_BYTES: f64 = 1500.0;

/// Standard errors of a two-sided interval of 95 %.
const Z: f64 = 1.959_964;

/// Sums of flows: estimates of all that passed, and the variances of these.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    pub bytes: f64,
    pub packets: f64,
    pub bytes_variance: f64,
    pub packets_variance: f64,
    /// How many reports of flows.
    pub flows: u64,
}

/// From where to where a sum is in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Sums {
    /// What one flow adds, of which one packet of `one_in` was counted.
    pub fn of(flow: &FlowRecord, one_in: f64) -> Self {
        let (bytes, packets) = (flow.bytes as f64, flow.packets as f64);
        let each = one_in * (one_in - 1.0);
        Self {
            bytes: bytes * one_in,
            packets: packets * one_in,
            bytes_variance: match each > 0.0 {
                true => each * squares(flow),
                false => 0.0,
            },
            packets_variance: each * packets,
            flows: 1,
        }
    }

    pub fn add(&mut self, more: &Self) {
        self.bytes += more.bytes;
        self.packets += more.packets;
        self.bytes_variance += more.bytes_variance;
        self.packets_variance += more.packets_variance;
        self.flows += more.flows;
    }

    pub fn bytes_interval(&self) -> Interval {
        interval(self.bytes, self.bytes_variance)
    }

    pub fn packets_interval(&self) -> Interval {
        interval(self.packets, self.packets_variance)
    }
}

/// The sum of the squares of a flow's packets, in bytes²: as the exporter says, or the largest that its mean size allows between
/// the shortest and the longest packet (Bhatia and Davis, "A better bound on the variance", 2000). Of a single packet it is exact.
fn squares(flow: &FlowRecord) -> f64 {
    let (bytes, packets) = (flow.bytes as f64, (flow.packets as f64).max(1.0));
    let mean = bytes / packets;
    let least = bytes * mean;
    if let Some(squares) = flow.sizes.squares {
        return (squares as f64).max(least);
    }
    if packets <= 1.0 {
        return least;
    }
    let shortest = flow.sizes.shortest.map_or(SHORTEST_BYTES, f64::from);
    let longest = flow.sizes.longest.map_or(LONGEST_BYTES, f64::from);
    let (below, above) = ((mean - shortest).max(0.0), (longest - mean).max(0.0));
    least + packets * below * above
}

/// An interval of 95 % by the score method (Wilson, "Probable inference", 1927): it holds also where few packets were counted, for
/// which the usual one of two standard errors is too narrow. The variance is taken to be in proportion to what is estimated.
fn interval(estimate: f64, variance: f64) -> Interval {
    if variance <= 0.0 || estimate <= 0.0 {
        return Interval {
            low: estimate,
            high: estimate,
        };
    }
    let half = Z * Z * variance / estimate / 2.0;
    let wide = (Z * Z * variance + half * half).sqrt();
    Interval {
        low: (estimate + half - wide).max(0.0),
        high: estimate + half + wide,
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn what_is_not_sampled_is_exact() {
        let flow = FlowRecord {
            bytes: 3000,
            packets: 7,
            ..FlowRecord::default()
        };
        let sums = Sums::of(&flow, 1.0);
        assert_eq!((sums.bytes, sums.packets, sums.flows), (3000.0, 7.0, 1));
        let exact = Interval {
            low: 3000.0,
            high: 3000.0,
        };
        assert_eq!(sums.bytes_interval(), exact);
        assert_eq!(sums.packets_interval().high, 7.0);
    }

    #[test]
    fn the_relative_standard_error_is_that_of_theory() {
        let flow = FlowRecord {
            bytes: 100_000,
            packets: 100,
            ..FlowRecord::default()
        };
        let sums = Sums::of(&flow, 1000.0);
        let error = sums.packets_variance.sqrt() / sums.packets;
        assert!((error - (0.999f64 / 100.0).sqrt()).abs() < 1e-12);
        let Interval { low, high } = sums.packets_interval();
        assert!(low > 80_000.0 && low < 83_000.0, "{low}");
        assert!(high > 121_000.0 && high < 123_000.0, "{high}");
    }

    /// A packet of the mix that is usual on access lines: acknowledgements, full packets, and what is between.
    fn size(random: &mut Pcg64Mcg) -> u64 {
        match random.random_range(0..10) {
            0..4 => 40,
            4..8 => 1500,
            _ => random.random_range(41..1500),
        }
    }

    /// How many of 1,000 trials have the truth of bytes and of packets in their intervals: `packets` of which one of `one_in` is
    /// counted, in flows of so many packets each.
    fn held(one_in: u32, packets: u32, of_flow: u32) -> (u32, u32) {
        let mut random = Pcg64Mcg::seed_from_u64(u64::from(one_in * 31 + packets));
        let (mut in_bytes, mut in_packets) = (0, 0);
        for _ in 0..1000 {
            let mut sums = Sums::default();
            let mut truth = 0;
            for _ in 0..packets / of_flow {
                let mut flow = FlowRecord::default();
                for _ in 0..of_flow {
                    let bytes = size(&mut random);
                    truth += bytes;
                    if random.next_u32() % one_in == 0 {
                        flow.bytes += bytes;
                        flow.packets += 1;
                    }
                }
                // A flow of which nothing was counted is not reported.
                if flow.packets > 0 {
                    sums.add(&Sums::of(&flow, f64::from(one_in)));
                }
            }
            let holds = |Interval { low, high }: Interval, truth| low <= truth && truth <= high;
            in_bytes += u32::from(holds(sums.bytes_interval(), truth as f64));
            in_packets += u32::from(holds(sums.packets_interval(), f64::from(packets)));
        }
        (in_bytes, in_packets)
    }

    #[test]
    fn intervals_hold_the_truth_in_95_of_100_trials() {
        for (one_in, packets, of_flow) in [
            (10, 1000, 1),
            (10, 1000, 20),
            (100, 1000, 10),
            (100, 5000, 1000),
            (100, 10_000, 100),
            (1000, 20_000, 10),
            (1000, 50_000, 50_000),
        ] {
            let (bytes, packets_held) = held(one_in, packets, of_flow);
            let what = format!("1:{one_in} of {packets} in flows of {of_flow}");
            assert!(bytes >= 930, "{what}: bytes {bytes}");
            assert!(packets_held >= 930, "{what}: packets {packets_held}");
        }
    }
}
