//! What the packets of each protocol look like, and how an answer names its probe.

use plumb_model::protocol::Protocol;
use plumb_net::clock::realtime_ns;
use plumb_wire::dns::Query;
use plumb_wire::icmp::{Echo, EchoHeader, HEADER_BYTES, Kind, MARK_BYTES, Mark, Version};
use plumb_wire::stamp::{Reply, Request};

use super::network::Lower;
use super::plan::ManyPlan;
use crate::ping::dns;
use crate::ping::pattern::Pattern;
use crate::ping::plan::ProbeError;
use crate::ping::sample::{FarEnd, Said};
use crate::ping::stamp::local_error;

/// Numbers of this run, which distinguish its packets from others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marked {
    pub(super) session: u32,
    /// Payload of a packet, in bytes.
    pub(super) size_bytes: usize,
    pub(super) pattern: Pattern,
}

/// A protocol whose probes are packets.
#[derive(Debug)]
pub(super) enum Speech {
    /// ICMP or ICMPv6 echo.
    Echo(Marked),
    /// Plain datagrams to a UDP port.
    Port(Marked),
    /// The same question to each DNS server.
    Dns(Query, Marked),
    Stamp(Marked),
}

/// What a packet that came in says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Which probe it answers.
    pub(super) number: Lower,
    /// What the answer was, where there are several.
    pub(super) said: Option<Said>,
    /// What the far end said of its own part.
    pub(super) far_end: Option<FarEnd>,
    /// Payload of the answer, in bytes.
    pub(super) size_bytes: usize,
}

impl Speech {
    /// The language of a plan, whose protocol is one of packets.
    pub(super) fn of(plan: &ManyPlan, session: u32) -> Result<Self, ProbeError> {
        let marked = Marked {
            session,
            size_bytes: plan.size_bytes,
            pattern: plan.pattern,
        };
        Ok(match plan.protocol {
            Protocol::UdpPort => Self::Port(marked),
            Protocol::Stamp => Self::Stamp(marked),
            Protocol::Dns => Self::Dns(dns::question(plan.ask.as_deref())?, marked),
            _ => Self::Echo(marked),
        })
    }

    /// Whether it is spoken over ICMP, else over UDP.
    pub(super) fn is_icmp(&self) -> bool {
        matches!(self, Self::Echo(_))
    }

    /// The packet of a probe; `identifier` is ICMP's.
    pub(super) fn write(&self, version: Version, identifier: u16, number: u64) -> Vec<u8> {
        let mark = |marked: &Marked| Mark {
            session: marked.session,
            sequence: number as u32,
        };
        match self {
            Self::Echo(marked) => Echo {
                kind: Kind::Request,
                identifier,
                sequence: number as u16,
                payload: &mark(marked).payload_filled(marked.size_bytes, marked.pattern.bytes()),
            }
            .write(version),
            Self::Port(marked) => {
                mark(marked).payload_filled(marked.size_bytes, marked.pattern.bytes())
            }
            Self::Dns(query, marked) => query.write(dns::id(number, marked.session)),
            Self::Stamp(marked) => Request {
                sequence: number as u32,
                sent_ns: i64::try_from(realtime_ns()).unwrap_or(i64::MAX),
                error: local_error(),
                session: session_id(marked.session),
            }
            .write(None, &[], marked.size_bytes),
        }
    }

    /// Reads what came in; `None` where it is no answer to this run.
    pub(super) fn read(&self, version: Version, identifier: u16, bytes: &[u8]) -> Option<Reading> {
        let reading = |number, said, far_end, size_bytes| Reading {
            number,
            said,
            far_end,
            size_bytes,
        };
        match self {
            Self::Echo(marked) => {
                let reply = Echo::parse(version, bytes)?;
                let mark = Mark::parse(reply.payload)?;
                let ours = reply.kind == Kind::Reply
                    && reply.identifier == identifier
                    && mark.session == marked.session
                    && reply.sequence == mark.sequence as u16;
                let number = Lower::of_32(mark.sequence);
                ours.then(|| reading(number, None, None, reply.payload.len()))
            }
            Self::Port(marked) => {
                let mark = Mark::parse(bytes).filter(|mark| mark.session == marked.session)?;
                let number = Lower::of_32(mark.sequence);
                Some(reading(number, Some(Said::Echo), None, bytes.len()))
            }
            Self::Dns(query, marked) => {
                let answer = query.answer(bytes)?;
                let number = Lower::of_16(dns::lower_half(answer.id, marked.session));
                let said = Some(Said::Dns(answer.code));
                Some(reading(number, said, None, bytes.len()))
            }
            Self::Stamp(marked) => {
                let reply = Reply::parse(bytes, None)?;
                // Reflectors that know only RFC 8762 send zero there, and reflectors of TWAMP any value.
                if reply.session != session_id(marked.session) && reply.session != 0 {
                    return None;
                }
                let far_end = FarEnd {
                    received_ns: reply.received_ns,
                    sent_ns: reply.sent_ns,
                    count: None,
                    hop_limit: Some(reply.request_hops),
                };
                let number = Lower::of_32(reply.request.sequence);
                Some(reading(number, None, Some(far_end), bytes.len()))
            }
        }
    }

