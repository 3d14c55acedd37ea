//! A filter at work on packets of several link types.

use crate::filter::{Filter, FilterError, Program};
use crate::read::Frame;

/// Lets packets pass that a filter accepts, and counts the others.
#[derive(Debug, Clone)]
pub struct Sieve {
    filter: Filter,
    /// One for each link type that was met: a capture has few.
    programs: Vec<(u16, Program)>,
    passed_over: u64,
}

impl Sieve {
    /// One that has met no packet.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            programs: Vec::new(),
            passed_over: 0,
        }
    }

    /// Whether a packet passes.
    ///
    /// # Errors
    /// Where the filter has no program for the packet's link type.
    #[inline]
    pub fn passes(&mut self, frame: &Frame<'_>) -> Result<bool, FilterError> {
        let known = self.programs.iter().find(|(link, _)| *link == frame.link);
        let passes = match known {
            Some((_, program)) => program.accepts(frame.bytes, frame.original_bytes),
            None => {
                let program = self.filter.compile(frame.link)?;
                let passes = program.accepts(frame.bytes, frame.original_bytes);
                self.programs.push((frame.link, program));
                passes
            }
        };
        self.passed_over += u64::from(!passes);
        Ok(passes)
    }

    /// How many packets did not pass.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Cursor;

    use plumb_model::results::capture::CaptureResult;

    use super::*;
    use crate::testing::{Built, pcap, raw};
    use crate::{Analysis, Named, Reader};

    /// Raw IP (the list of LINKTYPE_ values of libpcap).
    const RAW_IP: u32 = 101;

    fn through(filter: &str, link: u32) -> (CaptureResult, u64) {
        let ports = [[40_000, 80], [40_000, 443], [443, 40_000]];
        let packets = ports.map(|ports| {
            let of = Built {
                ports,
                ..Built::default()
            };
            (1_000_000_000, raw(&of))
        });
        let file = pcap(link, false, false, &packets);
        let named = Named {
            name: "test".to_owned(),
            reader: Reader::new(Cursor::new(file)).unwrap(),
        };
        let mut sieve = Sieve::new(Filter::parse(filter).unwrap());
        let result = Analysis::of(
            vec![named],
            Some(&mut sieve),
            crate::watch::Watch::nobody(),
            &|| false,
        );
        (result, sieve.passed_over())
    }

    #[test]
    fn what_does_not_pass_is_counted_and_is_not_in_the_result() {
        let (result, passed_over) = through("tcp port 443", RAW_IP);
        assert_eq!((result.packets, passed_over), (2, 1));
        assert_eq!(result.files.first().unwrap().packets, 2);
        let (result, passed_over) = through("udp", RAW_IP);
        assert_eq!((result.packets, passed_over), (0, 3));
    }

    #[test]
    fn a_link_without_a_program_ends_the_file() {
        for (filter, link) in [("tcp", 147), ("vlan", RAW_IP)] {
            let (result, _) = through(filter, link);
            let why = result.files.first().unwrap().incomplete.as_ref().unwrap();
            assert!(why.contains(&format!("link type {link}")), "{why}");
            assert_eq!(result.packets, 0);
        }
    }
}
