//! The optional parts after a STAMP packet (RFC 8972): flags, type, length, value.

use super::TimeFormat;
use super::field::field;

/// Bytes before the value.
pub const HEADER_BYTES: usize = 4;

/// Types (RFC 8972, section 6.1, registry «STAMP TLV Types»).
const EXTRA_PADDING: u8 = 1;
const TIMESTAMP_INFORMATION: u8 = 3;
const CLASS_OF_SERVICE: u8 = 4;
const DIRECT_MEASUREMENT: u8 = 5;
const FOLLOW_UP_TELEMETRY: u8 = 7;
const HMAC: u8 = 8;

/// What a reflector says of a part that it was sent (RFC 8972, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// It does not know the type. A sender sets it, so that it stays set where a reflector knows
    /// no such parts at all.
    pub unrecognised: bool,
    /// The length is wrong.
    pub malformed: bool,
    /// The HMAC over all parts did not fit.
    pub unverified: bool,
}

impl Flags {
    /// As a sender sets them.
    const SENT: Self = Self {
        unrecognised: true,
        malformed: false,
        unverified: false,
    };

    fn write(self) -> u8 {
        u8::from(self.unrecognised) << 7
            | u8::from(self.malformed) << 6
            | u8::from(self.unverified) << 5
    }

    fn read(byte: u8) -> Self {
        Self {
            unrecognised: byte & 0x80 != 0,
            malformed: byte & 0x40 != 0,
            unverified: byte & 0x20 != 0,
        }
    }
}

/// Where a clock has its time from (RFC 8972, section 4.3; registry «STAMP Synchronization Sources»).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Ntp,
    Ptp,
    Ssu,
    /// A satellite or radio clock.
    Radio,
    /// Nowhere: it runs free.
    Free,
    /// Not said, or a number that is not assigned.
    Other(u8),
}

impl Source {
    fn code(self) -> u8 {
        match self {
            Self::Ntp => 1,
            Self::Ptp => 2,
            Self::Ssu => 3,
            Self::Radio => 4,
            Self::Free => 5,
            Self::Other(code) => code,
        }
    }

    fn of(code: u8) -> Self {
        [Self::Ntp, Self::Ptp, Self::Ssu, Self::Radio, Self::Free]
            .into_iter()
            .find(|source| source.code() == code)
            .unwrap_or(Self::Other(code))
    }
}

/// Who took a time (RFC 8972, section 4.3; registry «STAMP Timestamping Methods»): 1 is the
/// network interface, 2 local software, 3 the control plane.
pub type Method = u8;

/// The method of a program or kernel.
pub const SOFTWARE: Method = 2;

/// One part. A sender leaves empty what the reflector is to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tlv {
    /// Nothing but bytes, to make the packet larger; here, how many.
    ExtraPadding(usize),
    /// How the reflector takes its times.
    TimestampInformation {
        /// Source and method of the time of receiving.
        receive: (Source, Method),
        /// Source and method of the time of sending.
        send: (Source, Method),
    },
    /// What became of the class of service on the path.
    ClassOfService {
        /// DSCP that the sender wants for the answer.
        wanted_dscp: u8,
        /// DSCP that the reflector received.
        received_dscp: u8,
        /// ECN that the reflector received (RFC 3168).
        received_ecn: u8,
        /// The reflector did not use the wanted DSCP.
        refused: bool,
    },
    /// Packets of the session, counted at both ends.
    DirectMeasurement {
        /// Sent by the sender, this one included.
        sent: u32,
        /// Received by the reflector, this one included.
        received: u32,
        /// Sent by the reflector, this one included.
        reflected: u32,
    },
    /// When the answer before this one really left.
    FollowUp {
        /// The reflector's number of that answer.
        sequence: u32,
        /// When it left, ns since 1970; zero where the reflector knows of none.
        sent_ns: i64,
        /// Who took the time; zero where there is none.
        method: Method,
    },
    Other {
        kind: u8,
        value: Vec<u8>,
    },
}

