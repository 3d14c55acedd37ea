//! A packet at the STAMP reflector, and at its sender.
#![no_main]

use std::time::Duration;

use plumb_wire::stamp::{Arrived, ClockState, Counting, Key, Reflector, Reply};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let key = Key::new(b"fuzz");
    let from = std::net::SocketAddr::from(([192, 0, 2, 1], 4000));
    let clock = ClockState {
        synchronised: true,
        error: Duration::from_millis(1),
    };
    for key in [None, key] {
        if let Some(reply) = Reply::parse(bytes, key.as_ref()) {
            let _ = reply.tlvs(bytes, key.as_ref());
        }
        let mut reflector = Reflector::new(862, key, Counting::Stateful, 1000);
        let arrived = Arrived {
            bytes,
            from,
            ns: 1,
            dscp: Some(46),
            ecn: Some(1),
            hops: Some(64),
        };
        if let Some(mut reflected) = reflector.reflect(Duration::from_secs(1), clock, &arrived) {
            let answer = reflector.depart(&mut reflected, 2);
            assert_eq!(answer.len(), bytes.len());
            reflector.departed(&reflected, 3);
        }
    }
});
