//! A box that drops the SYNs of hosts that ask for ECN, as some did that took the bits for an
//! attack; hosts try again without (RFC 3168 section 6.1.1.1).

use plumb_wire::ip::{ACK, CWR, ECE, IpPacket, SYN};
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "ecn_syn_drop" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnSynDropSpec {}

impl Settings for EcnSynDropSpec {}

pub(crate) struct EcnSynDrop;

impl Filter for EcnSynDrop {
    type Spec = EcnSynDropSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, _: Time, packet: Packet, out: &mut Outlet<'_>) {
        const ECN_SETUP: u8 = SYN | ECE | CWR;
        let flags = IpPacket::parse(&packet.data).and_then(|ip| ip.tcp_flags());
        if flags.is_some_and(|flags| flags & (ECN_SETUP | ACK) == ECN_SETUP) {
            out.drop(DropCause::EcnSyn, &packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, _: EcnSynDropSpec) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::tcp;
    use crate::spec::CellSpec;

    #[test]
    fn only_syns_that_ask_for_ecn() {
        let spec = CellSpec::from_pairs("ecn_syn_drop", &[]).unwrap();
        for (flags, passes) in [
            (SYN, true),
            (SYN | ECE, true),
            (SYN | ECE | CWR, false),
            (SYN | ECE | CWR | ACK, true),
            (ACK | ECE | CWR, true),
        ] {
            let mut cell = spec.build(1, Time::ZERO).own();
            for v6 in [false, true] {
                cell.enqueue(Time::ZERO, tcp(v6, 0, 0, flags));
                let passed = cell.dequeue(Time::ZERO).is_some();
                assert_eq!(passed, passes, "{flags:#x}");
            }
            let dropped = cell.stats(Time::ZERO, "").dropped.get("ecn_syn").copied();
            assert_eq!(dropped, (!passes).then_some(2));
        }
    }
}
