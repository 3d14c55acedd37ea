//! Queueing disciplines and what they counted (RTM_GETQDISC, `linux/pkt_sched.h`, `gen_stats.h`).

use nix::sys::socket::SockProtocol;
use plumb_model::results::host::Qdisc;

use super::NetlinkError;
use super::attribute::{attributes, find, u32_at, u64_at};
use super::connection::list;

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;

/// Length of `struct tcmsg`: family, index, handle, parent, info.
const HEADER_BYTES: usize = 20;

/// `TC_H_ROOT`, `TC_H_INGRESS`, and the handle above which clsact has its own parents.
const ROOT: u32 = 0xFFFF_FFFF;
const INGRESS: u32 = 0xFFFF_FFF1;

/// The queueing disciplines of the namespace, with the number of the interface that each is on.
///
/// # Errors
/// Those of the kernel.
pub fn qdiscs() -> Result<Vec<(u32, Qdisc)>, NetlinkError> {
    let messages = list(
        SockProtocol::NetlinkRoute,
        RTM_GETQDISC,
        &[0; HEADER_BYTES],
        "queueing disciplines",
    )?;
    Ok(messages
        .iter()
        .filter(|message| message.kind == RTM_NEWQDISC)
        .filter_map(|message| qdisc(&message.body))
        .collect())
}

fn qdisc(body: &[u8]) -> Option<(u32, Qdisc)> {
    let mut qdisc = Qdisc {
        handle: format!("{:x}:", u32_at(body, 8)? >> 16),
        parent: match u32_at(body, 12)? {
            ROOT => "root".to_owned(),
            INGRESS => "ingress".to_owned(),
            class => format!("{:x}:{:x}", class >> 16, class & 0xFFFF),
        },
        ..Qdisc::default()
    };
    for attribute in attributes(body.get(HEADER_BYTES..)?) {
        match attribute.kind {
            // TCA_KIND.
            1 => qdisc.kind = attribute.text(),
            // TCA_STATS2.
            7 => {
                // TCA_STATS_BASIC, and where there is one the 64 bits of its packets
                // (TCA_STATS_PKT64).
                if let Some(basic) = find(attribute.value, 1) {
                    qdisc.bytes = u64_at(basic.value, 0).unwrap_or_default();
                    qdisc.packets = u32_at(basic.value, 8).unwrap_or_default().into();
                }
                if let Some(packets) = find(attribute.value, 8).and_then(|a| a.u64()) {
                    qdisc.packets = packets;
                }
                // TCA_STATS_QUEUE: `struct gnet_stats_queue`.
                if let Some(queue) = find(attribute.value, 3) {
                    let at = |place: usize| u32_at(queue.value, 4 * place).unwrap_or_default();
                    qdisc.queue_packets = at(0).into();
                    qdisc.backlog_bytes = at(1).into();
                    qdisc.drops = at(2).into();
                    qdisc.requeues = at(3).into();
                    qdisc.overlimits = at(4).into();
                }
            }
            _ => {}
        }
    }
    Some((u32_at(body, 4)?, qdisc))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::attribute::encode;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statistics_are_read() {
        let mut body = vec![0; HEADER_BYTES];
        body.splice(4..8, 3_u32.to_ne_bytes());
        body.splice(8..12, 0x8001_0000_u32.to_ne_bytes());
        body.splice(12..16, ROOT.to_ne_bytes());
        let mut basic = 3000_u64.to_ne_bytes().to_vec();
        basic.extend(2_u32.to_ne_bytes());
        let queue: Vec<u8> = [5_u32, 7000, 11, 13, 17]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        body.extend(encode(1, b"fq_codel\0"));
        body.extend(encode(7, &[encode(1, &basic), encode(3, &queue)].concat()));
        let (index, read) = qdisc(&body).unwrap();
        assert_eq!(index, 3);
        assert_eq!(
            read,
            Qdisc {
                interface: String::new(),
                kind: "fq_codel".into(),
                handle: "8001:".into(),
                parent: "root".into(),
                bytes: 3000,
                packets: 2,
                drops: 11,
                overlimits: 17,
                requeues: 13,
                backlog_bytes: 7000,
                queue_packets: 5,
            }
        );
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = qdisc(&body);
        }
    }
}
