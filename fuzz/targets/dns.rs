//! What answers a question to a DNS server.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    use plumb_wire::dns::{Query, RecordKind};
    for name in [".", "example.net"] {
        if let Ok(query) = Query::new(name, RecordKind::A) {
            let _ = query.answer(bytes);
        }
    }
});
