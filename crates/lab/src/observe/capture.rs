//! Captures at the ends of links, as pcapng. What crosses as a large segment is written as the
//! packets that it is on the wire, with their checksums complete.

use std::io::{self, Write};
use std::time::Duration;

use plumb_link::packet::Packet;
use plumb_link::segment::{finalise_checksum, split};
use plumb_link::time::Time;
use plumb_net::cable::{Cable, Look};
use plumb_wire::pcapng::{self, Direction};
use plumb_wire::virtio::VirtioHeader;

use super::{Observation, Seen};

/// A capture at one end of a link.
pub(crate) struct Capture(Source);

enum Source {
    /// A link that plumb carries.
    Carried {
        observation: Observation,
        /// When the laboratory's clock was at zero.
        started_unix_ns: u64,
    },
    /// A link or lan of the kernel's.
    Kernel { cable: Cable, missed: u32 },
}

impl Capture {
    /// Stamps count from `started_unix_ns`, when the laboratory's clock was at zero.
    pub(crate) fn of_carried(observation: Observation, started_unix_ns: u64) -> Self {
        Self(Source::Carried {
            observation,
            started_unix_ns,
        })
    }

    /// What passes an interface of a node.
    pub(crate) fn of_kernel(cable: Cable) -> Self {
        Self(Source::Kernel { cable, missed: 0 })
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
        match &mut self.0 {
            Source::Carried {
                observation,
                started_unix_ns,
            } => {
                write_missed(out, observation.missed())?;
                let Some(seen) = observation.next(within) else {
                    return Ok(false);
                };
                if let Seen::Packet {
                    at,
                    direction,
                    packet,
                } = seen
                {
                    let unix_ns = started_unix_ns.saturating_add(at.as_nanos());
                    write_packet(out, unix_ns, direction, packet)?;
                }
            }
            Source::Kernel { cable, missed } => match cable.next(within)? {
                Look::Nothing => return Ok(false),
                Look::Other => {}
                Look::Packet(passed) => {
                    write_missed(out, passed.missed.saturating_sub(*missed).into())?;
                    *missed = passed.missed;
                    let direction = match passed.sent {
                        true => Direction::Outbound,
                        false => Direction::Inbound,
                    };
                    let vnet = VirtioHeader::parse(&passed.vnet).unwrap_or_default();
                    let packet = Packet::new(passed.data.to_vec(), vnet, Time::ZERO);
                    write_packet(out, passed.unix_ns, direction, packet)?;
                }
            },
        }
        Ok(true)
    }
}

fn write_missed(out: &mut impl Write, missed: u64) -> io::Result<()> {
    match missed {
        0 => Ok(()),
        _ => out.write_all(&pcapng::interface_statistics(0, missed)),
    }
}

fn write_packet(
    out: &mut impl Write,
    unix_ns: u64,
    direction: Direction,
    packet: Packet,
) -> io::Result<()> {
    split(packet, 1).into_iter().try_for_each(|mut single| {
        finalise_checksum(&mut single);
        out.write_all(&pcapng::packet(0, unix_ns, direction, &single.data))
    })
}
