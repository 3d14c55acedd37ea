//! Hashes that put flows and hosts into buckets: the finaliser of SplitMix64 over 64-bit words,
//! which a seed changes.

use std::net::IpAddr;

use plumb_wire::ip::FlowKey;

/// The hash of a flow.
#[inline]
pub(crate) fn flow_hash(flow: &FlowKey, seed: u64) -> u64 {
    let FlowKey {
        source,
        destination,
        protocol,
        source_port,
        destination_port,
    } = *flow;
    let ports =
        u64::from(protocol) << 32 | u64::from(source_port) << 16 | u64::from(destination_port);
    let hash = mix(seed ^ ports);
    mix_address(mix_address(hash, source), destination)
}

/// Another hash of the same flow, made from its first.
pub(crate) fn reseeded(hash: u64, seed: u64) -> u64 {
    mix(hash ^ seed)
}

/// The hash of a host.
pub(crate) fn host_hash(host: IpAddr, seed: u64) -> u64 {
    mix_address(mix(seed), host)
}

/// Which of `buckets` a hash falls into: its high bits scaled to their number, as the kernel's
/// reciprocal_scale().
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

fn mix_address(hash: u64, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(a) => mix(hash ^ u64::from(a.to_bits())),
        IpAddr::V6(a) => {
            let bits = a.to_bits();
            mix(mix(hash ^ bits as u64) ^ (bits >> 64) as u64)
        }
    }
}

fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_fall_into_all_buckets_evenly_and_the_seed_moves_them() {
        let buckets = |seed| -> Vec<usize> {
            (0..8000u32)
                .map(|i| {
                    bucket(
                        host_hash(IpAddr::from((0x0a00_0000 | i).to_be_bytes()), seed),
                        8,
                    )
                })
                .collect()
        };
        for n in 0..8 {
            // Binomial: 1000 expected, standard deviation 29.6; five of them.
            let count = buckets(1).iter().filter(|b| **b == n).count();
            assert!(count.abs_diff(1000) < 148, "{count} in bucket {n}");
        }
        assert_ne!(buckets(1), buckets(2));
    }
}
