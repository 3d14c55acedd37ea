//! A capture of any packet: its block bears its length at both ends, in whole words.
#![no_main]

use plumb_wire::pcapng::{Direction, packet};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let block = packet(0, 0, Direction::Inbound, bytes, 0);
    let length = (block.len() as u32).to_le_bytes();
    assert!(block.len() % 4 == 0 && block[4..8] == length && block.ends_with(&length));
});
