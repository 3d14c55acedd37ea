//! Duplication: some packets come twice, the second right after the first.

use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "duplicate", ratio = "1%" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuplicateSpec {
    /// The probability that a packet comes twice.
    pub ratio: Ratio,
}

impl Settings for DuplicateSpec {}

pub(crate) struct Duplicate {
    spec: DuplicateSpec,
    random: Random,
}

impl Duplicate {
    pub(crate) fn new(spec: DuplicateSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
        }
    }
}

impl Filter for Duplicate {
    type Spec = DuplicateSpec;
    const CROSSING: Crossing = Crossing::Split;

    fn pass(&mut self, _: Time, packet: Packet, out: &mut Outlet<'_>) {
        let twice = !packet.is_link_multicast() && self.random.chance(self.spec.ratio.value());
        let copy = twice.then(|| packet.clone());
        out.forward(packet);
        if let Some(copy) = copy {
            out.duplicate(copy);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: DuplicateSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::spec::CellSpec;

    #[test]
    fn the_seed_decides_which() {
        let spec = CellSpec::from_pairs("duplicate", &[("ratio", "5%")]).unwrap();
        let mut cell = spec.build(7, Time::ZERO).own();
        let mut twice = Vec::new();
        for port in 0..60 {
            let packet = udp(100, port, 0);
            let data = packet.data.clone();
            cell.enqueue(Time::ZERO, packet);
            let out: Vec<_> = std::iter::from_fn(|| cell.dequeue(Time::ZERO)).collect();
            assert!(out.iter().all(|(_, copy)| copy.data == data));
            if out.len() == 2 {
                twice.push(port);
            }
        }
        assert_eq!(twice, [20, 22, 28, 31, 51]);
        let stats = cell.stats(Time::ZERO, "duplicate");
        assert_eq!((stats.offered.packets, stats.delivered.packets), (60, 65));
        assert_eq!((stats.duplicated.packets, stats.duplicated.bytes), (5, 500));
    }
}
