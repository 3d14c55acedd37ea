//! Fields of templates: which of the information elements (IANA, "IPFIX Information Elements") are read, and how. NetFlow 9
//! shares the numbers below 128.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{number, number32};
use super::clock::{Clocks, ntp_ms};
use super::record::FlowRecord;

/// What a field of a template is to this collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// It is passed over.
    Other,
    Bytes,
    Packets,
    Protocol,
    TrafficClass,
    SourcePort,
    DestinationPort,
    SourceV4,
    DestinationV4,
    SourceV6,
    DestinationV6,
    SourcePrefix,
    DestinationPrefix,
    SourceAs,
    DestinationAs,
    InInterface,
    OutInterface,
    Shortest,
    Longest,
    Squares,
    /// A time; true of the first packet of the flow, false of the last one.
    Uptime(bool),
    Seconds(bool),
    Milliseconds(bool),
    Ntp(bool),
    MicrosecondsAgo(bool),
    /// When the exporter began, for uptimes of IPFIX.
    Began,
    Sampler,
    /// One packet of so many.
    Interval,
    /// So many packets, of which then so many are passed over (RFC 5477, section 8.2).
    Sampled,
    PassedOver,
    /// So many packets of so many.
    Size,
    Population,
    Probability,
}

impl Element {
    /// What this number of IANA is.
    pub(super) fn of(number: u16) -> Self {
        match number {
            1 | 85 => Self::Bytes,
            2 | 86 => Self::Packets,
            4 => Self::Protocol,
            5 => Self::TrafficClass,
            7 => Self::SourcePort,
            8 => Self::SourceV4,
            9 | 29 => Self::SourcePrefix,
            10 => Self::InInterface,
            11 => Self::DestinationPort,
            12 => Self::DestinationV4,
            13 | 30 => Self::DestinationPrefix,
            14 => Self::OutInterface,
            16 => Self::SourceAs,
            17 => Self::DestinationAs,
            21 => Self::Uptime(false),
            22 => Self::Uptime(true),
            25 => Self::Shortest,
            26 => Self::Longest,
            27 => Self::SourceV6,
            28 => Self::DestinationV6,
            34 | 50 => Self::Interval,
            48 | 302 => Self::Sampler,
            150 => Self::Seconds(true),
            151 => Self::Seconds(false),
            152 => Self::Milliseconds(true),
            153 => Self::Milliseconds(false),
            154 | 156 => Self::Ntp(true),
            155 | 157 => Self::Ntp(false),
            158 => Self::MicrosecondsAgo(true),
            159 => Self::MicrosecondsAgo(false),
            160 => Self::Began,
            198 => Self::Squares,
            305 => Self::Sampled,
            306 => Self::PassedOver,
            309 => Self::Size,
            310 => Self::Population,
            311 => Self::Probability,
            _ => Self::Other,
        }
    }
}

/// What a record says of sampling.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sampling {
    interval: Option<u64>,
    sampled: Option<u64>,
    passed_over: Option<u64>,
    size: Option<u64>,
    population: Option<u64>,
    probability: Option<f64>,
}

/// A rate of sampling beyond this is a mistake of the exporter.
const MOST_ONE_IN: f64 = 4_294_967_295.0;

impl Sampling {
    /// One packet of how many is counted; `None` where nothing is said of it.
    #[inline]
    pub(super) fn one_in(&self) -> Option<f64> {
        // Zero of something is written by exporters that do not sample.
        let ratio = |all: u64, of: u64| match of {
            0 => 1.0,
            of => all as f64 / of as f64,
        };
        let one_in = match *self {
            Self {
                size: Some(size),
                population: Some(population),
                ..
            } => ratio(population, size),
            Self {
                sampled: Some(sampled),
                passed_over: Some(passed_over),
                ..
            } => ratio(sampled.saturating_add(passed_over), sampled),
            Self {
                probability: Some(probability),
                ..
            } => probability.recip(),
            // Without what is passed over, exporters mean an interval by it.
            _ => self.interval.or(self.sampled)? as f64,
        };
        one_in.is_finite().then(|| one_in.clamp(1.0, MOST_ONE_IN))
    }
}

/// A record while its fields are read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub(super) record: FlowRecord,
    pub(super) sampling: Sampling,
    pub(super) sampler: Option<u64>,
    pub(super) began_ms: Option<i64>,
    start_up_ms: Option<u32>,
    end_up_ms: Option<u32>,
}

