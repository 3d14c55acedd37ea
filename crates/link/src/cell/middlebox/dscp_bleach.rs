//! A box that takes away, or sets, the differentiated services codepoint (RFC 2474), as many
//! networks do at their edge (RFC 2475 section 2.3.3). ECN is left alone.

use plumb_wire::rewrite;
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "dscp_bleach" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct DscpBleachSpec {
    /// The codepoint of all packets afterwards, 0…63.
    pub dscp: u8,
}

impl Settings for DscpBleachSpec {
    fn check(&self) -> Result<(), String> {
        match self.dscp {
            0..64 => Ok(()),
            more => Err(format!("dscp = {more} is no codepoint: write 0 to 63")),
        }
    }
}

pub(crate) struct DscpBleach {
    spec: DscpBleachSpec,
}

impl DscpBleach {
    pub(crate) fn new(spec: DscpBleachSpec) -> Self {
        Self { spec }
    }
}

impl Filter for DscpBleach {
    type Spec = DscpBleachSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, _: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        if rewrite::set_dscp(&mut packet.data, self.spec.dscp) {
            out.forward_changed(packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: DscpBleachSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::spec::CellSpec;
    use plumb_wire::checksum::checksum;

    #[test]
    fn the_codepoint_changes_and_ecn_does_not() {
        let spec = CellSpec::from_pairs("dscp_bleach", &[("dscp", "8")]).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        for class in [0xb8 | 2, 8 << 2 | 1] {
            cell.enqueue(Time::ZERO, udp(100, 1, class));
            let (_, packet) = cell.dequeue(Time::ZERO).unwrap();
            assert_eq!(packet.data[1], 8 << 2 | class & 3);
            assert_eq!(checksum(&packet.data[..20]), 0);
        }
        assert_eq!(cell.tally().changed, 1);
        assert!(CellSpec::from_pairs("dscp_bleach", &[("dscp", "64")]).is_err());
    }
}
