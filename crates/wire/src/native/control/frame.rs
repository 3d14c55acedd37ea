//! Frames of the control connection, and the preamble of data connections.
//!
//! A frame is its length (u32, big-endian, the length itself not counted) and as many bytes of
//! JSON, or where the client says in its Hello that it unpacks them, a byte of zero and as many bytes of JSON packed with
//! Deflate (RFC 1951): the samples of a phase take a path of 150 kbit/s half a minute otherwise. A preamble is 48 bytes, big-endian:
//!
//! ```text
//!  0  magic     "plumbDAT"        12  phase    u32
//!  8  version   u16               16  stream   u32
//! 10  role      u8                20  token    16 bytes
//! 11  flags     u8                36  reserved 12 bytes
//! ```
//! The lowest flag says that a TLS handshake follows. The other flags and the reserved bytes are sent as zero and not looked at.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use plumb_model::direction::OneDirection;
use plumb_model::{json, printable};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Token;
use crate::native::spec::{
    DATA_MAGIC, FRAME_HEADER_BYTES, MAX_FIRST_FRAME_BYTES, MAX_SILENCE, PREAMBLE_BYTES,
    SILENT_MAGIC, VERSION,
};

/// Characters of an error of the JSON reader: its own words, and the beginning of the word it did not know.
const MAX_QUOTED_CHARS: usize = 200;

/// Bytes that are no frame or preamble of this protocol.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// A packed body that is none, or of more than so many bytes.
    #[error("a packed message that cannot be unpacked into at most {max} bytes")]
    Packed { max: usize },
    /// The length is zero or above what that end may send.
    #[error("a frame of {length} bytes, where 1 to {max} are allowed")]
    Length { length: usize, max: usize },
    /// No JSON, or no known message. The reader's own words repeat what the far end sent.
    #[error("a message that cannot be read ({})", printable::clipped(&.0.to_string(), MAX_QUOTED_CHARS))]
    Json(#[from] serde_json::Error),
    /// The preamble does not begin with the magic.
    #[error("neither a control frame nor a data connection")]
    Magic,
    /// The preamble is of another version.
    #[error("version {found} of the protocol, where {VERSION} is spoken")]
    Version { found: u16 },
    /// The preamble asks for too long a silence.
    #[error("a silence of {seconds} s, where up to {} s are kept", MAX_SILENCE.as_secs())]
    Silence { seconds: u64 },
    /// The preamble names no known role.
    #[error("an unknown role ({found}) of a data connection")]
    Role { found: u8 },
}

/// Length and JSON of a message.
///
/// # Errors
/// When it is longer than `max` bytes.
pub fn encode_frame(message: &impl Serialize, max: usize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; FRAME_HEADER_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - FRAME_HEADER_BYTES;
    match u32::try_from(length) {
        Ok(header) if length <= max => {
            frame.splice(..FRAME_HEADER_BYTES, header.to_be_bytes());
            Ok(frame)
        }
        _ => Err(FrameError::Length { length, max }),
    }
}

/// What a packed body begins with; no JSON does.
const PACKED: u8 = 0;

/// Shorter frames gain nothing by being packed, in bytes.
const WORTH_PACKING_BYTES: usize = 512;

/// Length and body of a message, packed where it is long enough for that.
///
/// # Errors
/// When it is longer than `max` bytes before it is packed.
pub fn encode_packed_frame(message: &impl Serialize, max: usize) -> Result<Vec<u8>, FrameError> {
    let frame = encode_frame(message, max)?;
    let (_, body) = frame.split_at(FRAME_HEADER_BYTES.min(frame.len()));
    if body.len() < WORTH_PACKING_BYTES {
        return Ok(frame);
    }
    let mut packer = DeflateEncoder::new(vec![PACKED], Compression::fast());
    let packed = packer.write_all(body).and_then(|()| packer.finish());
    Ok(
        match packed.map(|packed| (u32::try_from(packed.len()), packed)) {
            Ok((Ok(header), packed)) if packed.len() < body.len() => {
                [header.to_be_bytes().as_slice(), &packed].concat()
            }
            _ => frame,
        },
    )
}

/// The length that a header announces, if it is one that the far end may send.
///
/// # Errors
/// When it is zero or above `max`.
pub fn frame_length(header: [u8; FRAME_HEADER_BYTES], max: usize) -> Result<usize, FrameError> {
    let length = u32::from_be_bytes(header) as usize;
    if (1..=max).contains(&length) {
        Ok(length)
    } else {
        Err(FrameError::Length { length, max })
    }
}

/// The message in the body of a frame.
///
/// # Errors
/// When it is no JSON or no known message.
pub fn decode_body<M: DeserializeOwned>(body: &[u8]) -> Result<M, FrameError> {
    Ok(json::from_slice(body)?)
}

