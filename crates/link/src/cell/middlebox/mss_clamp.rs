//! A box that lowers the maximum segment size that both ends of a connection announce, as
//! routers before PPPoE and tunnels do instead of path MTU discovery (RFC 4459 section 3.2).

use plumb_wire::tcp_options;
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::cell::middlebox::opens_connection;
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "mss_clamp", bytes = 1400 }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MssClampSpec {
    /// The largest that passes: payload and TCP options of a segment.
    pub bytes: u16,
}

impl Settings for MssClampSpec {
    fn check(&self) -> Result<(), String> {
        match self.bytes {
            0 => Err("bytes = 0 leaves no room for data: write at least 1".to_owned()),
            _ => Ok(()),
        }
    }
}

pub(crate) struct MssClamp {
    spec: MssClampSpec,
}

impl MssClamp {
    pub(crate) fn new(spec: MssClampSpec) -> Self {
        Self { spec }
    }
}

impl Filter for MssClamp {
    type Spec = MssClampSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, _: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        if opens_connection(&mut packet)
            && tcp_options::clamp_mss(&mut packet.data, self.spec.bytes)
        {
            out.forward_changed(packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: MssClampSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::cell::middlebox::strip_tcp_options::tests::{checksum_is_right, syn};
    use crate::spec::CellSpec;
    use plumb_wire::ip::{ACK, SYN};

    fn clamp(bytes: &str, packet: Packet) -> (Packet, u64) {
        let spec = CellSpec::from_pairs("mss_clamp", &[("bytes", bytes)]).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        cell.enqueue(Time::ZERO, packet);
        let (_, packet) = cell.dequeue(Time::ZERO).unwrap();
        (packet, cell.tally().changed)
    }

    #[test]
    fn syns_announce_less_and_never_more() {
        for (flags, v6, bytes, after, changed) in [
            (SYN, false, "1300", 1300, 1),
            (SYN | ACK, true, "1300", 1300, 1),
            (SYN, false, "1461", 1460, 0),
            (ACK, false, "1300", 1460, 0),
        ] {
            let (packet, count) = clamp(bytes, syn(v6, flags));
            let at = if v6 { 62 } else { 42 };
            assert_eq!(packet.data[at..at + 2], u16::to_be_bytes(after), "{flags}");
            assert_eq!(count, changed);
            assert!(flags & SYN == 0 || checksum_is_right(&packet));
        }
    }
}
