//! A Run's probes against the links' records of the very same packets.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use plumb_model::distribution::{Distribution, quantile_of_sorted};
use plumb_model::run::{Measurement, Run};
use plumb_model::units::human_seconds;
use plumb_wire::probe_key::ProbeKey;

use super::verdict::Deviation;
use crate::stats::{LabStats, WayStats};
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;

/// Bounds on what a probe's round trip may add to the time that the links recorded for the very same packets: the
/// stacks and schedulers of four namespaces on one machine. The lateness of each link on the path comes on top: a link
/// takes a packet in, before its record begins, as late as it gives one on.
const PROBE_ERROR_P50_S: f64 = 0.0003;
/// The same for one probe in twenty, of those that found a processor when they needed one.
const PROBE_ERROR_P95_S: f64 = 0.002;

/// A probe needs one at so many moments: it is sent, answered, and its answer taken.
const MOMENTS: f64 = 3.0;

/// The kind of cell whose packets arrive and are discarded.
const CORRUPT: &str = "corrupt";

/// A probe's name in a Run: protocol, identifier, sequence number.
type Key = (Protocol, u64, u64);

/// What the links did with a probe and its answer.
#[derive(Default)]
struct Passage<'a> {
    transit_s: f64,
    /// Whether a link took it and did not give it on.
    lost: bool,
    /// The directions that recorded it.
    ways: Vec<(&'a str, OneDirection, &'a WayStats)>,
}

impl Passage<'_> {
    /// What the links on its way were late by, for this quantile of their packets.
    fn lateness_s(&self, quantile: fn(&Distribution) -> f64) -> f64 {
        let each = self.ways.iter();
        each.filter_map(|(.., way)| way.driver.lateness_s.as_ref().map(quantile))
            .sum()
    }
}

fn passages(stats: &LabStats) -> HashMap<Key, Passage<'_>> {
    let mut passages: HashMap<Key, Passage<'_>> = HashMap::new();
    let links = stats.links.iter();
    let ways = links.flat_map(|(link, ways)| ways.iter().map(|(way, what)| (&**link, *way, what)));
    for (link, way, what) in ways {
        let mut seen = HashSet::new();
        for probe in &what.probes {
            let key = match probe.key {
                ProbeKey::Icmp { id, seq } => (Protocol::Icmp, u64::from(id), u64::from(seq)),
                ProbeKey::Udp { session, seq } => {
                    (Protocol::Udp, u64::from(session), u64::from(seq))
                }
            };
            // Of several copies the first is the one that is measured.
            if !seen.insert(key) {
                continue;
            }
            let passage = passages.entry(key).or_default();
            passage.ways.push((link, way, what));
            match probe.left {
                Some(left) => passage.transit_s += (left - probe.entered).as_secs_f64(),
                None => passage.lost = true,
            }
        }
    }
    passages
}

/// The round trips of all probes of a Run, `None` for what was lost.
fn round_trips(run: &Run) -> HashMap<Key, Option<f64>> {
    let mut round_trips = HashMap::new();
    for measurement in &run.measurements {
        // A ping has one series, whatever its protocol; a load phase has one for each.
        let own = match measurement.series.contains_key("rtt_icmp") {
            true => "rtt_icmp",
            false => "rtt",
        };
        for (protocol, series) in [(Protocol::Udp, "rtt"), (Protocol::Icmp, own)] {
            let Some(series) = measurement.series.get(series) else {
                continue;
            };
            let mut probes = measurement.context.probes.iter();
            let Some(first) = probes.find(|probe| probe.protocol == protocol) else {
                continue;
            };
            for (seq, rtt) in (u64::from(first.first_seq)..).zip(&series.values) {
                let key = (protocol, u64::from(first.id), seq);
                round_trips.entry(key).or_insert(*rtt);
            }
        }
    }
    round_trips
}

/// Whether the Run's probes took as long as the links recorded, and were lost where they were; says
/// how many there were to hold, if any.
pub(super) fn check(run: &Run, stats: &LabStats) -> Result<Option<usize>, Vec<Deviation>> {
    let passages = passages(stats);
    let round_trips = round_trips(run);
    let identified = |m: &Measurement| !m.context.probes.is_empty();
    let mut deviations = Vec::new();
    if run.measurements.iter().any(identified) {
        deviations.extend(errors(&round_trips, &passages, held_up_ratio(stats)));
    }
    deviations.extend(losses(&round_trips, &passages));
    if !deviations.is_empty() {
        return Err(deviations);
    }
    let held = round_trips.keys().filter(|key| passages.contains_key(key));
    Ok(Some(held.count()).filter(|probes| *probes > 0))
}

