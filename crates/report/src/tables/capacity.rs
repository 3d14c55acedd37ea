//! What the lines of a path could carry.

use plumb_model::results::capacity::{
    CapacityHop, Doubt, RateEstimate, RateStatus, TrainMethod, TrainResult,
};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{ABSENT, bytes, percent, rate, seconds};
use crate::view;

/// Bounds further apart than this say little together; the lower one is told.
const WIDE: f64 = 4.0;

/// Every line.
pub(super) fn lines(run: &Run) -> Table {
    let mut table = Table::new(
        "What each line carries, by single packets (IP; the line before the hop)",
        &[
            ("hop", Number),
            ("", Text),
            ("carries", Number),
            ("known to", Number),
            ("back", Number),
            ("latency", Number),
            ("queueing", Number),
            ("answered", Number),
            ("", Text),
        ],
    );
    let mut notes: Vec<String> = Vec::new();
    for (_, capacity) in view::capacities(run) {
        for hop in &capacity.hops {
            table.row(row(hop, capacity.narrowest_ttl == Some(hop.ttl)));
            for doubt in &hop.rate.doubts {
                let text = explained(*doubt);
                if !notes.iter().any(|note| note == text) {
                    notes.push(text.to_owned());
                }
            }
        }
        if let (Some(pipe), Some(rtt)) = (capacity.pipe_bytes, capacity.rtt_s) {
            notes.push(format!(
                "Without queueing, {} there and back: at its narrowest line the path holds {}.",
                seconds(rtt),
                bytes(pipe)
            ));
        }
    }
    table.note = (!notes.is_empty()).then(|| notes.join(" "));
    table
}

fn row(hop: &CapacityHop, narrowest: bool) -> [String; 9] {
    let optional = |value: Option<f64>| value.map_or_else(String::new, seconds);
    let mut remarks = remarks(&hop.rate);
    if narrowest {
        remarks.insert(0, "the narrowest");
    }
    [
        hop.ttl.to_string(),
        hop.address.clone().unwrap_or_else(|| "*".to_owned()),
        estimate(&hop.rate),
        bounds(&hop.rate),
        hop.back_rate
            .as_ref()
            .filter(|back| back.bps.is_some())
            .map_or_else(String::new, estimate),
        hop.latency_s
            .zip(hop.latency_error_s)
            .map_or_else(String::new, |(value, error)| {
                // Less than its error is not told apart from nothing.
                if value < error {
                    format!("< {}", seconds(value + error))
                } else {
                    seconds(value)
                }
            }),
        optional(hop.line_queueing_s),
        if hop.sent == 0 {
            String::new()
        } else {
            percent(hop.received as f64 / hop.sent as f64)
        },
        remarks.join("; "),
    ]
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
        other => short(*other),
    };
    rate.doubts.iter().map(short).collect()
}

fn short(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Timing => "faster than the timing tells",
        Doubt::FewAnswers => "too few answers",
        Doubt::SeveralLines => "several lines in one",
        Doubt::BothWays => "both ways in one",
        Doubt::Contradiction => "cannot tell",
        Doubt::Sender => "this host sends no faster",
        Doubt::Bunched => "stamps in bunches",
        Doubt::CrossTraffic => "other traffic",
        Doubt::TokenBucket => "token bucket",
        Doubt::Lost => "packets lost",
    }
}

fn explained(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Timing => {
            "Where what a line takes is not told apart from noise, and from what hosts take themselves, bounds are given and \
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
            "Both ways in one: answers are as large as the probes, so the line carries at least this, and twice as much if \
             both ways are alike."
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
             longer than a bunch tell."
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

/// What trains say.
pub(super) fn trains(run: &Run) -> Table {
    let mut table = Table::new(
        "The narrowest place, by trains of packets",
        &[
            ("", Text),
            ("carries", Number),
            ("known to", Number),
            ("trains", Number),
            ("p5", Number),
            ("p95", Number),
            ("sent at", Number),
            ("lost", Number),
            ("", Text),
        ],
    );
    let mut notes = Vec::new();
    for train in view::capacities(run).filter_map(|(_, capacity)| capacity.train.as_ref()) {
        let optional = |value: Option<f64>| value.map_or_else(String::new, rate);
        let doubts = train.rate.doubts.iter();
        let (remarks, reasons): (Vec<_>, Vec<_>) = doubts.map(|doubt| of_train(*doubt)).unzip();
        table.row([
            match train.method {
                TrainMethod::Native => "the way there",
                TrainMethod::Echo => "the narrower of both ways",
            }
            .to_owned(),
            estimate(&train.rate),
            bounds(&train.rate),
            format!("{} × ≤ {}", train.trains, train.longest_packets),
            optional(train.train_bps.map(|spread| spread.p5)),
            optional(train.train_bps.map(|spread| spread.p95)),
            optional(train.sent_bps),
            percent(1.0 - train.received as f64 / train.sent.max(1) as f64),
            remarks.join("; "),
        ]);
        notes.extend(reasons.into_iter().map(str::to_owned));
        notes.extend(bucket(train));
    }
    table.note = (!notes.is_empty()).then(|| notes.join(" "));
    table
}

/// A doubt about trains, in short and at length.
fn of_train(doubt: Doubt) -> (&'static str, &'static str) {
    match doubt {
        Doubt::Timing => (
            "rates vary",
            "The rates of the trains vary too much for one to be told.",
        ),
        Doubt::FewAnswers => ("too few trains", "Too few trains came through."),
        other => (short(other), explained(other)),
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
