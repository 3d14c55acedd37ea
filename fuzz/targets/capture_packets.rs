//! Packets of a link, one behind the other, as a capture has them: each begins with its length and the time since the
//! one before, of a byte each.
#![no_main]

use plumb_capture::{Analysis, Anonymiser, Frame};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((link, mut rest)) = bytes.split_first() else {
        return;
    };
    let link = [0, 1, 9, 50, 51, 101, 105, 113, 127, 276][usize::from(*link) % 10];
    let (mut analysis, mut unix_ns) = (Analysis::default(), 0);
    let mut anonymiser = Anonymiser::new(b"fuzz");
    while let [length, wait, after @ ..] = rest {
        let (packet, next) = after.split_at(after.len().min(usize::from(*length)));
        unix_ns += u64::from(*wait) * 1_000_000;
        let original_bytes = packet.len() as u32;
        let frame = Frame {
            unix_ns,
            link,
            bytes: packet,
            original_bytes,
        };
        analysis.frame(&frame);
        assert!(anonymiser.frame(&frame).bytes.len() <= packet.len());
        rest = next;
    }
});
