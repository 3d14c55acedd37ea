//! The header before every frame of a TUN device.
#![no_main]

use plumb_wire::virtio::VirtioHeader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = VirtioHeader::parse(bytes) {
        assert_eq!(VirtioHeader::parse(&header.to_bytes()).ok(), Some(header));
    }
});
