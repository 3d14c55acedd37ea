//! What is read over HTTP and WebSocket beyond their framing: queries, networkQuality's document, M-Lab's list of servers, NDT7's reports.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plumb_wire::web::{bytes_asked, locate, ndt7, nq, visit};

fuzz_target!(|bytes: &[u8]| {
    let _ = nq::parse(bytes);
    let _ = locate::parse(bytes);
    let _ = visit::parse(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = bytes_asked(text);
        let _ = visit::of_query(text);
    }
    if let Ok(report) = serde_json::from_slice::<ndt7::Measurement>(bytes) {
        let written = serde_json::to_vec(&report).unwrap_or_default();
        assert_eq!(serde_json::from_slice::<ndt7::Measurement>(&written).ok(), Some(report));
    }
});
