//! What a responder reports of the reverse path, and the preamble of a connection that is to be silent.
#![no_main]

use plumb_wire::native::control::frame::decode_body;
use plumb_wire::native::control::silence::Silence;
use plumb_wire::native::control::trace::{TraceReport, TraceRequest};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = bytes.first_chunk().map(Silence::decode);
    let asked = TraceRequest {
        id: 1,
        protocol: None,
        max_hops: 30,
        cycles: 3,
    };
    if let Ok(report) = decode_body::<TraceReport>(bytes)
        && report.check(&asked, report.towards).is_ok()
    {
        assert!(report.probes.len() <= 90);
    }
    if let Ok(asked) = decode_body::<TraceRequest>(bytes) {
        let _ = asked.check();
    }
});