impl Reading {
    /// Takes what a field has. Numbers may be shorter than their type (RFC 7011, section 6.2); what does not fit is passed over.
    #[inline]
    pub(super) fn take(&mut self, element: Element, content: &[u8], clocks: Clocks) {
        // A field without content says nothing.
        if content.is_empty() {
            return;
        }
        let record = &mut self.record;
        match element {
            Element::Other => {}
            Element::Bytes => record.bytes = number(content),
            Element::Packets => record.packets = number(content),
            Element::Protocol => record.protocol = content.last().copied(),
            Element::TrafficClass => record.traffic_class = content.last().copied(),
            Element::SourcePort => record.source_port = port(content),
            Element::DestinationPort => record.destination_port = port(content),
            Element::SourceV4 => set(&mut record.source, v4(content)),
            Element::DestinationV4 => set(&mut record.destination, v4(content)),
            Element::SourceV6 => set(&mut record.source, v6(content)),
            Element::DestinationV6 => set(&mut record.destination, v6(content)),
            Element::SourcePrefix => record.source_prefix_bits = content.last().copied(),
            Element::DestinationPrefix => record.destination_prefix_bits = content.last().copied(),
            Element::SourceAs => record.source_as = Some(number32(content)),
            Element::DestinationAs => record.destination_as = Some(number32(content)),
            Element::InInterface => record.in_interface = Some(number32(content)),
            Element::OutInterface => record.out_interface = Some(number32(content)),
            Element::Shortest => record.sizes.shortest = Some(number32(content)),
            Element::Longest => record.sizes.longest = Some(number32(content)),
            Element::Squares => record.sizes.squares = Some(number(content)),
            Element::Uptime(true) => self.start_up_ms = Some(number32(content)),
            Element::Uptime(false) => self.end_up_ms = Some(number32(content)),
            Element::Seconds(first) => {
                let seconds = i64::from(number32(content));
                self.time(first, seconds * 1000);
            }
            Element::Milliseconds(first) => self.time(first, signed(content)),
            Element::Ntp(first) => {
                if content.len() == 8 {
                    self.time(first, ntp_ms(number(content)));
                }
            }
            Element::MicrosecondsAgo(first) => {
                let ago_ms = signed(content) / 1000;
                self.time(first, clocks.sent_ms.saturating_sub(ago_ms));
            }
            Element::Began => self.began_ms = Some(signed(content)),
            Element::Sampler => self.sampler = Some(number(content)),
            Element::Interval => self.sampling.interval = Some(number(content)),
            Element::Sampled => self.sampling.sampled = Some(number(content)),
            Element::PassedOver => self.sampling.passed_over = Some(number(content)),
            Element::Size => self.sampling.size = Some(number(content)),
            Element::Population => self.sampling.population = Some(number(content)),
            Element::Probability => self.sampling.probability = probability(content),
        }
    }

    fn time(&mut self, first: bool, at_ms: i64) {
        match first {
            true => self.record.start_ms = Some(at_ms),
            false => self.record.end_ms = Some(at_ms),
        }
    }

    /// Makes times of uptimes: by the header of NetFlow 9, or by when the exporter began.
    #[inline]
    pub(super) fn settle_times(&mut self, clocks: Clocks, began_ms: Option<i64>) {
        let began_ms = self.began_ms.or(began_ms);
        let at = |up_ms: u32| {
            let began = || Some(began_ms?.saturating_add(i64::from(up_ms)));
            clocks.at_uptime(up_ms).or_else(began)
        };
        let record = &mut self.record;
        record.start_ms = record.start_ms.or(self.start_up_ms.and_then(at));
        record.end_ms = record.end_ms.or(self.end_up_ms.and_then(at));
    }
}

/// Where a template has both versions of addresses, the one that is not all zero counts.
#[inline]
fn set(address: &mut Option<IpAddr>, found: Option<IpAddr>) {
    if address.is_none_or(|before| before.is_unspecified()) {
        *address = found.or(*address);
    }
}

#[inline]
fn v4(content: &[u8]) -> Option<IpAddr> {
    let octets: [u8; 4] = content.try_into().ok()?;
    Some(Ipv4Addr::from(octets).into())
}

fn v6(content: &[u8]) -> Option<IpAddr> {
    let octets: [u8; 16] = content.try_into().ok()?;
    Some(Ipv6Addr::from(octets).into())
}

#[inline]
fn port(content: &[u8]) -> u16 {
    u16::try_from(number(content)).unwrap_or_default()
}

fn signed(content: &[u8]) -> i64 {
    i64::try_from(number(content)).unwrap_or(i64::MAX)
}

/// A float of 32 or 64 bits.
fn probability(content: &[u8]) -> Option<f64> {
    let value = match content.len() {
        4 => f64::from(f32::from_bits(number32(content))),
        8 => f64::from_bits(number(content)),
        _ => return None,
    };
    (value > 0.0 && value <= 1.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_read_in_all_its_forms() {
        let of = |fields: &[(u16, &[u8])]| {
            let mut reading = Reading::default();
            for (number, content) in fields {
                reading.take(Element::of(*number), content, Clocks::default());
            }
            reading.sampling.one_in()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(34, &[0, 0, 3, 232])]), Some(1000.0));
        assert_eq!(of(&[(34, &[0])]), Some(1.0));
        assert_eq!(of(&[(50, &[100])]), Some(100.0));
        assert_eq!(of(&[(305, &[1]), (306, &[99])]), Some(100.0));
        assert_eq!(of(&[(305, &[10]), (306, &[90])]), Some(10.0));
        assert_eq!(of(&[(305, &[100])]), Some(100.0));
        assert_eq!(of(&[(309, &[2]), (310, &[100])]), Some(50.0));
        assert_eq!(of(&[(311, &0.01f64.to_be_bytes())]), Some(100.0));
        assert_eq!(of(&[(311, &0f64.to_be_bytes())]), None);
        assert_eq!(of(&[(311, &f64::NAN.to_be_bytes())]), None);
    }

    #[test]
    fn the_address_that_is_not_zero_counts() {
        let mut reading = Reading::default();
        reading.take(Element::SourceV4, &[192, 0, 2, 1], Clocks::default());
        reading.take(Element::SourceV6, &[0; 16], Clocks::default());
        assert_eq!(
            reading.record.source,
            Some(Ipv4Addr::new(192, 0, 2, 1).into())
        );
        let mut reading = Reading::default();
        reading.take(Element::SourceV4, &[0; 4], Clocks::default());
        reading.take(Element::SourceV6, &[1; 16], Clocks::default());
        assert!(reading.record.source.unwrap().is_ipv6());
    }
}
