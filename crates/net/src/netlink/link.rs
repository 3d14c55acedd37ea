//! Every interface of the namespace as rtnetlink(7) lists it (RTM_GETLINK, `linux/if_link.h`).

use nix::sys::socket::SockProtocol;
use plumb_model::results::host::{Interface, LinkCounters};

use super::NetlinkError;
use super::attribute::{Attribute, attributes, bytes_at, find, u32_at, u64_at};
use super::connection::list;

pub(super) const RTM_NEWLINK: u16 = 16;
pub(super) const RTM_GETLINK: u16 = 18;

/// Length of `struct ifinfomsg`: family, hardware type, index, flags, change mask.
pub(super) const HEADER_BYTES: usize = 16;

/// `IFF_UP` and `IFF_LOWER_UP` of `linux/if.h`.
pub(super) const UP: u32 = 1;
const LOWER_UP: u32 = 1 << 16;

/// The interfaces of the namespace of the calling thread, with what rtnetlink knows of them.
///
/// # Errors
/// Errors of the kernel.
pub fn links() -> Result<Vec<Interface>, NetlinkError> {
    let messages = list(
        SockProtocol::NetlinkRoute,
        RTM_GETLINK,
        &[0; HEADER_BYTES],
        "interfaces",
    )?;
    Ok(messages
        .iter()
        .filter(|message| message.kind == RTM_NEWLINK)
        .filter_map(|message| link(&message.body))
        .collect())
}

fn link(body: &[u8]) -> Option<Interface> {
    let flags = u32_at(body, 8)?;
    let mut interface = Interface {
        index: u32_at(body, 4)?,
        hardware: hardware(bytes_at(body, 2).map(u16::from_ne_bytes)?),
        up: flags & UP != 0,
        carrier: flags & LOWER_UP != 0,
        ..Interface::default()
    };
    for attribute in attributes(body.get(HEADER_BYTES..)?) {
        match attribute.kind {
            3 => interface.name = attribute.text(),
            4 => interface.mtu_bytes = attribute.u32().unwrap_or_default(),
            10 => interface.controller = attribute.u32(),
            13 => interface.tx_queue_packets = attribute.u32(),
            // IFLA_LINKINFO, and in it IFLA_INFO_KIND.
            18 => interface.kind = find(attribute.value, 1).map(|kind| kind.text()),
            20 => interface.alias = Some(attribute.text()).filter(|alias| !alias.is_empty()),
            23 => interface.counters = counters(&attribute),
            35 => interface.carrier_changes = attribute.u32(),
            40 => interface.gso_max_segments = attribute.u32(),
            41 => interface.gso_max_bytes = attribute.u32(),
            // IFLA_MAX_MTU; 0 where the driver has no limit.
            51 => interface.max_mtu_bytes = attribute.u32().filter(|mtu| *mtu != 0),
            _ => {}
        }
    }
    Some(interface)
}

/// `struct rtnl_link_stats64`; kernels have lengthened it at its end.
fn counters(attribute: &Attribute<'_>) -> LinkCounters {
    let at = |place: usize| u64_at(attribute.value, 8 * place).unwrap_or_default();
    LinkCounters {
        rx_packets: at(0),
        tx_packets: at(1),
        rx_bytes: at(2),
        tx_bytes: at(3),
        rx_errors: at(4),
        tx_errors: at(5),
        rx_dropped: at(6),
        tx_dropped: at(7),
        multicast: at(8),
        collisions: at(9),
        rx_length_errors: at(10),
        rx_over_errors: at(11),
        rx_crc_errors: at(12),
        rx_frame_errors: at(13),
        rx_fifo_errors: at(14),
        rx_missed_errors: at(15),
        tx_aborted_errors: at(16),
        tx_carrier_errors: at(17),
        tx_fifo_errors: at(18),
        tx_heartbeat_errors: at(19),
        tx_window_errors: at(20),
        rx_compressed: at(21),
        tx_compressed: at(22),
        rx_nohandler: at(23),
    }
}

/// `ARPHRD_*` of `linux/if_arp.h` in words.
fn hardware(kind: u16) -> String {
    let word = match kind {
        1 => "ethernet",
        32 => "infiniband",
        512 => "ppp",
        519 => "rawip",
        768 => "ipip",
        769 => "ip6tnl",
        772 => "loopback",
        776 => "sit",
        778 => "gre",
        801..=803 => "wifi",
        823 => "ip6gre",
        65534 => "none",
        other => return format!("type {other}"),
    };
    word.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::attribute::encode;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interface_is_read() {
        let mut body = vec![0; HEADER_BYTES];
        body.splice(2..4, 1_u16.to_ne_bytes());
        body.splice(4..8, 7_u32.to_ne_bytes());
        body.splice(8..12, (UP | LOWER_UP).to_ne_bytes());
        let stats: Vec<u8> = (1..=24_u64).flat_map(u64::to_ne_bytes).collect();
        body.extend(encode(3, b"veth0\0"));
        body.extend(encode(4, &1400_u32.to_ne_bytes()));
        body.extend(encode(18, &encode(1, b"veth\0")));
        body.extend(encode(23, &stats));
        body.extend(encode(51, &0_u32.to_ne_bytes()));
        let read = link(&body).unwrap();
        assert_eq!(
            (
                read.name.as_str(),
                read.index,
                read.mtu_bytes,
                read.max_mtu_bytes
            ),
            ("veth0", 7, 1400, None)
        );
        assert_eq!(read.hardware, "ethernet");
        assert_eq!(read.kind.as_deref(), Some("veth"));
        assert!(read.up && read.carrier);
        let values = read.counters.named().map(|(_, value)| value);
        assert_eq!(values.to_vec(), (1..=24).collect::<Vec<u64>>());
    }

    #[test]
    fn the_loopback_is_there() {
        let lo = links()
            .unwrap()
            .into_iter()
            .find(|l| l.name == "lo")
            .unwrap();
        assert_eq!((lo.index, lo.hardware.as_str()), (1, "loopback"));
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = link(&body);
        }
    }
}
