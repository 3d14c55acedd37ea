//! What the lines of a path could carry.

use plumb_model::context::Phase;
use plumb_model::results::capacity::{
    CapacityHop, CapacityResult, Doubt, RateEstimate, RateStatus, TrainMethod, TrainResult,
};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::map::{Map, note};
use crate::number::{ABSENT, bytes, percent, rate, seconds};
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{Table, blank};

/// Bounds further apart than this factor say little together; only the lower one is shown.
const WIDE: f64 = 4.0;

impl Show for CapacityResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        let trains: Vec<_> = all.iter().filter_map(|c| c.train.as_ref()).collect();
        tables.add(Place::Capacity, [lines(&all), self::trains(&trains)]);
    }

    /// The narrowest line, by trains where they show it and else by single packets.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let sentence = |capacity: &Self| {
            let of_train = capacity.train.as_ref().map(|train| estimate(&train.rate));
            let narrowest = capacity.narrowest_ttl;
            let of_line = capacity.hops.iter().find(|hop| narrowest == Some(hop.ttl));
            let line = of_line
                .map(|hop| format!(" (the line before hop {})", hop.ttl))
                .unwrap_or_default();
            let rate = of_train
                .filter(|rate| rate != ABSENT)
                .or_else(|| of_line.map(|hop| estimate(&hop.rate)))?;
            Some(format!("The narrowest line carries {rate}{line}."))
        };
        results::<Self>(run).filter_map(sentence).collect()
    }

    fn on_map(&self, map: &mut Map) {
        for hop in &self.hops {
            let on_map = map.hop(hop.ttl);
            on_map.is(hop.address.as_deref(), None);
            let rate = Some(estimate(&hop.rate)).filter(|rate| rate != ABSENT);
            note(
                &mut on_map.line,
                rate.map(|rate| format!("a line of {rate}")),
            );
        }
    }

    fn bears(&self) -> Ends {
        Ends::CLOCK_SOURCE
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let narrowest = self.train.as_ref().and_then(|t| t.rate.bps);
        Quantities::of(phase, "narrowest line".to_owned())
            .number("bps", ChangeUnit::Bps, narrowest)
            .found
    }
}

fn lines(all: &[&CapacityResult]) -> Table {
    let hops = all.iter().flat_map(|capacity| {
        let narrowest = capacity.narrowest_ttl;
        let hops = capacity.hops.iter();
        hops.map(move |hop| (hop, narrowest == Some(hop.ttl)))
    });
    let mut notes: Vec<String> = Vec::new();
    for capacity in all {
        let doubts = capacity.hops.iter().flat_map(|hop| &hop.rate.doubts);
        for text in doubts.map(|doubt| explained(*doubt)) {
            if !notes.iter().any(|note| note == text) {
                notes.push(text.to_owned());
            }
        }
        if let (Some(pipe), Some(rtt)) = (capacity.pipe_bytes, capacity.rtt_s) {
            notes.push(format!(
                "Without queueing a round trip takes {}: {} fill the path at the rate of its narrowest line.",
                seconds(rtt),
                bytes(pipe)
            ));
        }
    }
    Table::of(
        "What each line carries, by single packets (IP; the line before the hop)",
        hops,
    )
    .num("hop", |(hop, _)| hop.ttl)
    .text("", |(hop, _)| hop.address.as_deref().unwrap_or("*"))
    .num("carries", |(hop, _)| estimate(&hop.rate))
    .num("known to", |(hop, _)| bounds(&hop.rate))
    .num("back", |(hop, _)| {
        let back = hop.back_rate.as_ref().filter(|back| back.bps.is_some());
        blank(back.map(estimate))
    })
    .num("latency", |(hop, _)| latency(hop))
    .num("queueing", |(hop, _)| {
        blank(hop.line_queueing_s.map(seconds))
    })
    .num("answered", |(hop, _)| {
        let ratio = hop.received as f64 / hop.sent as f64;
        blank((hop.sent > 0).then(|| percent(ratio)))
    })
    .text("", |(hop, narrowest)| {
        let mut remarks = remarks(&hop.rate);
        if *narrowest {
            remarks.insert(0, "the narrowest");
        }
        remarks.join("; ")
    })
    .noting(notes)
}

/// What a line adds to the delay. A value below its error cannot be distinguished from zero.
fn latency(hop: &CapacityHop) -> String {
    /// Less than a clock shows, in seconds.
    const LEAST_S: f64 = 1e-6;
    let known = hop.latency_s.zip(hop.latency_error_s);
    blank(known.map(|(value, error)| {
        if value < error {
            format!("< {}", seconds((value + error).max(LEAST_S)))
        } else {
            seconds(value)
        }
    }))
}

/// The rate where it is measured, what bounds it where they are near, or what it is at least.
fn estimate(estimate: &RateEstimate) -> String {
    match (estimate.bps, estimate.at_least_bps, estimate.at_most_bps) {
        (Some(bps), _, _) => rate(bps),
        (None, Some(low), Some(high)) if high <= WIDE * low => range(&rate(low), &rate(high)),
        (None, Some(low), _) => format!("≥ {}", rate(low)),
        (None, None, Some(high)) => format!("≤ {}", rate(high)),
        (None, None, None) => ABSENT.to_owned(),
    }
}

