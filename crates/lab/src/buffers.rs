//! Memory for packets on their way: large buffers go round, because fresh memory costs more than
//! all the rest of a packet's passage.

use plumb_net::tun::MAX_PACKET_BYTES;

/// Packets from this size on keep the buffer that they were read into, in bytes; copying a
/// smaller one costs less than a large buffer left half empty.
const LARGE_BYTES: usize = 16_384;

/// Buffers kept for later at most (67 MB): 10 Gbit/s over 50 ms have a thousand under way.
const MOST_SPARE: usize = 1024;

/// The buffers of one direction.
pub(crate) struct Buffers {
    scratch: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self {
            scratch: vec![0; MAX_PACKET_BYTES],
            spare: Vec::new(),
        }
    }

    /// Where the next packet is read to; always of [`MAX_PACKET_BYTES`].
    pub(crate) fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// The packet of this length that was read.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        if length < LARGE_BYTES {
            return self.scratch.get(..length).unwrap_or_default().to_vec();
        }
        let mut next = self.spare.pop().unwrap_or_default();
        next.resize(MAX_PACKET_BYTES, 0);
        let mut packet = std::mem::replace(&mut self.scratch, next);
        packet.truncate(length);
        packet
    }

    /// Takes back the memory of a packet that went on.
    pub(crate) fn give_back(&mut self, packet: Vec<u8>) {
        if packet.capacity() >= MAX_PACKET_BYTES && self.spare.len() < MOST_SPARE {
            self.spare.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn large_buffers_go_round_and_small_packets_are_copied() {
        let mut buffers = Buffers::new();
        for (length, mark) in [(100, 1), (MAX_PACKET_BYTES, 2), (LARGE_BYTES, 3)] {
            buffers.scratch()[length - 1] = mark;
            let packet = buffers.take(length);
            assert_eq!((packet.len(), packet[length - 1]), (length, mark));
            assert_eq!(buffers.scratch().len(), MAX_PACKET_BYTES);
            buffers.give_back(packet);
        }
        // One was replaced and came back, and was used for the next.
        assert_eq!(buffers.spare.len(), 1);
    }
}
