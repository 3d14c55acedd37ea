//! Captures at the ends of links, as pcapng. What crosses as a large segment is written as the
//! packets that it is on the wire, with their checksums complete.

use std::io::{self, Write};
use std::time::Duration;

use plumb_link::packet::Packet;
use plumb_link::segment::{datagrams, finalise_checksum, split};
use plumb_link::time::Time;
use plumb_net::packet_capture::{Cable, Look};
use plumb_wire::pcapng::{self, Direction};
use plumb_wire::virtio::VirtioHeader;

use super::tap::{Observation, Seen};

/// A capture at one end of a link.
pub(crate) struct Capture {
    source: Source,
    /// Packets that were not taken in time, and how many of them the file tells.
    missed: u64,
    told: u64,
}

enum Source {
    /// A link that plumb carries.
    Carried {
        observation: Observation,
        /// When the laboratory's clock was at zero.
        started_unix_ns: u64,
    },
    /// A link or lan of the kernel's.
    Kernel(Cable),
}

impl Capture {
    /// Stamps count from `started_unix_ns`, when the laboratory's clock was at zero.
    pub(crate) fn of_carried(observation: Observation, started_unix_ns: u64) -> Self {
        Self::of(Source::Carried {
            observation,
            started_unix_ns,
        })
    }

    /// What passes an interface of a node.
    pub(crate) fn of_kernel(cable: Cable) -> Self {
        Self::of(Source::Kernel(cable))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            missed: 0,
            told: 0,
        }
    }

    /// Writes what a file begins with.
    pub(crate) fn begin(
        &self,
        out: &mut impl Write,
        scenario: &str,
        interface: &str,
    ) -> io::Result<()> {
        let comment = format!("{interface} in a plumb lab of the scenario {scenario}");
        out.write_all(&pcapng::section_header(&comment))?;
        out.write_all(&pcapng::interface(interface))
    }

    /// Writes what comes within a time; `false` when that was nothing.
    pub(crate) fn write(&mut self, out: &mut impl Write, within: Duration) -> io::Result<bool> {
        let (unix_ns, direction, packet) = match &mut self.source {
            Source::Carried {
                observation,
                started_unix_ns,
            } => {
                self.missed += observation.missed();
                match observation.next(within) {
                    None => return Ok(false),
                    Some(Seen::Outcomes { .. }) => return Ok(true),
                    Some(Seen::Packet {
                        at,
                        direction,
                        packet,
                    }) => {
                        let unix_ns = started_unix_ns.saturating_add(at.as_nanos());
                        (unix_ns, direction, packet)
                    }
                }
            }
            Source::Kernel(cable) => match cable.next(within)? {
                Look::Nothing => return Ok(false),
                Look::Other => return Ok(true),
                Look::Packet(passed) => {
                    self.missed = passed.missed.into();
                    let direction = match passed.sent {
                        true => Direction::Outbound,
                        false => Direction::Inbound,
                    };
                    let vnet = VirtioHeader::parse(&passed.vnet).unwrap_or_default();
                    let packet = Packet::new(passed.data.to_vec(), vnet, Time::ZERO);
                    (passed.unix_ns, direction, packet)
                }
            },
        };
        if self.missed > self.told {
            self.told = self.missed;
            out.write_all(&pcapng::interface_statistics(0, unix_ns, self.missed))?;
        }
        write_packet(out, unix_ns, direction, packet)?;
        Ok(true)
    }
}

fn write_packet(
    out: &mut impl Write,
    unix_ns: u64,
    direction: Direction,
    packet: Packet,
) -> io::Result<()> {
    let mut write = |data: &[u8]| out.write_all(&pcapng::packet(0, unix_ns, direction, data));
    if let Some(datagrams) = datagrams(&packet) {
        for datagram in datagrams {
            write(&datagram)?;
        }
        return Ok(());
    }
    split(packet, 1).into_iter().try_for_each(|mut single| {
        finalise_checksum(&mut single);
        write(&single.data)
    })
}