/// The same of a body that may be packed, and is of at most `max` bytes when it is not.
///
/// # Errors
/// When it is no JSON or no known message, or longer than that.
pub fn decode_packed_body<M: DeserializeOwned>(body: &[u8], max: usize) -> Result<M, FrameError> {
    let Some((&PACKED, packed)) = body.split_first() else {
        return decode_body(body);
    };
    let mut json = Vec::new();
    let mut unpacked = DeflateDecoder::new(packed).take(max as u64 + 1);
    match unpacked.read_to_end(&mut json) {
        Ok(length) if length <= max => decode_body(&json),
        _ => Err(FrameError::Packed { max }),
    }
}

/// What the first bytes of a connection announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A control connection whose first frame has a body of so many bytes.
    Control(usize),
    /// A data connection: the rest of the preamble follows.
    Data,
    /// A connection that is to be silent: the rest of its preamble follows.
    Silent,
}

/// Distinguishes a control connection, a data connection and a silent one.
///
/// # Errors
/// When it is none of them.
pub fn opening(first: [u8; FRAME_HEADER_BYTES]) -> Result<Opening, FrameError> {
    if DATA_MAGIC.starts_with(&first) {
        return Ok(Opening::Data);
    }
    if SILENT_MAGIC.starts_with(&first) {
        return Ok(Opening::Silent);
    }
    frame_length(first, MAX_FIRST_FRAME_BYTES)
        .map(Opening::Control)
        .map_err(|_| FrameError::Magic)
}

/// A direction's byte on the wire.
pub(crate) fn role_code(role: OneDirection) -> u8 {
    match role {
        OneDirection::Down => 1,
        OneDirection::Up => 2,
    }
}

pub(crate) fn role_of_code(found: u8) -> Option<OneDirection> {
    [OneDirection::Down, OneDirection::Up]
        .into_iter()
        .find(|role| role_code(*role) == found)
}

/// How a data connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Session that it belongs to.
    pub token: Token,
    /// Phase that it belongs to.
    pub phase: u32,
    /// Number among the streams of its role, from 0.
    pub stream: u32,
    /// The direction of its data.
    pub role: OneDirection,
    /// Whether everything after the preamble is TLS.
    pub tls: bool,
}

/// The flag of [`Preamble::tls`].
const TLS_FLAG: u8 = 1;

impl Preamble {
    pub fn encode(&self) -> [u8; PREAMBLE_BYTES] {
        let role = role_code(self.role);
        let fields = DATA_MAGIC
            .into_iter()
            .chain(VERSION.to_be_bytes())
            .chain([role, if self.tls { TLS_FLAG } else { 0 }])
            .chain(self.phase.to_be_bytes())
            .chain(self.stream.to_be_bytes())
            .chain(self.token.0);
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes
            .iter_mut()
            .zip(fields)
            .for_each(|(byte, value)| *byte = value);
        bytes
    }

    /// What the bytes say.
    ///
    /// # Errors
    /// When they are no preamble of this version.
    pub fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Result<Self, FrameError> {
        let mut rest = bytes.as_slice();
        if take(&mut rest) != Some(DATA_MAGIC) {
            return Err(FrameError::Magic);
        }
        let found = u16::from_be_bytes(take(&mut rest).ok_or(FrameError::Magic)?);
        if found != VERSION {
            return Err(FrameError::Version { found });
        }
        let [role, flags] = take(&mut rest).ok_or(FrameError::Magic)?;
        let role = role_of_code(role).ok_or(FrameError::Role { found: role })?;
        let phase = take(&mut rest).ok_or(FrameError::Magic)?;
        let stream = take(&mut rest).ok_or(FrameError::Magic)?;
        let token = take(&mut rest).ok_or(FrameError::Magic)?;
        Ok(Self {
            token: Token(token),
            phase: u32::from_be_bytes(phase),
            stream: u32::from_be_bytes(stream),
            role,
            tls: flags & TLS_FLAG != 0,
        })
    }
}