/// Two numbers with their unit, which is written once where it is the same.
fn range(low: &str, high: &str) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// How far a measured rate is known.
fn bounds(estimate: &RateEstimate) -> String {
    match (estimate.bps, estimate.at_least_bps, estimate.at_most_bps) {
        (Some(bps), Some(low), Some(high)) if bps > 0.0 => {
            format!(
                "−{} +{}",
                percent(1.0 - low / bps),
                percent(high / bps - 1.0)
            )
        }
        _ => String::new(),
    }
}

fn remarks(rate: &RateEstimate) -> Vec<&'static str> {
    let short = |doubt: &Doubt| match doubt {
        Doubt::Timing if rate.at_most_bps.is_some() => "not known closely",
        other => other.shown(),
    };
    rate.doubts.iter().map(short).collect()
}

fn explained(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Timing => {
            "Where what a line takes cannot be distinguished from noise, and from what hosts take themselves, bounds are given and \
             no rate."
        }
        Doubt::FewAnswers => {
            "Where hops answer too seldom, or not at all, nothing is known of the line before them."
        }
        Doubt::SeveralLines => {
            "Several lines in one: hops between do not answer, and each of the lines carries at least what they carry one \
             after the other."
        }
        Doubt::BothWays => {
            "Both directions in one: answers are as large as the probes, so the line carries at least this, and twice as much if \
             both directions are alike."
        }
        Doubt::Contradiction => {
            "Cannot tell: large packets seem to get to this hop sooner than to the one before it, so routers answer in \
             different ways."
        }
        Doubt::Sender => {
            "Packets arrived about as fast as this host sends them: the path carries at least that."
        }
        Doubt::Bunched => {
            "Packets arrived in bunches, as where a network card gathers interrupts or Wi-Fi gathers frames: only trains much \
             longer than a bunch show it."
        }
        Doubt::CrossTraffic => {
            "Neighbouring packets arrived faster than whole trains: other traffic came between, or the line is shared."
        }
        Doubt::TokenBucket => {
            "The beginning of trains passed faster: a token bucket, behind which the lower rate is what lasts."
        }
        Doubt::Lost => "Packets of the trains were lost, as in a queue too short for them.",
    }
}

fn trains(all: &[&TrainResult]) -> Table {
    let mut notes = Vec::new();
    for train in all {
        let doubts = train.rate.doubts.iter();
        notes.extend(doubts.map(|doubt| of_train(*doubt).1.to_owned()));
        notes.extend(bucket(train));
    }
    Table::of("The narrowest line, by trains of packets", all)
        .text("", |train| match train.method {
            TrainMethod::Native => "forward path",
            TrainMethod::Echo => "the narrower direction",
        })
        .num("carries", |train| estimate(&train.rate))
        .num("known to", |train| bounds(&train.rate))
        .num("trains", |train| {
            format!("{} × ≤ {}", train.trains, train.longest_packets)
        })
        .num("p5", |train| blank(train.train_bps.map(|d| rate(d.p5))))
        .num("p95", |train| blank(train.train_bps.map(|d| rate(d.p95))))
        .num("sent at", |train| blank(train.sent_bps.map(rate)))
        .num("lost", |train| {
            percent(1.0 - train.received as f64 / train.sent.max(1) as f64)
        })
        .text("", |train| {
            let doubts = train.rate.doubts.iter();
            let remarks: Vec<_> = doubts.map(|doubt| of_train(*doubt).0).collect();
            remarks.join("; ")
        })
        .noting(notes)
}

/// A doubt about trains, in short and at length.
fn of_train(doubt: Doubt) -> (&'static str, &'static str) {
    match doubt {
        Doubt::Timing => (
            "rates vary",
            "The rates of the trains vary too much to name one.",
        ),
        Doubt::FewAnswers => ("too few trains", "Too few trains came through."),
        other => (other.shown(), explained(other)),
    }
}

/// What is known of a token bucket, or how large one might be unseen.
fn bucket(train: &TrainResult) -> Option<String> {
    match train.burst {
        Some(burst) => Some(format!(
            "At least {} passed at {} before the rate fell to {}.",
            bytes(burst.bucket_bytes),
            rate(burst.first_bps),
            rate(burst.later_bps)
        )),
        None if train.rate.status == RateStatus::Unknown => None,
        None => Some(format!(
            "A token bucket of more than {} would not have shown (--train).",
            bytes(f64::from(train.longest_packets) * f64::from(train.packet_bytes))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_latency_is_below_nothing() {
        let text = include_str!("../../tests/it/runs/every-kind.json");
        let run = Run::from_json(text).unwrap_or_else(|error| panic!("{error}"));
        let hops = results::<CapacityResult>(&run).flat_map(|capacity| &capacity.hops);
        let latencies = hops.map(|hop| {
            let mut hop = hop.clone();
            (hop.latency_s, hop.latency_error_s) = (Some(-2e-7), Some(3e-7));
            latency(&hop)
        });
        let latencies: Vec<String> = latencies.collect();
        assert!(!latencies.is_empty());
        assert!(
            latencies.iter().all(|text| text == "< 1 µs"),
            "{latencies:?}"
        );
    }
}
