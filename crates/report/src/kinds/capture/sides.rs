//! Two captures of the same traffic: what became of packets in between.

use plumb_model::results::capture::sides::{CaptureSidesResult, CaptureWay, PathChange};
use plumb_model::run::Run;

use crate::number;
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{Table, blank, counted, list};

/// Changes that have a row in the short text; a program reads the Run.
const ROWS: usize = 12;

impl Show for CaptureSidesResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        for result in results::<Self>(run) {
            tables.add(Place::OneWayDelay, [packets(result), delays(result)]);
            let few = result.changes.iter().take(ROWS);
            tables.add(Place::OneWayDelay, [changes(few)]);
            tables.detail(Place::OneWayDelay, [clocks(result), files(result)]);
            if result.changes.len() > ROWS {
                let others = result.changes.iter().skip(ROWS);
                tables.detail(Place::OneWayDelay, [changes(others)]);
            }
        }
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        let mut sentences = Vec::new();
        for result in results::<Self>(run) {
            let ways = ways(result);
            sentences.extend(
                ways.into_iter()
                    .filter_map(|(name, way)| sentence(name, way)),
            );
            if result.up.both == 0 && result.down.both == 0 {
                sentences.push("No packet was seen in both captures.".to_owned());
            } else if let Some(why) = &result.clocks.incomparable {
                sentences.push(format!(
                    "One-way delay is unknown: {why}. What it varies by is known."
                ));
            }
            sentences.extend(flaws(result));
        }
        sentences
    }

    /// Nothing of this machine bears on what is in a file.
    fn bears(&self) -> Ends {
        Ends::default()
    }

    fn fills_its_phase(&self) -> bool {
        false
    }
}

type Way<'a> = (&'static str, &'a CaptureWay);

fn ways(result: &CaptureSidesResult) -> [Way<'_>; 2] {
    [("Up", &result.up), ("Down", &result.down)]
}

