//! The preamble of a connection that is to be silent: the server speaks first, after the time named. A
//! NAT or a firewall that forgot the connection in that time drops that byte.
//!
//! 32 bytes, big-endian:
//!
//! ```text
//!  0  magic     "hushPLUM"        12  silence  u32, milliseconds
//!  8  version   u16               16  token    16 bytes
//! 10  reserved  2 bytes
//! ```
//! The reserved bytes are sent as zero and ignored. The token names a session of the same address, so that the server
//! only speaks to a client that asked for it.

use std::time::Duration;

use super::Token;
use super::frame::FrameError;
use crate::native::spec::{MAX_SILENCE, SILENT_MAGIC, SILENT_PREAMBLE_BYTES, VERSION};

/// The byte that ends the silence.
pub const FIRST_WORD: u8 = b'.';

/// How a connection that is to be silent begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Session that it belongs to.
    pub token: Token,
    /// How long neither end sends, in whole milliseconds, up to [`MAX_SILENCE`].
    pub time: Duration,
}

impl Silence {
    pub fn encode(&self) -> [u8; SILENT_PREAMBLE_BYTES] {
        let ms = u32::try_from(self.time.min(MAX_SILENCE).as_millis()).unwrap_or(u32::MAX);
        let fields = SILENT_MAGIC
            .into_iter()
            .chain(VERSION.to_be_bytes())
            .chain([0, 0])
            .chain(ms.to_be_bytes())
            .chain(self.token.0);
        let mut bytes = [0; SILENT_PREAMBLE_BYTES];
        bytes
            .iter_mut()
            .zip(fields)
            .for_each(|(byte, value)| *byte = value);
        bytes
    }

    /// What the bytes say.
    ///
    /// # Errors
    /// When they are no preamble of this version, or ask for too long a silence.
    pub fn decode(bytes: &[u8; SILENT_PREAMBLE_BYTES]) -> Result<Self, FrameError> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(FrameError::Magic)?;
        if *magic != SILENT_MAGIC {
            return Err(FrameError::Magic);
        }
        let (version, rest) = rest.split_first_chunk().ok_or(FrameError::Magic)?;
        let found = u16::from_be_bytes(*version);
        if found != VERSION {
            return Err(FrameError::Version { found });
        }
        let (_, rest) = rest.split_first_chunk::<2>().ok_or(FrameError::Magic)?;
        let (ms, rest) = rest.split_first_chunk().ok_or(FrameError::Magic)?;
        let time = Duration::from_millis(u32::from_be_bytes(*ms).into());
        if time > MAX_SILENCE {
            return Err(FrameError::Silence {
                seconds: time.as_secs(),
            });
        }
        let token = rest.first_chunk().ok_or(FrameError::Magic)?;
        Ok(Self {
            token: Token(*token),
            time,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::frame::{Opening, opening};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_specified() {
        let silence = Silence {
            token: Token([7; 16]),
            time: Duration::from_millis(1500),
        };
        let bytes = silence.encode();
        assert_eq!(&bytes[..12], b"hushPLUM\0\x04\0\0");
        assert_eq!(bytes[12..16], [0, 0, 5, 220]);
        assert_eq!(bytes[16..], [7; 16]);
        assert_eq!(
            opening(*bytes.first_chunk().unwrap()).unwrap(),
            Opening::Silent
        );
        let endless = Silence {
            time: Duration::MAX,
            ..silence
        };
        assert_eq!(
            Silence::decode(&endless.encode()).unwrap().time,
            MAX_SILENCE
        );
    }

    #[test]
    fn another_version_and_too_long_a_silence_are_refused() {
        let mut bytes = [0; SILENT_PREAMBLE_BYTES];
        assert!(matches!(Silence::decode(&bytes), Err(FrameError::Magic)));
        bytes[..8].copy_from_slice(&SILENT_MAGIC);
        assert!(matches!(
            Silence::decode(&bytes),
            Err(FrameError::Version { found: 0 })
        ));
        bytes[9] = u8::try_from(VERSION).unwrap();
        assert!(Silence::decode(&bytes).is_ok());
        bytes[12] = 0xff;
        assert!(matches!(
            Silence::decode(&bytes),
            Err(FrameError::Silence { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_silence_comes_back(token in any::<[u8; 16]>(), ms in 0..=10_800_000_u64) {
            let silence = Silence { token: Token(token), time: Duration::from_millis(ms) };
            prop_assert_eq!(Silence::decode(&silence.encode()).unwrap(), silence);
        }

        #[test]
        fn any_bytes_are_survived(bytes in any::<[u8; SILENT_PREAMBLE_BYTES]>()) {
            if let Ok(silence) = Silence::decode(&bytes) {
                prop_assert!(silence.time <= MAX_SILENCE);
            }
        }
    }
}
