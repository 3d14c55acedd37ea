//! A box that clears the ECN field: congestion marks and the senders' ECN-capable codepoints are lost on the path,
//! while the handshake still negotiates ECN (RFC 3168 section 18.1.1).

use plumb_wire::ip::{Ecn, IpPacket};
use plumb_wire::rewrite;
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "ecn_bleach" }`, or `{ type = "ecn_bleach", only = "ect1" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnBleachSpec {
    /// The codepoint that is cleared; absent where all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Only>,
}

/// A codepoint that a box may clear while it keeps the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Only {
    Ect0,
    Ect1,
}

impl Settings for EcnBleachSpec {}

pub(crate) struct EcnBleach {
    spec: EcnBleachSpec,
}

impl EcnBleach {
    pub(crate) fn new(spec: EcnBleachSpec) -> Self {
        Self { spec }
    }

    fn clears(&self, packet: &Packet) -> bool {
        let only = match self.spec.only {
            None => return true,
            Some(Only::Ect0) => Ecn::Ect0,
            Some(Only::Ect1) => Ecn::Ect1,
        };
        IpPacket::parse(&packet.data).is_some_and(|ip| ip.ecn() == only)
    }
}

impl Filter for EcnBleach {
    type Spec = EcnBleachSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, _: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        if self.clears(&packet) && rewrite::clear_ecn(&mut packet.data) {
            out.forward_changed(packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: EcnBleachSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::CellSpec;
    use plumb_wire::checksum::checksum;

    #[test]
    fn every_codepoint_becomes_not_ect() {
        let spec = CellSpec::from_pairs("ecn_bleach", &[]).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        for class in 0xb8..=0xbb {
            cell.enqueue(Time::ZERO, udp(100, 1, class));
            let (_, packet) = cell.dequeue(Time::ZERO).unwrap();
            assert_eq!(packet.data[1], 0xb8);
            assert_eq!(checksum(&packet.data[..20]), 0);
        }
        // A large segment passes whole and counts as its packets.
        let mut large = tcp(true, 3 * 1440, 1440, ACK);
        large.data[1] |= 0x20;
        cell.enqueue(Time::ZERO, large);
        let (_, packet) = cell.dequeue(Time::ZERO).unwrap();
        assert_eq!((packet.data[1], packet.segments()), (0, 3));
        assert_eq!(cell.tally().changed, 3 + 3);
    }

    #[test]
    fn one_codepoint_may_be_cleared_alone() {
        let spec = CellSpec::from_pairs("ecn_bleach", &[("only", "ect1")]).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        let mut passed = |class| {
            cell.enqueue(Time::ZERO, udp(100, 1, class));
            cell.dequeue(Time::ZERO).unwrap().1.data[1]
        };
        let passed = [0xb8, 0xb9, 0xba, 0xbb].map(&mut passed);
        assert_eq!(passed, [0xb8, 0xb8, 0xba, 0xbb]);
    }
}
