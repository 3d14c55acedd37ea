//! The head of a page.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = plumb_wire::http_head::Head::parse(bytes);
});
