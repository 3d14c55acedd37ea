//! The names in a certificate that a server shows.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = plumb_wire::certificate::dns_names(bytes);
});
