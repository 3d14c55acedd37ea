//! A datagram at the UDP echo.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(datagram) = plumb_wire::native::echo::Datagram::parse(bytes) {
        let _ = datagram.write(bytes.len());
    }
});
