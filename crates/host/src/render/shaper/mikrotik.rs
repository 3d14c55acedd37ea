//! RouterOS 7: CAKE as a queue type, in the queue tree of the interface that packets leave by.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, kbit, noun, of_ip_packets_bps};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "CAKE (Common Applications Kept Enhanced)",
        publisher: "MikroTik's RouterOS documentation",
        read: "2026-11",
        shell: true,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let word = noun(action.direction);
    let (parent, leaves) = match action.direction {
        OneDirection::Up => ("ether1", "the interface to the modem"),
        OneDirection::Down => ("bridge", "the interface to your own network"),
    };
    vec![
        "# Fasttrack passes queues by: it has to be off.".to_owned(),
        "/ip firewall filter disable [find action=fasttrack-connection]".to_owned(),
        // The queue tree shapes, so that CAKE has no bandwidth of its own.
        format!("/queue type add name=plumb-{word} kind=cake cake-bandwidth=0 \\"),
        format!(
            "    cake-nat=yes cake-overhead={} cake-mpu={}",
            action.overhead_bytes, action.mpu_bytes
        ),
        format!("# {parent}: {leaves}."),
        format!("/queue tree add name=plumb-{word} parent={parent} packet-mark=no-mark \\"),
        format!("    queue=plumb-{word} max-limit={}k", counted_kbit(action)),
    ]
}

/// The queue tree's own limit counts no framing.
fn counted_kbit(action: &ShaperAction) -> u64 {
    kbit(action).min((of_ip_packets_bps(action) / 1e3) as u64)
}
