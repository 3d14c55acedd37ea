//! The files that cells name: traces as mahimahi has them, and samples of delays.
#![no_main]

use plumb_link::spec::CellSpec;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for (kind, settings) in [
        ("trace", &[("file", "x")][..]),
        ("delay", &[("delay", "1ms"), ("distribution", "{ file = \"x\" }")]),
    ] {
        let mut cell = CellSpec::from_pairs(kind, settings).expect("settings that are right");
        assert!(cell.file().is_some());
        let _ = cell.take_file(text);
    }
});
