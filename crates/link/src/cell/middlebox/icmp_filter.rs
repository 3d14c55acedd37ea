//! A firewall that drops ICMP, or some of it: what breaks ping, traceroute and path MTU
//! discovery (RFC 2923 section 2.1; RFC 4890 says what ought to pass).

use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::cell::middlebox::icmp_kind::{IcmpKind, is_selected};
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "icmp_filter", types = ["frag-needed"] }`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IcmpFilterSpec {
    /// What is dropped; without any everything but what an IPv6 link cannot do without.
    pub types: Vec<IcmpKind>,
}

impl Settings for IcmpFilterSpec {}

pub(crate) struct IcmpFilter {
    spec: IcmpFilterSpec,
}

impl IcmpFilter {
    pub(crate) fn new(spec: IcmpFilterSpec) -> Self {
        Self { spec }
    }
}

impl Filter for IcmpFilter {
    type Spec = IcmpFilterSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, _: Time, packet: Packet, out: &mut Outlet<'_>) {
        if is_selected(&self.spec.types, &packet.data) {
            out.drop(DropCause::IcmpFilter, &packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: IcmpFilterSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cell::middlebox::icmp_kind::tests::icmp;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::CellSpec;

    /// Which of an echo request, time exceeded, TCP and UDP pass.
    fn passing(pairs: &[(&str, &str)]) -> [bool; 4] {
        let spec = CellSpec::from_pairs("icmp_filter", pairs).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        [
            icmp(false, 8, 0),
            icmp(true, 3, 0),
            tcp(false, 10_000, 1448, ACK),
            udp(100, 1, 0),
        ]
        .map(|packet| {
            cell.enqueue(Time::ZERO, packet);
            cell.dequeue(Time::ZERO).is_some()
        })
    }

    #[test]
    fn all_or_some() {
        assert_eq!(passing(&[]), [false, false, true, true]);
        let some = [("types", "['echo-request', 'frag-needed']")];
        assert_eq!(passing(&some), [false, true, true, true]);
        let error = CellSpec::from_pairs("icmp_filter", &[("types", "['echo-requst']")]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("did you mean 'echo-request'"), "{error}");
    }
}
