//! The options of a SYN, as middleboxes read and change them.
#![no_main]

use plumb_wire::tcp_options::{clamp_mss, kinds, strip};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut packet = bytes.to_vec();
    let present = kinds(&packet);
    let _ = (clamp_mss(&mut packet, 536), strip(&mut packet, &present));
    assert_eq!(packet.len(), bytes.len());
});