/// The loss and the delay of a direction.
fn sentence(name: &str, way: &CaptureWay) -> Option<String> {
    let sent = way.both.saturating_add(way.lost);
    let ratio = number::percent(way.loss_ratio?);
    let lost = format!(
        "{name}: {} of {sent} packets were lost between the two captures ({ratio})",
        way.lost
    );
    let queueing = way.queueing_s.map(|d| number::seconds(d.max));
    let delay = match (&way.delay, queueing) {
        (Some(delay), Some(queueing)) => Some(format!(
            "one-way delay {} to {}, ±{}, of which up to {queueing} is queueing",
            number::seconds(delay.delay_s.min),
            number::seconds(delay.delay_s.max),
            number::seconds(delay.uncertainty_s)
        )),
        (None, Some(queueing)) => Some(format!("up to {queueing} of queueing")),
        (_, None) => None,
    };
    let more = list([
        (way.duplicated > 0).then(|| format!("{} came twice", way.duplicated)),
        (way.reordered > 0).then(|| format!("{} were overtaken", way.reordered)),
    ]);
    let parts = [Some(lost), delay, (!more.is_empty()).then_some(more)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(parts.join("; ") + ".")
}

/// What must be known of the captures themselves, a sentence each.
fn flaws(result: &CaptureSidesResult) -> Vec<String> {
    let mut sentences = Vec::new();
    let missed = result.up.far_only.saturating_add(result.down.far_only);
    if missed > 0 {
        sentences.push(format!(
            "{missed} packets were captured at the receiving side alone: the other capture missed them."
        ));
    }
    for side in &result.sides {
        let counts = [
            (
                side.elsewhere_packets,
                "packets are between hosts of which the other capture has nothing",
            ),
            (
                side.outside_packets,
                "packets passed when the other capture did not run",
            ),
            (
                side.unwritten_checksums,
                "packets were captured before the network card wrote their checksum (offload), which corrupts nothing",
            ),
            (
                side.forgotten_packets,
                "packets were not waited for to the end, since the capture has too many at a time",
            ),
        ];
        let name = &side.file.name;
        let known = counts.iter().filter(|(count, _)| *count > 0);
        sentences.extend(known.map(|(count, what)| format!("{name}: {count} {what}.")));
    }
    sentences
}

fn packets(result: &CaptureSidesResult) -> Table {
    let share = |way: &CaptureWay| blank(way.loss_ratio.map(number::percent));
    let table = Table::of("Packets between the two captures", ways(result))
        .text("", |(name, _)| *name)
        .num("at both", |(_, way)| way.both)
        .num("lost", |(_, way)| way.lost)
        .num("of all", |(_, way)| share(way))
        .num("far only", |(_, way)| counted(way.far_only))
        .num("duplicates", |(_, way)| counted(way.duplicated))
        .num("overtaken", |(_, way)| counted(way.reordered));
    table.noted("Far only: the capture at the sending side missed them.")
}

fn delays(result: &CaptureSidesResult) -> Table {
    let seen = ways(result).into_iter().filter_map(|(name, way)| {
        let queueing = way.queueing_s?;
        Some((name, way.delay.as_ref(), queueing))
    });
    let table = Table::of("One-way delay between the two captures", seen)
        .text("", |(name, ..)| *name)
        .num("min", |(_, delay, _)| {
            blank(delay.map(|d| number::seconds(d.delay_s.min)))
        })
        .num("p50", |(_, delay, _)| {
            blank(delay.map(|d| number::seconds(d.delay_s.p50)))
        })
        .num("max", |(_, delay, _)| {
            blank(delay.map(|d| number::seconds(d.delay_s.max)))
        })
        .num("known to", |(_, delay, _)| {
            blank(delay.map(|d| format!("±{}", number::seconds(d.uncertainty_s))))
        })
        .num("queue p50", |(.., queueing)| number::seconds(queueing.p50))
        .num("p95", |(.., queueing)| number::seconds(queueing.p95))
        .num("max", |(.., queueing)| number::seconds(queueing.max));
    table.noted("Queue: what is above the shortest, which does not depend on the clocks.")
}

fn changes<'a>(changes: impl IntoIterator<Item = &'a PathChange>) -> Table {
    Table::of("What the path changes", changes)
        .text("", |change| change.direction.name())
        .text("what", |change| change.what.shown())
        .text("as sent", |change| blank(change.before.clone()))
        .text("as received", |change| blank(change.after.clone()))
        .num("packets", |change| change.packets)
        .done()
}

fn clocks(result: &CaptureSidesResult) -> Table {
    let known = result
        .clocks
        .offset_s
        .map(|offset| (offset, &result.clocks));
    let ppm = |ratio: f64| format!("{:.2} ppm", ratio * 1e6);
    Table::of("Clocks", known)
        .num("server's side less client's", |(offset, _)| {
            number::seconds(*offset)
        })
        .num("known to", |(_, clocks)| {
            let within = clocks.uncertainty_s;
            blank(within.map(|s| format!("±{}", number::seconds(s))))
        })
        .num("skew", |(_, clocks)| blank(clocks.skew_ratio.map(ppm)))
        .num("known to", |(_, clocks)| {
            let within = clocks.skew_uncertainty_ratio;
            blank(within.map(|ratio| format!("±{}", ppm(ratio))))
        })
        .done()
}

fn files(result: &CaptureSidesResult) -> Table {
    Table::of("The two captures", &result.sides)
        .text("", |side| side.file.name.clone())
        .num("packets", |side| side.file.packets)
        .num("not IP", |side| counted(side.not_ip_packets))
        .num("elsewhere", |side| counted(side.elsewhere_packets))
        .num("outside", |side| counted(side.outside_packets))
        .num("twice", |side| counted(side.twice_packets))
        .num("joined", |side| counted(side.joined_segments))
        .done()
}
