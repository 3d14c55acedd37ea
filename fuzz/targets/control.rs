//! The first bytes of a connection to the responder, and the body of a frame from either end.
#![no_main]

use plumb_wire::native::control::frame::{Preamble, decode_body, decode_packed_body, opening};
use plumb_wire::native::control::{ClientMessage, ServerMessage};
use plumb_wire::native::spec::MAX_SERVER_FRAME_BYTES;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = bytes.first_chunk().map(|first| opening(*first));
    let _ = bytes.first_chunk().map(Preamble::decode);
    let _ = decode_body::<ClientMessage>(bytes);
    let _ = decode_body::<ServerMessage>(bytes);
    let _ = decode_packed_body::<ServerMessage>(bytes, MAX_SERVER_FRAME_BYTES);
});
