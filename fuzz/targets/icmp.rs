//! An echo, its mark, and what an error quotes of one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    use plumb_wire::icmp::{Echo, EchoHeader, HEADER_BYTES, Mark, Version};
    for version in [Version::V4, Version::V6] {
        if let Some(echo) = Echo::parse(version, bytes) {
            let _ = Mark::parse(echo.payload);
        }
    }
    if let Some(header) = bytes.first_chunk::<HEADER_BYTES>() {
        let _ = EchoHeader::parse(header);
    }
});
