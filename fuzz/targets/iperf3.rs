//! What iperf3's clients send: parameters, results and datagrams.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plumb_wire::iperf3::{Counter, Header, Limits, Parameters, Results};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        longest: Duration::from_secs(600),
        streams: 128,
    };
    if let Ok(parameters) = serde_json::from_slice::<Parameters>(bytes)
        && let Ok(test) = parameters.test(limits)
    {
        assert!(test.lasts <= limits.longest && test.receives + test.sends <= limits.streams);
    }
    let _ = serde_json::from_slice::<Results>(bytes);
    let mut counter = Counter::default();
    for datagram in bytes.chunks(16) {
        for long in [false, true] {
            if let Some(header) = Header::read(long, datagram) {
                counter.count(header, datagram.len() as u64, header.sent);
            }
        }
    }
    assert!(counter.jitter_s.is_finite());
});
