//! Captures at the ends of links, as pcapng. What crosses as a large segment is written as the
//! packets that it is on the wire, with their checksums complete.

use std::io::{self, Write};
use std::time::Duration;

use plumb_link::packet::Packet;
use plumb_link::segment::{datagrams, finalise_checksum, split};
use plumb_link::time::Time;
use plumb_net::clock::monotonic_ns;
use plumb_net::packet_capture::{Cable, Look};
use plumb_wire::pcapng::{self, Direction};
use plumb_wire::virtio::VirtioHeader;

use super::in_order::InOrder;
use super::tap::{Observation, Seen};

/// A capture at one end of a link.
pub(crate) struct Capture {
    source: Source,
    written: Written,
}

/// What a file reports of packets that were not taken in time.
#[derive(Default)]
struct Written {
    missed: u64,
    /// How many of them are in the file.
    reported: u64,
}

enum Source {
    /// A link that plumb carries.
    Carried {
        observation: Observation,
        passed: InOrder,
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
            passed: InOrder::default(),
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
            written: Written::default(),
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
        out.write_all(&pcapng::interface(
            interface,
            pcapng::LINKTYPE_RAW,
            pcapng::NO_LIMIT,
        ))
    }

    /// Writes what comes within a time; `false` when that was nothing and nothing is held back.
    pub(crate) fn write(&mut self, out: &mut impl Write, within: Duration) -> io::Result<bool> {
        match &mut self.source {
            Source::Carried {
                observation,
                passed,
                started_unix_ns,
            } => {
                self.written.missed += observation.missed();
                let seen = observation.next(within);
                let goes_on = seen.is_some() || !passed.is_empty();
                if let Some(Seen::Packet {
                    at,
                    direction,
                    packet,
                }) = seen
                {
                    let unix_ns = started_unix_ns.saturating_add(at.as_nanos());
                    passed.add(unix_ns, direction, packet, monotonic_ns());
                }
                // Ends when the rest is too young: each turn takes one away.
                while let Some((unix_ns, direction, packet)) = passed.next(monotonic_ns()) {
                    self.written.packet(out, unix_ns, direction, packet)?;
                }
                Ok(goes_on)
            }
            Source::Kernel(cable) => match cable.next(within)? {
                Look::Nothing => Ok(false),
                Look::Other => Ok(true),
                Look::Packet(passed) => {
                    self.written.missed = passed.missed.into();
                    let direction = match passed.sent {
                        true => Direction::Outbound,
                        false => Direction::Inbound,
                    };
                    let vnet = VirtioHeader::parse(&passed.vnet).unwrap_or_default();
                    let packet = Packet::new(passed.data.to_vec(), vnet, Time::ZERO);
                    self.written
                        .packet(out, passed.unix_ns, direction, packet)?;
                    Ok(true)
                }
            },
        }
    }
}

impl Written {
    fn packet(
        &mut self,
        out: &mut impl Write,
        unix_ns: u64,
        direction: Direction,
        packet: Packet,
    ) -> io::Result<()> {
        if self.missed > self.reported {
            self.reported = self.missed;
            out.write_all(&pcapng::interface_statistics(0, unix_ns, self.missed))?;
        }
        write_packet(out, unix_ns, direction, packet)
    }
}

fn write_packet(
    out: &mut impl Write,
    unix_ns: u64,
    direction: Direction,
    packet: Packet,
) -> io::Result<()> {
    let mut write = |data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        out.write_all(&pcapng::packet(0, unix_ns, direction, data, length))
    };
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
