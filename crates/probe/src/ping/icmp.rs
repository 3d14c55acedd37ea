//! Probes by ICMP or ICMPv6 echo, which the far end answers, or, with a hop limit, the router at
//! which they end.

use std::io;

use plumb_net::datagram::{DatagramSocket, Expired, IcmpAccess};
use plumb_net::udp_counters::Drops;
use plumb_wire::checksum::checksum;
use plumb_wire::icmp::{Echo, EchoHeader, Kind, Mark, Version};

use crate::ping::channel::{Channel, Incoming, Told};
use crate::ping::pattern::Pattern;
use crate::ping::plan::{Plan, ProbeError, Sizes};
use crate::ping::sample::Answer;
use crate::ping::socket::{prepare, random_u32};
use crate::ping::strategy::{Event, Network};

/// The network of ICMP probes to one far end.
pub(crate) struct IcmpEcho {
    channel: Channel,
    version: Version,
    session: u32,
    identifier: u16,
    sizes: Sizes,
    pattern: Pattern,
    /// Whether the answer of a router on the way counts.
    routers_answer: bool,
    /// Number of the latest probe.
    latest: u32,
    /// Answers whose checksum was wrong: a raw socket is given them.
    corrupted: u64,
}

impl IcmpEcho {
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let (socket, access) = DatagramSocket::icmp_through(plan.target, &plan.outlet)
            .map_err(|source| ProbeError::icmp(plan, source))?;
        prepare(&socket, plan)?;
        let session = random_u32(&plan.far_end())?;
        let identifier = match access {
            IcmpAccess::Raw => (session >> 16) as u16,
            IcmpAccess::Ping { identifier } => identifier,
        };
        let version = if plan.target.is_ipv4() {
            Version::V4
        } else {
            Version::V6
        };
        Ok(Self {
            channel: Channel::new(socket, plan),
            version,
            session,
            identifier,
            sizes: plan.sizes,
            pattern: plan.pattern,
            routers_answer: plan.routers_answer,
            latest: 0,
            corrupted: 0,
        })
    }
}

/// The echo reply in a packet.
fn replied(version: Version, session: u32, identifier: u16, packet: &[u8]) -> Option<u32> {
    let reply = Echo::parse(version, packet)?;
    let mark = Mark::parse(reply.payload)?;
    let ours = reply.kind == Kind::Reply
        && reply.identifier == identifier
        && mark.session == session
        && reply.sequence == mark.sequence as u16;
    ours.then_some(mark.sequence)
}

/// Whether a packet is one of this run's whose checksum is wrong.
fn is_corrupted(version: Version, identifier: u16, packet: &[u8]) -> bool {
    let header = packet.first_chunk().map(EchoHeader::parse);
    let ours = header.is_some_and(|header| header.identifier == identifier);
    ours && version == Version::V4 && checksum(packet) != 0
}

/// The probe that a router quotes. It need not quote the mark, so that the number is the latest
/// with the lower half that is in the header.
fn expired(version: Version, identifier: u16, latest: u32, expired: &Expired) -> Option<u32> {
    let header = EchoHeader::parse(&expired.quoted);
    let ours = header.code == Kind::Request.code(version) && header.identifier == identifier;
    let ago = (latest as u16).wrapping_sub(header.sequence);
    ours.then(|| latest.checked_sub(ago.into())).flatten()
}

impl Network for IcmpEcho {
    fn id(&self) -> u32 {
        self.identifier.into()
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        let payload = Mark {
            session: self.session,
            sequence,
        }
        .payload_filled(self.sizes.of(sequence), self.pattern.bytes());
        let request = Echo {
            kind: Kind::Request,
            identifier: self.identifier,
            sequence: sequence as u16,
            payload: &payload,
        };
        self.latest = sequence;
        self.channel
            .send(Some(sequence), &request.write(self.version))
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let Self {
            version,
            session,
            identifier,
            routers_answer,
            latest,
            ..
        } = *self;
        let corrupted = &mut self.corrupted;
        self.channel.receive(until_ns, |incoming, at| {
            let (sequence, kernel_ns, hop_limit, drops) = match incoming {
                Incoming::Packet(packet, received) => {
                    *corrupted += u64::from(is_corrupted(version, identifier, packet));
                    (
                        replied(version, session, identifier, packet)?,
                        received.kernel_ns,
                        received.hop_limit,
                        received.drops,
                    )
                }
                Incoming::Expired(told) => {
                    let sequence = expired(version, identifier, latest, told)?;
                    if !routers_answer {
                        return Some(Told::Expired(told.by));
                    }
                    (sequence, told.kernel_ns, None, told.drops)
                }
            };
            Some(Told::Answered(Answer {
                kernel_ns,
                hop_limit,
                drops: Drops {
                    corrupted: *corrupted,
                    ..drops
                },
                ..Answer::at(at, sequence)
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn told(quoted: [u8; 8]) -> Expired {
        Expired {
            by: Ipv4Addr::LOCALHOST.into(),
            kernel_ns: None,
            quoted,
            drops: Drops::default(),
        }
    }

    #[test]
    fn a_wrong_bit_is_told_from_what_others_are_answered() {
        let reply = |identifier| Echo {
            kind: Kind::Reply,
            identifier,
            sequence: 3,
            payload: &[7; 20],
        };
        let mut packet = reply(0x1234).write(Version::V4);
        assert!(!is_corrupted(Version::V4, 0x1234, &packet));
        if let Some(byte) = packet.last_mut() {
            *byte ^= 4;
        }
        assert!(is_corrupted(Version::V4, 0x1234, &packet));
        assert!(!is_corrupted(Version::V4, 0x1235, &packet), "another's");
        assert!(
            !is_corrupted(Version::V6, 0x1234, &packet),
            "the kernel's matter"
        );
        assert!(!is_corrupted(Version::V4, 0x1234, &[0; 3]));
    }

    #[test]
    fn the_quoted_header_names_the_probe() {
        let quoted = |sequence: u16| {
            let [high, low] = sequence.to_be_bytes();
            told([8, 0, 0, 0, 0x12, 0x34, high, low])
        };
        let number = |latest, sequence| expired(Version::V4, 0x1234, latest, &quoted(sequence));
        assert_eq!(number(5, 3), Some(3));
        assert_eq!(number(65_537, 1), Some(65_537));
        assert_eq!(number(65_537, 65_535), Some(65_535));
        assert_eq!(number(5, 6), None, "not sent yet");
        // Of another socket with the same far end, whose errors this one receives as well.
        assert_eq!(expired(Version::V4, 0x1235, 5, &quoted(3)), None);
        assert_eq!(
            expired(
                Version::V4,
                0x1234,
                5,
                &told([0, 0, 0, 0, 0x12, 0x34, 0, 3])
            ),
            None,
            "a reply is not ours"
        );
    }
}
