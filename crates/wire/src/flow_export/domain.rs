//! What is kept of one part of an exporter: its sequence numbers, and how it samples.

use std::collections::BTreeMap;

use super::Protocol;
use super::element::Reading;
use super::sequence::Sequence;

/// A part of an exporter, by the protocol that it speaks and its number.
pub type DomainKey = (Protocol, u32);

/// Samplers and interfaces of which the rates are kept, each: a large router has one of both for each port.
const MOST_RATES: usize = 4096;

/// What is kept of a domain.
#[derive(Debug, Default)]
pub(super) struct Domain {
    pub(super) sequence: Sequence,
    /// The exporter's uptime in its last message, in ms.
    pub(super) uptime_ms: Option<u32>,
    /// When the exporter began, ms since 1970, as it says.
    pub(super) began_ms: Option<i64>,
    pub(super) used_ms: i64,
    /// One packet of so many, where nothing is said of the sampler or the interface.
    usual: Option<f64>,
    of_samplers: BTreeMap<u64, f64>,
    of_interfaces: BTreeMap<u32, f64>,
}

impl Domain {
    /// Takes what the exporter says of itself.
    pub(super) fn note_options(&mut self, options: &Reading) {
        self.began_ms = options.began_ms.or(self.began_ms);
        let Some(one_in) = options.sampling.one_in() else {
            return;
        };
        match (options.sampler, options.record.in_interface) {
            (Some(sampler), _) => keep(&mut self.of_samplers, sampler, one_in),
            (None, Some(interface)) => keep(&mut self.of_interfaces, interface, one_in),
            (None, None) => self.usual = Some(one_in),
        }
    }

    /// One packet of how many is counted of a flow: as its record says, or its sampler, or the interface that it came in by.
    #[inline]
    pub(super) fn one_in(&self, flow: &Reading) -> Option<f64> {
        let of_sampler = || self.of_samplers.get(&flow.sampler?).copied();
        let of_interface = || self.of_interfaces.get(&flow.record.in_interface?).copied();
        // A record without the number of its sampler is of the only one.
        let only = || match self.of_samplers.len() {
            1 => self.of_samplers.values().next().copied(),
            _ => None,
        };
        flow.sampling
            .one_in()
            .or_else(of_sampler)
            .or_else(of_interface)
            .or(self.usual)
            .or_else(only)
    }

    /// Sees the exporter's uptime: whether it began anew since the last message. It wraps after 49.7 days, and messages may be
    /// reordered by less than a minute.
    pub(super) fn began_anew(&mut self, uptime_ms: u32) -> bool {
        const REORDERED_MS: u32 = 60_000;
        let before = self.uptime_ms.unwrap_or(uptime_ms);
        let back = before.wrapping_sub(uptime_ms);
        let anew = back > REORDERED_MS && back <= u32::MAX / 2;
        if anew || back > u32::MAX / 2 || self.uptime_ms.is_none() {
            self.uptime_ms = Some(uptime_ms);
        }
        anew
    }
}

/// Keeps a rate, where it is of something known or there is room.
fn keep<K: Ord>(rates: &mut BTreeMap<K, f64>, of: K, one_in: f64) {
    if rates.len() < MOST_RATES || rates.contains_key(&of) {
        rates.insert(of, one_in);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_that_goes_back_is_a_new_beginning() {
        let mut domain = Domain::default();
        for (uptime_ms, anew) in [
            (1_000_000, false),
            (1_000_500, false),
            (1_000_100, false),
            (5_000, true),
            (6_000, false),
            (2_147_483_000, false),
            (4_000_000_000, false),
            (100, false),
        ] {
            assert_eq!(domain.began_anew(uptime_ms), anew, "{uptime_ms}");
        }
    }
}