/// A probe is lost in a Run if, and only if, a link lost it; or corrupted it, so that its checksum
/// failed. Links count how many packets they corrupted, and do not say which.
fn losses(
    round_trips: &HashMap<Key, Option<f64>>,
    passages: &HashMap<Key, Passage<'_>>,
) -> Option<Deviation> {
    let mut kept = BTreeSet::new();
    let mut vanished = BTreeSet::new();
    let mut corrupted = BTreeMap::new();
    for (key, rtt) in round_trips {
        match passages.get(key) {
            Some(passage) if passage.lost && rtt.is_some() => {
                kept.insert(*key);
            }
            Some(passage) if !passage.lost && rtt.is_none() => {
                vanished.insert(*key);
                for (link, way, what) in &passage.ways {
                    corrupted.insert((*link, *way), changed(what));
                }
            }
            _ => {}
        }
    }
    if vanished.len() as u64 <= corrupted.values().sum() {
        vanished.clear();
    }
    let (protocol, _, seq) = kept.iter().chain(&vanished).min()?;
    Some(Deviation {
        what: "a probe is lost if, and only if, a link lost or corrupted it".to_owned(),
        found: format!(
            "{} probes differ, the first of them {protocol} number {seq}",
            kept.len() + vanished.len()
        ),
    })
}

/// Packets that a direction corrupted.
fn changed(way: &WayStats) -> u64 {
    let cells = way.chain.cells.values();
    cells
        .filter(|cell| cell.kind == CORRUPT)
        .map(|cell| cell.changed)
        .sum()
}

/// Share of the time in which the machine had no processor for a link, or for a program at its ends.
fn held_up_ratio(stats: &LabStats) -> f64 {
    let ways = stats.links.values().flat_map(BTreeMap::values);
    let behind = ways.map(|way| way.driver.behind_ratio);
    behind.fold(stats.starved_ratio, f64::max)
}

/// Round trips less what the links recorded for the same packets.
fn errors(
    round_trips: &HashMap<Key, Option<f64>>,
    passages: &HashMap<Key, Passage<'_>>,
    held_up_ratio: f64,
) -> Vec<Deviation> {
    // Where nothing came back there is no round trip to hold; what was lost is held by itself.
    if !round_trips.is_empty() && round_trips.values().all(Option::is_none) {
        return Vec::new();
    }
    let both = || {
        let each = round_trips.iter();
        each.filter_map(|(key, rtt)| Some(((*rtt)?, passages.get(key)?)))
    };
    let mut errors: Vec<f64> = both().map(|(rtt, p)| rtt - p.transit_s).collect();
    errors.sort_by(f64::total_cmp);
    // Those that waited for a processor are the latest.
    let found_one = 1.0 - MOMENTS * held_up_ratio;
    let quantiles =
        quantile_of_sorted(&errors, 0.5).zip(quantile_of_sorted(&errors, 0.95 * found_one));
    let Some((error_p50, error_p95)) = quantiles else {
        return vec![Deviation {
            what: "probes are found in the links' records".to_owned(),
            found: "none of the Run's probes is there".to_owned(),
        }];
    };
    // Of what the links on each probe's way were late by, the median: ways may differ.
    let late = |quantile: fn(&Distribution) -> f64| {
        let each = both().map(|(_, passage)| passage.lateness_s(quantile));
        Distribution::of(each).map_or(0.0, |late| late.p50)
    };
    let bound_p50 = PROBE_ERROR_P50_S + late(|lateness| lateness.p50);
    let bound_p95 = PROBE_ERROR_P95_S + late(|lateness| lateness.p95);
    [
        ("median", error_p50, bound_p50),
        ("p95", error_p95, bound_p95),
    ]
    .into_iter()
    .filter(|(_, value, bound)| value.abs() > *bound)
    .map(|(which, value, bound)| Deviation {
        what: format!(
            "{which} of a probe's round trip beyond its recorded transits is at most {}",
            human_seconds(bound)
        ),
        found: format!("{} over {} probes", human_seconds(value), errors.len()),
    })
    .collect()
}
