//! What irtt's clients send: a stream of datagrams, the first byte of each its length.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plumb_wire::irtt::{Arrived, Key, Limits, Parameters, Server};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        longest: Duration::from_secs(60),
        interval: Duration::from_millis(1),
        length: 1472,
    };
    if let Some(read) = Parameters::read(bytes) {
        assert_eq!(Parameters::read(&read.write()), Some(read));
    }
    for key in [None, Key::new(b"secret")] {
        let mut server = Server::new(key, limits);
        let (mut now, mut rest) = (Duration::ZERO, bytes);
        while let Some((length, after)) = rest.split_first() {
            let (datagram, after) = after.split_at(after.len().min(usize::from(*length)));
            rest = after;
            now += Duration::from_millis(1);
            let arrived = Arrived {
                bytes: datagram,
                from: ([192, 0, 2, 1], 5000).into(),
                wall_ns: i64::MAX,
                monotonic_ns: i64::MIN,
            };
            // A token that the input can have.
            let answer = server.answer(now, &arrived, || Some(0x0101_0101_0101_0101), || (0, 0));
            if let Some(answer) = answer {
                assert!(answer.bytes.len() <= datagram.len() + 8);
            }
        }
    }
});
