//! Records of a data connection that is loaded and probed at once, in two portions.
#![no_main]

use plumb_wire::native::record::Reader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut reader = Reader::default();
    for mut portion in [first, second] {
        while let Ok(Some(_)) = reader.next(&mut portion) {}
    }
});
