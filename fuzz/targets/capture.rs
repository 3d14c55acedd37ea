//! A capture of either format, with whatever its packets are.
#![no_main]

use plumb_capture::{Analysis, Named, Reader, Watch};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(reader) = Reader::new(std::io::Cursor::new(bytes.to_vec())) {
        let name = "fuzz".to_owned();
        let result = Analysis::of(vec![Named { name, reader }], None, Watch::nobody(), &|| false);
        for connection in &result.connections {
            let l = &connection.limited;
            let sum =
                l.handshake_ratio + l.app_ratio + l.server_ratio + l.rwnd_ratio + l.path_ratio;
            assert!(sum == 0.0 || (sum - 1.0).abs() < 1e-9);
        }
    }
});
