//! Captures at the ends of links, as pcapng. What crosses as a large segment is written as the
//! packets that it is on the wire, with their checksums complete.

use std::io::{self, Write};
use std::time::Duration;

use plumb_link::segment::{finalise_checksum, split};
use plumb_wire::pcapng;

use super::{Observation, Seen};

/// A capture at one end of a link.
pub(crate) struct Capture {
    observation: Observation,
    started_unix_ns: u64,
}

impl Capture {
    /// Stamps count from `started_unix_ns`, when the laboratory's clock was at zero.
    pub(crate) fn new(observation: Observation, started_unix_ns: u64) -> Self {
        Self {
            observation,
            started_unix_ns,
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
    pub(crate) fn write(&self, out: &mut impl Write, within: Duration) -> io::Result<bool> {
        let missed = self.observation.missed();
        if missed > 0 {
            out.write_all(&pcapng::interface_statistics(0, missed))?;
        }
        let Some(seen) = self.observation.next(within) else {
            return Ok(false);
        };
        if let Seen::Packet {
            at,
            direction,
            packet,
        } = seen
        {
            let unix_ns = self.started_unix_ns.saturating_add(at.as_nanos());
            for mut single in split(packet, 1) {
                finalise_checksum(&mut single);
                out.write_all(&pcapng::packet(0, unix_ns, direction, &single.data))?;
            }
        }
        Ok(true)
    }
}
