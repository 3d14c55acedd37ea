//! Queueing disciplines: what there is and what it counted, and making and changing it (rtnetlink(7), tc(8),
//! `linux/pkt_sched.h`, `linux/gen_stats.h`).

mod change;
pub mod filter;
mod handle;
pub mod listed;
pub mod options;
pub mod statistics;

pub use change::How;
pub use handle::Handle;

use plumb_model::results::host::Qdisc;

use super::NetlinkError;
use listed::{Listed, disciplines};

/// The queueing disciplines of the namespace, with the number of the interface that each is on.
///
/// # Errors
/// Errors of the kernel.
pub fn qdiscs() -> Result<Vec<(u32, Qdisc)>, NetlinkError> {
    Ok(disciplines()?.iter().map(qdisc).collect())
}

fn qdisc(listed: &Listed) -> (u32, Qdisc) {
    let counted = &listed.counted;
    let qdisc = Qdisc {
        interface: String::new(),
        kind: listed.kind.clone(),
        handle: listed.handle.to_string(),
        parent: listed.parent.to_string(),
        bytes: counted.bytes,
        packets: counted.packets,
        drops: counted.drops,
        overlimits: counted.overlimits,
        requeues: counted.requeues,
        backlog_bytes: counted.backlog_bytes,
        queue_packets: counted.queue_packets,
    };
    (listed.index, qdisc)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::attribute::encode;
    use super::*;

    #[test]
    fn statistics_are_read() {
        let mut body = vec![0; listed::HEADER_BYTES];
        body.splice(4..8, 3_u32.to_ne_bytes());
        body.splice(8..12, 0x8001_0000_u32.to_ne_bytes());
        body.splice(12..16, Handle::ROOT.0.to_ne_bytes());
        let mut basic = 3000_u64.to_ne_bytes().to_vec();
        basic.extend(2_u32.to_ne_bytes());
        let queue: Vec<u8> = [5_u32, 7000, 11, 13, 17]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        body.extend(encode(1, b"fq_codel\0"));
        body.extend(encode(7, &[encode(1, &basic), encode(3, &queue)].concat()));
        let (index, read) = qdisc(&listed::one(&body).unwrap());
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
}
