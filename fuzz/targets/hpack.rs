//! Two blocks of fields, of which the second may use what the first left in the table.
#![no_main]

use plumb_wire::hpack::Decoder;

libfuzzer_sys::fuzz_target!(|blocks: (&[u8], &[u8])| {
    let mut decoder = Decoder::new(256, 4096);
    let _ = decoder.decode(blocks.0);
    let _ = decoder.decode(blocks.1);
});
