//! Counters over time: how fast each grows.
//!
//! Reading is apart from counting: [`Reading`] is what the kernel said at an instant, [`Rates`] what
//! follows from two of them and from all, without a clock of its own.

use std::collections::{BTreeMap, VecDeque};

use plumb_model::results::host::RatesResult;
use plumb_model::series::{Series, Unit};

use plumb_net::clock;
use plumb_net::ethtool::Ethtool;
use plumb_net::netlink::queue::qdiscs;
use plumb_net::netlink::wifi::radios;

use crate::facts::{
    Source, counters, dropped_connections, link_counters, softnet, tells_of_trouble, waits,
};

/// Intervals of which each value is kept; older ones are in the averages only.
const MOST_INTERVALS: usize = 3600;

/// What stands in the same tables as counters and is no counter.
const STATES: [&str; 8] = [
    "IpForwarding",
    "IpDefaultTTL",
    "TcpRtoAlgorithm",
    "TcpRtoMin",
    "TcpRtoMax",
    "TcpMaxConn",
    "TcpCurrEstab",
    "MPTcpExtMPCurrEstab",
];

/// Counters at an instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// CLOCK_MONOTONIC at the beginning of the reading.
    pub at_ns: u64,
    /// CLOCK_REALTIME at the same instant. Its rate is corrected together with the other's; only setting it moves them
    /// apart.
    pub real_ns: u64,
    /// Their values by name: `eth0.rx_bytes`, `TcpRetransSegs`, `softnet.cpu0.dropped`,
    /// `eth0.qdisc_drops`, `processor.steal_ticks`, `control_group.throttled_us`, `connections.drop`.
    pub values: BTreeMap<String, u64>,
}

