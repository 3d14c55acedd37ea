//! A scenario in TOML, with all that is checked of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = plumb_lab::scenario::Scenario::parse(text, "x.toml");
});