impl Tlv {
    /// Appends it as a sender does. What is longer than the length can say is cut short.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (kind, value) = self.encode();
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&[Flags::SENT.write(), kind]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(value.get(..usize::from(length)).unwrap_or_default());
    }

    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            Self::ExtraPadding(bytes) => (EXTRA_PADDING, vec![0; *bytes]),
            Self::TimestampInformation { receive, send } => (
                TIMESTAMP_INFORMATION,
                vec![receive.0.code(), receive.1, send.0.code(), send.1],
            ),
            Self::ClassOfService {
                wanted_dscp,
                received_dscp,
                received_ecn,
                refused,
            } => {
                // Six bits, six, two, two, and 16 of reserve.
                let word = u16::from(wanted_dscp & 0x3f) << 10
                    | u16::from(received_dscp & 0x3f) << 4
                    | u16::from(received_ecn & 3) << 2
                    | u16::from(*refused);
                let [high, low] = word.to_be_bytes();
                (CLASS_OF_SERVICE, vec![high, low, 0, 0])
            }
            Self::DirectMeasurement {
                sent,
                received,
                reflected,
            } => (
                DIRECT_MEASUREMENT,
                [sent, received, reflected]
                    .into_iter()
                    .flat_map(|count| count.to_be_bytes())
                    .collect(),
            ),
            Self::FollowUp {
                sequence,
                sent_ns,
                method,
            } => {
                let time = if *method == 0 {
                    [0; 8]
                } else {
                    TimeFormat::Ntp.write(*sent_ns)
                };
                let mut value = [sequence.to_be_bytes().as_slice(), &time].concat();
                value.extend_from_slice(&[*method, 0, 0, 0]);
                (FOLLOW_UP_TELEMETRY, value)
            }
            Self::Other { kind, value } => (*kind, value.clone()),
        }
    }

    /// The part of that type and value; `None` where a known type has a wrong length.
    fn decode(kind: u8, value: &[u8], format: TimeFormat) -> Option<Self> {
        let exactly = |bytes: usize| (value.len() == bytes).then_some(());
        Some(match kind {
            EXTRA_PADDING => Self::ExtraPadding(value.len()),
            TIMESTAMP_INFORMATION => {
                exactly(4)?;
                let [source_in, method_in, source_out, method_out] = field(value, 0)?;
                Self::TimestampInformation {
                    receive: (Source::of(source_in), method_in),
                    send: (Source::of(source_out), method_out),
                }
            }
            CLASS_OF_SERVICE => {
                exactly(4)?;
                let word = u16::from_be_bytes(field(value, 0)?);
                Self::ClassOfService {
                    wanted_dscp: (word >> 10) as u8,
                    received_dscp: (word >> 4) as u8 & 0x3f,
                    received_ecn: (word >> 2) as u8 & 3,
                    refused: word & 3 != 0,
                }
            }
            DIRECT_MEASUREMENT => {
                exactly(12)?;
                Self::DirectMeasurement {
                    sent: u32::from_be_bytes(field(value, 0)?),
                    received: u32::from_be_bytes(field(value, 4)?),
                    reflected: u32::from_be_bytes(field(value, 8)?),
                }
            }
            FOLLOW_UP_TELEMETRY => {
                exactly(16)?;
                let [method] = field(value, 12)?;
                Self::FollowUp {
                    sequence: u32::from_be_bytes(field(value, 0)?),
                    sent_ns: if method == 0 {
                        0
                    } else {
                        format.read(field(value, 4)?)
                    },
                    method,
                }
            }
            HMAC if value.len() != super::TAG_BYTES => return None,
            _ => Self::Other {
                kind,
                value: value.to_vec(),
            },
        })
    }

    /// Whether it is the HMAC over the parts before it.
    pub fn is_hmac(&self) -> bool {
        matches!(self, Self::Other { kind: HMAC, .. })
    }

    /// The HMAC over the parts before it.
    pub(super) fn hmac(tag: [u8; super::TAG_BYTES]) -> Self {
        Self::Other {
            kind: HMAC,
            value: tag.to_vec(),
        }
    }
}

/// One part where it lies in a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where its header begins, from the beginning of the bytes that were read.
    pub offset: usize,
    /// What is said of it.
    pub flags: Flags,
    /// The part; `None` where its length is wrong.
    pub tlv: Option<Tlv>,
}