/// Takes the first `N` bytes off the front.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::flow::{Flows, TcpFlow};
    use super::super::{ClientMessage, ErrorCode, ServerMessage, Start};
    use super::*;
    use crate::native::spec::{MAX_CLIENT_FRAME_BYTES, MAX_SERVER_FRAME_BYTES};
    use proptest::prelude::*;

    #[test]
    fn a_control_frame_is_never_taken_for_data() {
        for length in 1..=MAX_FIRST_FRAME_BYTES {
            let header = u32::try_from(length).unwrap().to_be_bytes();
            assert_eq!(opening(header).unwrap(), Opening::Control(length));
        }
        assert_eq!(opening(*b"plum").unwrap(), Opening::Data);
        assert!(opening(*b"GET ").is_err());
        assert!(opening([0; 4]).is_err());
    }

    #[test]
    fn frames_above_the_limit_are_not_made() {
        let message = ClientMessage::Hello {
            version: 1,
            plumb: "x".repeat(MAX_CLIENT_FRAME_BYTES),
            waits_s: None,
            unpacks: false,
        };
        assert!(matches!(
            encode_frame(&message, MAX_CLIENT_FRAME_BYTES),
            Err(FrameError::Length { .. })
        ));
    }

    #[test]
    fn a_packed_message_is_not_unpacked_beyond_the_limit() {
        let mut bomb = DeflateEncoder::new(vec![PACKED], Compression::best());
        bomb.write_all(&vec![b' '; 100 * MAX_SERVER_FRAME_BYTES])
            .unwrap();
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < MAX_SERVER_FRAME_BYTES);
        let why = decode_packed_body::<ServerMessage>(&bomb, MAX_SERVER_FRAME_BYTES).unwrap_err();
        assert!(matches!(why, FrameError::Packed { .. }), "{why}");
    }

    proptest! {
        #[test]
        fn frames_come_back(phase: u32, down: u32, up: u32, ms in 1..200_000_u32,
                            byte_limit: Option<u64>, cc in proptest::option::of("[a-z]{1,15}")) {
            let duration_s = f64::from(ms) / 1e3;
            let flow = TcpFlow { cc, dscp: Some(8), ..TcpFlow::default() };
            let flows = vec![Flows::tcp(down, OneDirection::Down, flow.clone()), Flows::tcp(up, OneDirection::Up, flow)];
            let message = ClientMessage::Start(Start { phase, flows, duration_s, byte_limit });
            let frame = encode_frame(&message, MAX_CLIENT_FRAME_BYTES).unwrap();
            let length = frame_length(frame[..4].try_into().unwrap(), MAX_CLIENT_FRAME_BYTES).unwrap();
            prop_assert_eq!(length, frame.len() - 4);
            prop_assert_eq!(decode_body::<ClientMessage>(&frame[4..]).unwrap(), message);
        }

        #[test]
        fn packed_frames_come_back(messages in "[a-z ]{0,3000}") {
            let message = ServerMessage::Error { code: ErrorCode::Full, message: messages };
            let frame = encode_packed_frame(&message, MAX_SERVER_FRAME_BYTES).unwrap();
            let length = frame_length(frame[..4].try_into().unwrap(), MAX_SERVER_FRAME_BYTES).unwrap();
            prop_assert_eq!(length, frame.len() - 4);
            prop_assert!(frame.len() <= encode_frame(&message, MAX_SERVER_FRAME_BYTES).unwrap().len());
            prop_assert_eq!(decode_packed_body::<ServerMessage>(&frame[4..], MAX_SERVER_FRAME_BYTES).unwrap(), message);
        }

        #[test]
        fn hostile_packed_bodies_do_no_harm(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_packed_body::<ServerMessage>(&[vec![PACKED], body].concat(), MAX_SERVER_FRAME_BYTES);
        }

        #[test]
        fn hostile_bodies_do_no_harm(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_body::<ClientMessage>(&body);
            let _ = decode_body::<ServerMessage>(&body);
        }

        #[test]
        fn hostile_json_does_no_harm(body in r#"\{"type":"(hello|start|stop|ping|welcome|result|samples)"(,"(phase|version|report|samples|stream|duration_s|token)":(-?[0-9]{1,30}|null|\[\]|\{\}|"[a-f0-9]{0,40}"|1e999)){0,6}\}"#) {
            let _ = decode_body::<ClientMessage>(body.as_bytes());
            let _ = decode_body::<ServerMessage>(body.as_bytes());
        }

        #[test]
        fn preambles_come_back(token: [u8; 16], phase: u32, stream: u32, up: bool, tls: bool) {
            let role = if up { OneDirection::Up } else { OneDirection::Down };
            let preamble = Preamble { token: Token(token), phase, stream, role, tls };
            prop_assert_eq!(Preamble::decode(&preamble.encode()).unwrap(), preamble);
        }

        #[test]
        fn a_changed_preamble_is_another_or_none(at in 0..PREAMBLE_BYTES, bit in 0..8_u8) {
            let preamble = Preamble { token: Token([9; 16]), phase: 3, stream: 5, role: OneDirection::Up, tls: false };
            let mut bytes = preamble.encode();
            bytes[at] ^= 1 << bit;
            let reserved = (at == 11 && bit > 0) || at >= 36;
            prop_assert_eq!(Preamble::decode(&bytes).is_ok_and(|p| p == preamble), reserved);
        }

        #[test]
        fn hostile_preambles_do_no_harm(bytes: [u8; 48]) {
            let _ = Preamble::decode(&bytes);
        }
    }
}
