//! Loss of every nth packet.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::cell::loss::LossModel;
use crate::cell::matching::Match;
use crate::packet::Packet;
use crate::settings::Settings;

/// `{ type = "periodic_loss", every = 100, first = 3 }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodicLossSpec {
    /// One of so many packets is lost.
    pub every: NonZeroU64,
    /// The number of the first that is lost, counted from 1; equal to `every` when absent.
    pub first: Option<NonZeroU64>,
    /// Which packets are counted; all when absent.
    #[serde(default, rename = "match")]
    pub matching: Match,
}

impl Settings for PeriodicLossSpec {}

/// The model. When it is changed, it counts on.
pub(crate) struct PeriodicLoss {
    spec: PeriodicLossSpec,
    seen: u64,
}

impl PeriodicLoss {
    pub(crate) fn new(spec: PeriodicLossSpec) -> Self {
        Self { spec, seen: 0 }
    }
}

impl LossModel for PeriodicLoss {
    type Spec = PeriodicLossSpec;

    fn loses(&mut self, packet: &Packet) -> bool {
        if !self.spec.matching.matches(packet) {
            return false;
        }
        self.seen += 1;
        let first = self.spec.first.unwrap_or(self.spec.every).get();
        self.seen
            .checked_sub(first)
            .is_some_and(|later| later % self.spec.every == 0)
    }

    fn reconfigure(&mut self, spec: PeriodicLossSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::cell::loss::tests::{lost, lost_of};
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::CellSpec;

    const KIND: &str = "periodic_loss";

    #[test]
    fn one_of_so_many() {
        assert_eq!(lost(KIND, &[("every", "4")], 13), [3, 7, 11]);
        assert_eq!(lost(KIND, &[("every", "4"), ("first", "1")], 9), [0, 4, 8]);
        assert_eq!(lost(KIND, &[("every", "2"), ("first", "6")], 9), [5, 7]);
        assert_eq!(lost(KIND, &[("every", "1")], 3), [0, 1, 2]);
        assert!(CellSpec::from_pairs(KIND, &[("every", "0")]).is_err());
    }

    #[test]
    fn only_what_matches_counts() {
        let packets = (0..9).map(|i| match i % 3 {
            0 => udp(100, 1, 0),
            _ => tcp(false, 500, 1448, ACK),
        });
        let lost = lost_of(KIND, &[("every", "2"), ("match", "udp")], packets);
        assert_eq!(lost, [3]);
    }
}