/// Reads the counters of the network namespace of the calling thread, and softnet's of the machine.
pub fn read(source: &mut Source) -> Reading {
    let mut values = BTreeMap::new();
    let (at_ns, real_ns) = (clock::monotonic_ns(), clock::realtime_ns());
    for (name, value) in counters(source) {
        if let Ok(value) = u64::try_from(value)
            && !STATES.contains(&name.as_str())
        {
            values.insert(name, value);
        }
    }
    let links = link_counters(source);
    for (name, counters) in links.values() {
        for (counter, value) in counters.named() {
            values.insert(format!("{name}.{counter}"), value);
        }
    }
    // Virtual interfaces count nothing of their own, and each question takes the kernel's lock of all interfaces.
    let hardware = |name: &&str| source.exists(&format!("/sys/class/net/{name}/device"));
    let names = links.values().map(|(name, _)| name.as_str());
    let hardware: Vec<&str> = names.filter(hardware).collect();
    if !hardware.is_empty()
        && let Ok(mut ethtool) = Ethtool::open()
    {
        for name in hardware {
            let own = ethtool.statistics(name).unwrap_or_default().into_iter();
            for (counter, value) in own.filter(|(counter, _)| tells_of_trouble(counter)) {
                values.entry(format!("{name}.{counter}")).or_insert(value);
            }
        }
    }
    for (index, radio) in source.asked("radios", radios()) {
        let airtime = radio.airtime;
        let ms = |time_s: Option<f64>| time_s.map(|time_s| (time_s * 1e3).round() as u64);
        let counted = [
            ("wifi_sent", radio.sent),
            ("wifi_retries", radio.retries),
            ("wifi_failed", radio.failed),
            ("wifi_beacons_lost", radio.beacons_lost),
            // When that was, by the clock of the readings: it grows with each scan.
            (
                "wifi_scanned_at_ms",
                radio
                    .scanned_ago_s
                    .and_then(|ago_s| ms(Some(at_ns as f64 / 1e9 - ago_s))),
            ),
            ("wifi_channel_ms", ms(airtime.map(|airtime| airtime.all_s))),
            ("wifi_busy_ms", ms(airtime.map(|airtime| airtime.busy_s))),
            (
                "wifi_sent_ms",
                ms(airtime.and_then(|airtime| airtime.sent_s)),
            ),
            (
                "wifi_own_received_ms",
                ms(airtime.and_then(|airtime| airtime.own_received_s)),
            ),
        ];
        for (counter, value) in counted {
            if let (Some((name, _)), Some(value)) = (links.get(&index), value) {
                values.insert(format!("{name}.{counter}"), value);
            }
        }
    }
    for (index, qdisc) in source.asked("queueing disciplines", qdiscs()) {
        if let Some((name, _)) = links.get(&index) {
            let drops = values.entry(format!("{name}.qdisc_drops")).or_default();
            *drops = drops.saturating_add(qdisc.drops);
        }
    }
    for cpu in softnet(source) {
        for (name, value) in [
            ("processed", cpu.processed),
            ("dropped", cpu.dropped),
            ("squeezed", cpu.squeezed),
        ] {
            // Each processor's wraps at 32 bits by itself, so they are not added up.
            values.insert(format!("softnet.cpu{}.{name}", cpu.cpu), value.into());
        }
    }
    values.extend(waits(source));
    values.extend(dropped_connections(source));
    Reading {
        at_ns,
        real_ns,
        values,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Its end, in seconds from the first reading.
    pub at_s: f64,
    pub length_s: f64,
    /// Growth in a second of the counters that grew.
    pub per_s: BTreeMap<String, f64>,
}

/// What all readings come to.
#[derive(Debug, Default)]
pub struct Rates {
    first_ns: Option<u64>,
    /// CLOCK_REALTIME at the first reading.
    first_real_ns: u64,
    last: Reading,
    grown: BTreeMap<String, u64>,
    intervals: VecDeque<Interval>,
    count: u64,
}

impl Rates {
    /// Takes the next reading; the interval since the one before, if there was one.
    ///
    /// A counter that is smaller than before began anew, with its interface, and a new one has no
    /// interval: both have none in this one.
    pub fn take(&mut self, reading: Reading) -> Option<Interval> {
        let last = std::mem::replace(&mut self.last, reading);
        let Some(first_ns) = self.first_ns else {
            self.first_ns = Some(self.last.at_ns);
            self.first_real_ns = self.last.real_ns;
            return None;
        };
        let length_s = self.last.at_ns.saturating_sub(last.at_ns) as f64 / 1e9;
        if length_s <= 0.0 {
            return None;
        }
        let mut per_s = BTreeMap::new();
        for (name, value) in &self.last.values {
            let grown = last
                .values
                .get(name)
                .and_then(|before| growth(name, *before, *value));
            if let Some(grown) = grown.filter(|grown| *grown > 0) {
                let sum = self.grown.entry(name.clone()).or_default();
                *sum = sum.saturating_add(grown);
                per_s.insert(name.clone(), grown as f64 / length_s);
            }
        }
        let interval = Interval {
            at_s: self.last.at_ns.saturating_sub(first_ns) as f64 / 1e9,
            length_s,
            per_s,
        };
        if self.intervals.len() == MOST_INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval.clone());
        self.count += 1;
        Some(interval)
    }

    /// Averages over all intervals, of what was asked to be `interval_s` apart, and the values of
    /// each of the last hour's intervals.
    pub fn finish(self, interval_s: f64) -> (RatesResult, BTreeMap<String, Series>) {
        let all_s = self.first_ns.map_or(0.0, |first| {
            self.last.at_ns.saturating_sub(first) as f64 / 1e9
        });
        let mut series = BTreeMap::new();
        for name in self.grown.keys() {
            let mut column = Series::new(Unit::Count);
            for interval in &self.intervals {
                column.push(
                    interval.at_s,
                    Some(interval.per_s.get(name).copied().unwrap_or(0.0)),
                );
            }
            series.insert(name.clone(), column);
        }
        let average = |grown: u64| grown as f64 / all_s.max(f64::MIN_POSITIVE);
        let per_s = self.grown.iter();
        let per_s = per_s.map(|(name, grown)| (name.clone(), average(*grown)));
        let real_ns = i128::from(self.last.real_ns) - i128::from(self.first_real_ns);
        let first_ns = self.first_ns.unwrap_or(self.last.at_ns);
        let set_ns = real_ns - (i128::from(self.last.at_ns) - i128::from(first_ns));
        let result = RatesResult {
            interval_s,
            intervals: self.count,
            per_s: per_s.collect(),
            clock_set_s: self.first_ns.map(|_| set_ns as f64 / 1e9),
            grown: self.grown,
        };
        (result, series)
    }

    /// Whether older intervals are in the averages only.
    pub fn is_cut(&self) -> bool {
        self.count > self.intervals.len() as u64
    }
}

