//! Packets without personal data: addresses are replaced by others, and of all else only headers that are understood
//! are copied.

mod addresses;
mod copied;
mod link;
mod network;
mod transport;
mod wireless;

use addresses::Addresses;
use copied::Copied;

use crate::read::Frame;

/// Replaces addresses by a secret key: the same key gives the same addresses.
pub struct Anonymiser {
    addresses: Addresses,
    /// The packet that was made last.
    bytes: Vec<u8>,
}

impl Anonymiser {
    /// One with a secret of any length; who has it can find the addresses again.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            addresses: Addresses::new(secret),
            bytes: Vec::new(),
        }
    }

    /// The packet without payload, with other addresses. It ends where its headers are not understood, and has the time and
    /// the length on the wire of the original, less what a shorter header of radiotap takes.
    pub fn frame(&mut self, frame: &Frame<'_>) -> Frame<'_> {
        self.bytes.clear();
        let mut copied = Copied::new(frame, &mut self.bytes, &mut self.addresses);
        link::copy(frame.link, &mut copied);
        let removed = copied.finish();
        Frame {
            unix_ns: frame.unix_ns,
            link: frame.link,
            bytes: &self.bytes,
            original_bytes: frame.original_bytes.saturating_sub(removed),
        }
    }
}

#[cfg(test)]
#[path = "anonymise/tests.rs"]
mod tests;
