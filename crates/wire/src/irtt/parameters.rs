//! What client and server agree on: a tag and a value each, of which a sender leaves out those that are zero.

use std::time::Duration;

/// The version that is spoken (`ProtocolVersion`).
pub(super) const VERSION: i64 = 1;

/// The most bytes of parameters (`paramsMaxLen`).
const MOST_BYTES: usize = 128;

/// The longest fill (`maxServerFillLen`).
const MOST_FILL_BYTES: u64 = 32;

/// Which statistics of receiving a reply has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub count: bool,
    pub window: bool,
}

/// Which times a reply has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampAt {
    #[default]
    None,
    Send,
    Receive,
    Both,
    Midpoint,
}

/// By which clocks a time is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    pub wall: bool,
    pub monotonic: bool,
}

/// The parameters of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameters {
    pub version: i64,
    pub duration: Duration,
    pub interval: Duration,
    /// Bytes of a packet with all its fields.
    pub length: usize,
    pub stats: Stats,
    pub stamp_at: StampAt,
    pub clock: Clock,
    /// The type-of-service byte, which irtt calls DSCP: it sets the whole byte to this value (0.9.0), so that its EF is
    /// 0xb8.
    pub type_of_service: u8,
    /// How a server is to fill replies up, in irtt's words.
    pub fill: Vec<u8>,
}

// Tags of parameters.
const TAG_VERSION: u64 = 1;
const TAG_DURATION: u64 = 2;
const TAG_INTERVAL: u64 = 3;
const TAG_LENGTH: u64 = 4;
const TAG_STATS: u64 = 5;
const TAG_STAMP_AT: u64 = 6;
const TAG_CLOCK: u64 = 7;
const TAG_DSCP: u64 = 8;
const TAG_FILL: u64 = 9;

impl Parameters {
    /// Reads parameters; nothing where they are no such, or have values that mean nothing. Unknown tags are passed over, as
    /// irtt has it.
    pub fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut this = Self::default();
        if bytes.len() > MOST_BYTES {
            return None;
        }
        while !bytes.is_empty() {
            let tag = unsigned(&mut bytes)?;
            if tag == TAG_FILL {
                let length = unsigned(&mut bytes).filter(|length| *length <= MOST_FILL_BYTES)?;
                let (fill, rest) = bytes.split_at_checked(length as usize)?;
                this.fill = fill.to_vec();
                bytes = rest;
                continue;
            }
            let value = signed(&mut bytes)?;
            let time = || u64::try_from(value).ok().filter(|ns| *ns > 0);
            match tag {
                TAG_VERSION => this.version = value,
                TAG_DURATION => this.duration = Duration::from_nanos(time()?),
                TAG_INTERVAL => this.interval = Duration::from_nanos(time()?),
                TAG_LENGTH => this.length = usize::try_from(value).ok()?,
                TAG_STATS => {
                    this.stats = match value {
                        0..=3 => Stats {
                            count: value & 1 != 0,
                            window: value & 2 != 0,
                        },
                        _ => return None,
                    }
                }
                TAG_STAMP_AT => {
                    this.stamp_at = match value {
                        0 => StampAt::None,
                        1 => StampAt::Send,
                        2 => StampAt::Receive,
                        3 => StampAt::Both,
                        4 => StampAt::Midpoint,
                        _ => return None,
                    }
                }
                TAG_CLOCK => {
                    this.clock = match value {
                        0..=3 => Clock {
                            wall: value & 1 != 0,
                            monotonic: value & 2 != 0,
                        },
                        _ => return None,
                    }
                }
                TAG_DSCP => this.type_of_service = u8::try_from(value).ok()?,
                _ => {}
            }
        }
        Some(this)
    }

    pub fn write(&self) -> Vec<u8> {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let stamp_at = match self.stamp_at {
            StampAt::None => 0,
            StampAt::Send => 1,
            StampAt::Receive => 2,
            StampAt::Both => 3,
            StampAt::Midpoint => 4,
        };
        let bits = |low, high| i64::from(low) | i64::from(high) << 1;
        let mut bytes = Vec::new();
        for (tag, value) in [
            (TAG_VERSION, self.version),
            (TAG_DURATION, ns(self.duration)),
            (TAG_INTERVAL, ns(self.interval)),
            (TAG_LENGTH, i64::try_from(self.length).unwrap_or(i64::MAX)),
            (TAG_STATS, bits(self.stats.count, self.stats.window)),
            (TAG_STAMP_AT, stamp_at),
            (TAG_CLOCK, bits(self.clock.wall, self.clock.monotonic)),
            (TAG_DSCP, self.type_of_service.into()),
        ] {
            if value != 0 {
                write_unsigned(&mut bytes, tag);
                // Small numbers of both signs are short so.
                write_unsigned(&mut bytes, ((value << 1) ^ (value >> 63)) as u64);
            }
        }
        if !self.fill.is_empty() {
            write_unsigned(&mut bytes, TAG_FILL);
            write_unsigned(&mut bytes, self.fill.len() as u64);
            bytes.extend_from_slice(&self.fill);
        }
        bytes
    }
}

/// A number of seven bits a byte, the lowest first.
fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..10u32 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(first & 0x7f);
        // The tenth byte has one bit left.
        if place == 9 && bits > 1 {
            return None;
        }
        number |= bits << (7 * place);
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number of either sign.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = unsigned(bytes)?;
    let magnitude = i64::try_from(number >> 1).ok()?;
    Some(if number & 1 == 0 {
        magnitude
    } else {
        !magnitude
    })
}

fn write_unsigned(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_irtt_sends_is_read() {
        // irtt client -d 1s -i 10ms -l 172 --stats=both (0.9.0).
        let sent = [
            0x01, 0x02, 0x02, 0x80, 0xa8, 0xd6, 0xb9, 0x07, 0x03, 0x80, 0xda, 0xc4, 0x09, 0x04,
            0xd8, 0x02, 0x05, 0x06, 0x06, 0x06, 0x07, 0x06,
        ];
        let read = Parameters::read(&sent).unwrap();
        let expected = Parameters {
            version: 1,
            duration: Duration::from_secs(1),
            interval: Duration::from_millis(10),
            length: 172,
            stats: Stats {
                count: true,
                window: true,
            },
            stamp_at: StampAt::Both,
            clock: Clock {
                wall: true,
                monotonic: true,
            },
            ..Parameters::default()
        };
        assert_eq!(read, expected);
        assert_eq!(read.write(), sent);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for bad in [
            &[0x02, 0x00][..],
            &[0x02, 0x01],
            &[0x04, 0x01],
            &[0x05, 0x08],
            &[0x06, 0x0a],
            &[0x08, 0x80, 0x04],
            &[0x01],
            &[0x80],
            &[0x09, 0x05, b'a'],
            &[0x09, 0x21],
            &[
                0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02,
            ],
            &[0x0b; 129],
        ] {
            assert_eq!(Parameters::read(bad), None, "{bad:x?}");
        }
        // Of tags that are not known nothing is kept.
        assert_eq!(Parameters::read(&[0x0b, 0x02]), Some(Parameters::default()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..140)) {
            if let Some(read) = Parameters::read(&bytes) {
                prop_assert_eq!(Parameters::read(&read.write()), Some(read));
            }
        }
    }
}