    /// The probe that an ICMP error quotes.
    pub(super) fn quoted(&self, identifier: u16, quoted: &[u8]) -> Option<Lower> {
        match self {
            Self::Echo(_) => {
                let header = EchoHeader::parse(quoted.first_chunk::<HEADER_BYTES>()?);
                (header.identifier == identifier).then(|| Lower::of_16(header.sequence))
            }
            Self::Port(marked) => {
                let mark = Mark::parse(quoted.get(..MARK_BYTES)?)?;
                (mark.session == marked.session).then(|| Lower::of_32(mark.sequence))
            }
            Self::Dns(_, marked) => {
                let id = u16::from_be_bytes(*quoted.first_chunk()?);
                Some(Lower::of_16(dns::lower_half(id, marked.session)))
            }
            Self::Stamp(_) => {
                let sequence = u32::from_be_bytes(*quoted.first_chunk()?);
                Some(Lower::of_32(sequence))
            }
        }
    }

    /// What "port unreachable" from the target itself is: an answer where any will do.
    pub(super) fn refusal(&self) -> Option<Said> {
        matches!(self, Self::Port(_)).then_some(Said::PortUnreachable)
    }
}

/// Zero means no session (RFC 8972, section 3).
fn session_id(session: u32) -> u16 {
    ((session >> 16) as u16).max(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_wire::dns::RecordKind;
    use proptest::prelude::*;

    const MARKED: Marked = Marked {
        session: 0xabcd_1234,
        size_bytes: 56,
        pattern: Pattern::NONE,
    };

    fn all() -> [Speech; 4] {
        let query = Query::new("example.net", RecordKind::A).unwrap();
        [
            Speech::Echo(MARKED),
            Speech::Port(MARKED),
            Speech::Dns(query, MARKED),
            Speech::Stamp(MARKED),
        ]
    }

    /// What a far end makes of a probe.
    fn answered(speech: &Speech, probe: &[u8]) -> Vec<u8> {
        let mut bytes = probe.to_vec();
        match speech {
            Speech::Echo(_) => {
                let (header, payload) = probe.split_at(HEADER_BYTES);
                let header = EchoHeader::parse(header.first_chunk().unwrap());
                Echo {
                    kind: Kind::Reply,
                    identifier: header.identifier,
                    sequence: header.sequence,
                    payload,
                }
                .write(Version::V4)
            }
            Speech::Port(_) => bytes,
            Speech::Dns(..) => {
                *bytes.get_mut(2).unwrap() |= 0x80;
                bytes
            }
            Speech::Stamp(_) => {
                // RFC 8762, section 4.3.1: the request's number, time, error estimate from byte 24 on.
                let mut reply = vec![0; probe.len().max(44)];
                reply.get_mut(..4).unwrap().copy_from_slice(&[9; 4]);
                reply
                    .get_mut(14..16)
                    .unwrap()
                    .copy_from_slice(bytes.get(14..16).unwrap());
                reply
                    .get_mut(24..38)
                    .unwrap()
                    .copy_from_slice(bytes.get(..14).unwrap());
                reply
            }
        }
    }

    proptest! {
        #[test]
        fn an_answer_and_a_quotation_name_their_probe(number: u64) {
            for speech in all() {
                let probe = speech.write(Version::V4, 7, number);
                let reading = speech.read(Version::V4, 7, &answered(&speech, &probe)).unwrap();
                prop_assert!(reading.number.is_of(number), "{:?}", speech);
                prop_assert!(speech.quoted(7, &probe).unwrap().is_of(number), "{:?}", speech);
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            for speech in all() {
                let _ = speech.read(Version::V4, 7, &bytes);
                let _ = speech.read(Version::V6, 7, &bytes);
                let _ = speech.quoted(7, &bytes);
            }
        }
    }
}
