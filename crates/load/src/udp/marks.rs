//! What the datagrams of a stream begin with, by which their receiver counts them.

use std::time::Duration;

use plumb_wire::iperf3;
use plumb_wire::native::datagram::{Datagram, Tag};

/// The numbers of a stream's datagrams.
#[derive(Debug, Clone, Copy)]
pub enum Marks {
    /// plumb's: with a tag that no other host can make, and an end.
    Tagged(Tag),
    /// iperf3's, of 64 bits: its end is announced on another connection.
    Iperf3,
}

/// Whether iperf3's numbers are of 64 bits here.
const LONG: bool = true;

impl Marks {
    /// Writes number and time over the beginning of a datagram, which is long enough for both.
    pub(super) fn write(self, sequence: u64, sent_ns: i64, datagram: &mut [u8]) {
        match self {
            Self::Tagged(tag) => {
                if let Some(header) = datagram.first_chunk_mut() {
                    *header = tag.data(sequence, sent_ns);
                }
            }
            Self::Iperf3 => iperf3::Header {
                sent: Duration::from_nanos(u64::try_from(sent_ns).unwrap_or(0)),
                number: sequence.saturating_add(1),
            }
            .write(LONG, datagram),
        }
    }

    /// What a datagram says; `None` for what is none of the stream.
    pub(super) fn parse(self, datagram: &[u8]) -> Option<Datagram> {
        match self {
            Self::Tagged(tag) => tag.parse(datagram),
            Self::Iperf3 => {
                let header = iperf3::Header::read(LONG, datagram)?;
                Some(Datagram::Data {
                    sequence: header.number.checked_sub(1)?,
                    sent_ns: i64::try_from(header.sent.as_nanos()).ok()?,
                })
            }
        }
    }

    /// The tag of a stream whose end is said in a datagram.
    pub(super) fn with_end(self) -> Option<Tag> {
        match self {
            Self::Tagged(tag) => Some(tag),
            Self::Iperf3 => None,
        }
    }

    /// Whether times of sending are of the wall clock, so that they can be compared with our own.
    pub(super) fn has_wall_clock(self) -> bool {
        matches!(self, Self::Tagged(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iperf3_counts_from_one() {
        let mut datagram = [0xff; 32];
        Marks::Iperf3.write(0, 3_000_002_000, &mut datagram);
        let expected = [0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(datagram.first_chunk(), Some(&expected));
        let read = Datagram::Data {
            sequence: 0,
            sent_ns: 3_000_002_000,
        };
        assert_eq!(Marks::Iperf3.parse(&datagram), Some(read));
        // What begins a stream is none of it, nor is a number that no sender gives.
        assert_eq!(Marks::Iperf3.parse(b"6789"), None);
        assert_eq!(Marks::Iperf3.parse(&[0; 32]), None);
    }
}
