//! Several datagrams of one exporter, one after the other: what is no message is refused, and none hands on more flows than it has bytes.
#![no_main]

use plumb_wire::flow_export::exporter::Exporter;

/// What may wait for a template of one byte.
const MOST_WAITING: usize = 65_536;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut exporter = Exporter::default();
    let mut rest = bytes;
    let mut now_ms = 1_700_000_000_000;
    // Each datagram is as long as its first byte says, in steps of eight.
    while let Some((length, more)) = rest.split_first() {
        let (datagram, after) = more.split_at((usize::from(*length) * 8).min(more.len()));
        let mut flows = 0;
        let _ = exporter.hear(datagram, now_ms, |flow| {
            flows += 1;
            assert!(flow.one_in.is_none_or(|one_in| one_in >= 1.0));
        });
        assert!(flows <= datagram.len() + MOST_WAITING);
        now_ms += 1000;
        rest = after;
    }
});