/// What grew between two readings.
pub fn between(before: Reading, after: Reading) -> RatesResult {
    let mut rates = Rates::default();
    rates.take(before);
    let interval = rates.take(after);
    rates
        .finish(interval.map_or(0.0, |interval| interval.length_s))
        .0
}

/// By how much a counter grew; the counters of softnet are of 32 bits and wrap.
fn growth(name: &str, before: u64, now: u64) -> Option<u64> {
    match (u32::try_from(before), u32::try_from(now)) {
        (Ok(before), Ok(now)) if name.starts_with("softnet.") => {
            Some(now.wrapping_sub(before).into())
        }
        _ => now.checked_sub(before),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn reading(at_s: f64, values: &[(&str, u64)]) -> Reading {
        Reading {
            at_ns: (at_s * 1e9) as u64,
            real_ns: (at_s * 1e9) as u64,
            values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
        }
    }

    #[test]
    fn growth_is_by_time() {
        let mut rates = Rates::default();
        assert_eq!(rates.take(reading(5.0, &[("a", 10), ("b", 7)])), None);
        let one = rates.take(reading(5.5, &[("a", 60), ("b", 7)])).unwrap();
        assert_eq!(
            one.per_s,
            BTreeMap::from([("a".to_owned(), 100.0)]),
            "b stood still"
        );
        assert_eq!((one.at_s, one.length_s), (0.5, 0.5));
        rates.take(reading(7.0, &[("a", 60), ("b", 10)])).unwrap();
        let (result, series) = rates.finish(1.0);
        assert_eq!(result.intervals, 2);
        assert_eq!(result.per_s.get("a"), Some(&25.0));
        assert_eq!(result.per_s.get("b"), Some(&1.5));
        assert_eq!(series.get("a").unwrap().values, [Some(100.0), Some(0.0)]);
        assert_eq!(series.get("a").unwrap().t_s, [0.5, 2.0]);
    }

    #[test]
    fn a_clock_that_is_set_is_told_from_one_that_runs() {
        let set = |after_s: f64| {
            let mut after = reading(9.0, &[]);
            after.real_ns = (after_s * 1e9) as u64;
            between(reading(5.0, &[]), after).clock_set_s.unwrap()
        };
        assert_eq!([9.0, 9.5, 8.0].map(set), [0.0, 0.5, -1.0]);
    }

    #[test]
    fn what_begins_anew_goes_away_or_wraps_is_no_flood() {
        let mut rates = Rates::default();
        rates.take(reading(
            0.0,
            &[
                ("v0.rx_bytes", 1000),
                ("softnet.cpu0.processed", u64::from(u32::MAX)),
            ],
        ));
        let again = rates
            .take(reading(
                1.0,
                &[("v0.rx_bytes", 5), ("softnet.cpu0.processed", 9)],
            ))
            .unwrap();
        assert_eq!(
            again.per_s,
            BTreeMap::from([("softnet.cpu0.processed".to_owned(), 10.0)])
        );
        let gone = rates.take(reading(2.0, &[])).unwrap();
        assert!(gone.per_s.is_empty());
        let back = rates.take(reading(3.0, &[("v0.rx_bytes", 900)])).unwrap();
        assert!(back.per_s.is_empty(), "new again");
    }

    #[test]
    fn this_machine_has_them() {
        let read = read(&mut Source::system());
        assert!(read.values.contains_key("lo.rx_bytes"));
        assert!(read.values.contains_key("TcpOutSegs"));
        assert!(read.values.contains_key("softnet.cpu0.dropped"));
        assert!(!read.values.contains_key("TcpCurrEstab"));
    }

    proptest! {
        #[test]
        fn rates_are_finite(values in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20)) {
            let mut rates = Rates::default();
            for (at_ns, value) in values {
                let interval = rates.take(Reading { at_ns, real_ns: at_ns, values: BTreeMap::from([("x".to_owned(), value)]) });
                prop_assert!(interval.is_none_or(|i| i.per_s.values().all(|v| v.is_finite())));
            }
            let (result, _) = rates.finish(1.0);
            prop_assert!(result.per_s.values().all(|v| *v >= 0.0));
        }
    }
}