/// The parts in `bytes`, until they end, or one is cut off, or zeros begin, which are padding of
/// TWAMP (RFC 5357) and of plumb. `format` is how the times in them are written.
pub fn read(bytes: &[u8], format: TimeFormat) -> impl Iterator<Item = Placed> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let [flags, kind] = field(bytes, offset)?;
        let length = usize::from(u16::from_be_bytes(field(bytes, offset + 2)?));
        if kind == 0 {
            return None;
        }
        let value = bytes.get(offset + HEADER_BYTES..offset + HEADER_BYTES + length);
        let placed = Placed {
            offset,
            flags: Flags::read(flags),
            tlv: value.and_then(|value| Tlv::decode(kind, value, format)),
        };
        // Where it is cut off, nothing can follow.
        offset = match value {
            Some(_) => offset + HEADER_BYTES + length,
            None => bytes.len(),
        };
        Some(placed)
    })
}

/// Puts a part, which must be as long as the one there, and its flags in the place of another.
pub(super) fn replace(bytes: &mut [u8], offset: usize, flags: Flags, tlv: Option<&Tlv>) {
    if let Some(first) = bytes.get_mut(offset) {
        *first = flags.write();
    }
    let Some((_, value)) = tlv.map(Tlv::encode) else {
        return;
    };
    if let Some(place) = bytes.get_mut(offset + HEADER_BYTES..offset + HEADER_BYTES + value.len()) {
        place.copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn any_tlv() -> impl Strategy<Value = Tlv> {
        prop_oneof![
            (0usize..80).prop_map(Tlv::ExtraPadding),
            any::<[u8; 4]>().prop_map(|[a, b, c, d]| Tlv::TimestampInformation {
                receive: (Source::of(a), b),
                send: (Source::of(c), d),
            }),
            (0u8..64, 0u8..64, 0u8..4, any::<bool>()).prop_map(
                |(wanted, received, ecn, refused)| {
                    Tlv::ClassOfService {
                        wanted_dscp: wanted,
                        received_dscp: received,
                        received_ecn: ecn,
                        refused,
                    }
                }
            ),
            any::<[u32; 3]>().prop_map(|[sent, received, reflected]| Tlv::DirectMeasurement {
                sent,
                received,
                reflected,
            }),
            (any::<u32>(), 0i64..i64::MAX / 4, 1u8..4).prop_map(|(sequence, sent_ns, method)| {
                Tlv::FollowUp {
                    sequence,
                    sent_ns,
                    method,
                }
            }),
            (9u8.., proptest::collection::vec(any::<u8>(), 0..40))
                .prop_map(|(kind, value)| Tlv::Other { kind, value }),
        ]
    }

    #[test]
    fn the_class_of_service_lies_where_the_rfc_has_it() {
        let tlv = Tlv::ClassOfService {
            wanted_dscp: 46,
            received_dscp: 0,
            received_ecn: 2,
            refused: true,
        };
        let mut out = Vec::new();
        tlv.write(&mut out);
        assert_eq!(out, [0x80, 4, 0, 4, 0b1011_1000, 0b0000_1001, 0, 0]);
    }

    #[test]
    fn a_wrong_length_is_malformed_and_a_cut_one_ends_it() {
        let bytes = [
            0x80,
            DIRECT_MEASUREMENT,
            0,
            2,
            0,
            0,
            0x80,
            EXTRA_PADDING,
            0,
            9,
            1,
        ];
        let placed: Vec<_> = read(&bytes, TimeFormat::Ntp).collect();
        assert_eq!(placed.len(), 2);
        assert!(placed.iter().all(|placed| placed.tlv.is_none()));
        assert_eq!(read(&[0; 40], TimeFormat::Ntp).count(), 0, "padding");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(tlvs in proptest::collection::vec(any_tlv(), 0..6), zeros in 0usize..9) {
            let mut bytes = Vec::new();
            for tlv in &tlvs {
                tlv.write(&mut bytes);
            }
            bytes.resize(bytes.len() + zeros, 0);
            let read: Vec<_> = read(&bytes, TimeFormat::Ntp).collect();
            prop_assert!(read.iter().all(|placed| placed.flags == Flags::SENT));
            let read: Vec<_> = read.into_iter().filter_map(|placed| placed.tlv).collect();
            prop_assert_eq!(read, tlvs);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for placed in read(&bytes, TimeFormat::Ptp) {
                prop_assert!(placed.offset < bytes.len());
            }
        }
    }
}
