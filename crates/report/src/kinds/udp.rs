//! What became of the datagrams of UDP streams.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::results::udp::{UdpReceiver, UdpResult};
use plumb_model::run::Run;

use crate::carried::{Carried, CarriedBy, Datagrams};
use crate::compare::quantity::{ChangeUnit, DELAY, Quantities, Quantity};
use crate::number;
use crate::phase::flow;
use crate::registry::{all, results};
use crate::show::{Place, Show, Tables, Trace};
use crate::table::{Table, counted};

impl Show for UdpResult {
    fn carried(&self) -> Option<Carried<'_>> {
        let receiver = self.receiver.as_ref();
        let jitter = receiver.and_then(|receiver| receiver.jitter_s.as_ref());
        Some(Carried {
            direction: self.direction,
            cpu: &self.cpu,
            by: CarriedBy::Udp(Datagrams {
                payload_bytes: self.payload_bytes,
                asked_bps: self.asked_bps,
                sent: self.sender.as_ref().map_or(0, |sender| sender.sent),
                received_bytes: receiver.map_or(0, |receiver| receiver.received_bytes),
                lost: receiver.map_or(0, |receiver| receiver.lost),
                reordered: receiver.map_or(0, |receiver| receiver.reordering.reordered),
                jitter_s: jitter.map_or(0.0, |jitter| jitter.mean),
            }),
        })
    }

    fn tables(&self, run: &Run, tables: &mut Tables) {
        let rows = names(run).into_iter().zip(results::<Self>(run));
        let rows: Vec<Row<'_>> = rows.collect();
        tables.add(Place::Datagrams, [short(&rows)]);
        tables.detail(
            Place::Datagrams,
            [packets(&rows), delays(&rows), order(&rows)],
        );
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let receiver = self.receiver.as_ref();
        let delay = self.one_way_delay.as_ref().map(|delay| &delay.delay_s);
        let pdv = receiver.and_then(|r| r.pdv_s.as_ref());
        let jitter = receiver.and_then(|r| r.jitter_s.as_ref());
        Quantities::of(phase, role(self))
            .direction(self.direction)
            .asked_rate(self.bps)
            .number(
                "loss_ratio",
                ChangeUnit::Ratio,
                receiver.map(|r| r.loss_ratio),
            )
            .number("jitter_s.mean", ChangeUnit::S, jitter.map(|d| d.mean))
            .number("pdv_s.p95", ChangeUnit::S, pdv.map(|d| d.p95))
            .time(DELAY, delay)
            .found
    }

    fn trace(&self, series: &str) -> Option<Trace> {
        match series {
            "bps" => Some(Trace::Rate(self.direction)),
            "loss_ratio" => Some(Trace::Loss(self.direction)),
            "pdv_s" => Some(Trace::Delay(self.direction)),
            _ => None,
        }
    }

    fn asked(&self) -> Option<String> {
        Some(format!(
            "UDP {} of {} bytes, {}",
            self.direction.name(),
            self.payload_bytes,
            self.asked_bps
                .map_or_else(|| "as fast as it goes".to_owned(), number::rate),
        ))
    }

    fn ended_early(&self, _phase: Phase) -> Vec<String> {
        let flow = flow(self.direction);
        let error = self.error.iter();
        error
            .map(|error| format!("{flow}, UDP stream {} ended early: {error}", self.stream))
            .collect()
    }
}

/// What a comparison matches a stream by: what was asked of it decides what becomes of its datagrams.
fn role(udp: &UdpResult) -> String {
    let asked = udp.asked_bps.map(number::rate);
    let asked = asked.map_or_else(String::new, |rate| format!(" of {rate}"));
    format!("udp stream {}{asked}", udp.stream)
}

/// The name of the row of each stream: what flowed, the stream where there are several, and what was asked of it where another
/// flowed alike.
fn names(run: &Run) -> Vec<String> {
    let several = results::<UdpResult>(run).any(|udp| udp.stream > 0);
    let plain: Vec<String> = all::<UdpResult>(run)
        .map(|found| {
            let flow = found.flow(found.result.direction);
            match several {
                true => format!("{flow} {}", found.result.stream),
                false => flow,
            }
        })
        .collect();
    let is_alone = |name: &String| plain.iter().filter(|other| *other == name).count() == 1;
    let name = |(name, udp): (&String, &UdpResult)| {
        let asked = udp.asked_bps.filter(|_| !is_alone(name));
        asked.map_or_else(
            || name.clone(),
            |asked| format!("{name} {}", number::rate(asked)),
        )
    };
    plain
        .iter()
        .zip(results::<UdpResult>(run))
        .map(name)
        .collect()
}

/// A stream with the name of its row.
type Row<'a> = (String, &'a UdpResult);

/// What came of what was sent, for everybody.
fn short(rows: &[Row<'_>]) -> Table {
    Table::of("UDP", rows)
        .text("", |(name, _)| name.clone())
        .num("asked", |(_, udp)| {
            udp.asked_bps.map_or_else(|| "max".to_owned(), number::rate)
        })
        .num("received", |(_, udp)| udp.bps.map(number::rate))
        .num("not sent in time", |(_, udp)| {
            let sender = udp.sender.as_ref();
            counted(sender.map_or(0, |s| s.missed.saturating_add(s.refused)))
        })
        .num("lost", |(_, udp)| {
            let receiver = udp.receiver.as_ref();
            receiver.map(|r| number::percent(r.path_loss_ratio()))
        })
        .num("reordered", |(_, udp)| {
            udp.receiver.as_ref().map(|r| r.reordering.reordered)
        })
        .num("jitter", |(_, udp)| {
            let receiver = udp.receiver.as_ref();
            at(
                receiver.and_then(|r| r.jitter_s),
                |d| d.mean,
                number::seconds,
            )
        })
        .noting(drained(rows))
}

/// From so much longer than they were sent on, that is said of when datagrams came, as a share.
const LONGER_RATIO: f64 = 0.05;

/// Over which times the rate and the loss of an overfull line are counted: what waits in a queue comes after the last was sent.
fn drained(rows: &[Row<'_>]) -> Vec<String> {
    let longer = |(name, udp): &Row<'_>| {
        let (sender, receiver) = udp.sender.as_ref().zip(udp.receiver.as_ref())?;
        let sent_s = sender.sent_bytes as f64 * 8.0 / udp.asked_bps?;
        let came_s = receiver.received_bytes as f64 * 8.0 / udp.bps.filter(|bps| *bps > 0.0)?;
        (came_s > (1.0 + LONGER_RATIO) * sent_s).then(|| {
            format!(
                "{name}: what was sent in {} came in {}, because a queue held it. 'received' is the rate while it came, 'lost' the share of all that was sent.",
                number::seconds(sent_s),
                number::seconds(came_s)
            )
        })
    };
    rows.iter().filter_map(longer).collect()
}

/// What was sent and what came.
fn packets(rows: &[Row<'_>]) -> Table {
    const NOTE: &str = "Payload; lost: packets sent and never received, of them 'here' dropped by the receiving socket (≤: at most, where it took trains); loss: the others, lost or corrupted on the path; late: departures against the schedule; missed: left out because the sender was late.";
    Table::of("UDP packets", rows)
        .text("", |(name, _)| name.clone())
        .num("received", |(_, udp)| udp.bps.map(number::rate))
        .num("asked", |(_, udp)| {
            udp.asked_bps.map_or_else(|| "max".to_owned(), number::rate)
        })
        .num("packets", |(_, udp)| udp.sender.as_ref().map(|s| s.sent))
        .num("lost", |(_, udp)| udp.receiver.as_ref().map(|r| r.lost))
        .num("loss", |(_, udp)| {
            let receiver = udp.receiver.as_ref();
            receiver.map(|r| number::percent(r.path_loss_ratio()))
        })
        .num("here", |(_, udp)| {
            udp.receiver.as_ref().map(|r| here(udp, r))
        })
        .num("dup", |(_, udp)| {
            udp.receiver.as_ref().map(|r| r.duplicates)
        })
        .num("reordered", |(_, udp)| {
            udp.receiver.as_ref().map(|r| r.reordering.reordered)
        })
        .num("CE", |(_, udp)| udp.receiver.as_ref().map(|r| r.ecn.ce))
        .num("late p99", |(_, udp)| {
            let lateness = udp.sender.as_ref().and_then(|s| s.lateness_s);
            lateness.map(|d| number::seconds(d.p99))
        })
        .num("missed", |(_, udp)| {
            udp.sender
                .as_ref()
                .map(|s| s.missed.saturating_add(s.refused))
        })
        .text("trains", |(_, udp)| trains(udp))
        .noted(NOTE)
}

/// Packets that the receiving socket dropped; of trains, as many as they can have been.
fn here(udp: &UdpResult, receiver: &UdpReceiver) -> String {
    let packets = receiver.lost_here();
    let bound = if udp.gro && packets > 0 { "≤ " } else { "" };
    format!("{bound}{packets}")
}

fn trains(udp: &UdpResult) -> String {
    match (udp.gso_segments, udp.gro) {
        (0 | 1, false) => String::new(),
        (0 | 1, true) => "GRO".to_owned(),
        (segments, gro) => format!("GSO {segments}{}", if gro { ", GRO" } else { "" }),
    }
}

/// A value of a distribution, where there is one.
fn at(
    distribution: Option<Distribution>,
    get: fn(&Distribution) -> f64,
    show: fn(f64) -> String,
) -> Option<String> {
    distribution.map(|d| show(get(&d)))
}

/// How long packets took, and by how much that varied.
fn delays(rows: &[Row<'_>]) -> Table {
    let rows = rows.iter().filter_map(|(name, udp)| {
        let receiver = udp.receiver.as_ref().filter(|r| r.pdv_s.is_some())?;
        Some((name, udp.one_way_delay, receiver))
    });
    const NOTE: &str = "Jitter: RFC 3550, mean. IPDV: against the packet sent before; PDV: against the smallest delay (RFC 5481).";
    Table::of("UDP delay and its variation", rows)
        .text("", |(name, ..)| (*name).clone())
        .num("one way p50", |(_, delay, _)| {
            at(delay.map(|d| d.delay_s), |d| d.p50, number::seconds)
        })
        .num("p99", |(_, delay, _)| {
            at(delay.map(|d| d.delay_s), |d| d.p99, number::seconds)
        })
        .num("known to", |(_, delay, _)| {
            delay.map(|d| format!("±{}", number::seconds(d.uncertainty_s)))
        })
        .num("jitter", |(.., r)| {
            at(r.jitter_s, |d| d.mean, number::seconds)
        })
        .num("IPDV p99", |(.., r)| {
            at(r.ipdv_s, |d| d.p99, number::seconds)
        })
        .num("PDV p50", |(.., r)| at(r.pdv_s, |d| d.p50, number::seconds))
        .num("PDV p99", |(.., r)| at(r.pdv_s, |d| d.p99, number::seconds))
        .num("PDV max", |(.., r)| at(r.pdv_s, |d| d.max, number::seconds))
        .noted(NOTE)
}

/// How losses and overtaking follow each other, where there were any.
fn order(rows: &[Row<'_>]) -> Table {
    let rows = rows.iter().filter_map(|(name, udp)| {
        let any = |r: &&UdpReceiver| r.lost > 0 || r.reordering.reordered > 0;
        Some((name, udp.receiver.as_ref().filter(any)?))
    });
    Table::of("UDP losses and reordering", rows)
        .text("", |(name, _)| (*name).clone())
        .num("loss periods", |(_, r)| r.losses.periods)
        .num("mean length", |(_, r)| {
            at(r.losses.period_length, |d| d.mean, number::plain)
        })
        .num("longest", |(_, r)| {
            at(r.losses.period_length, |d| d.max, number::plain)
        })
        .num("median distance", |(_, r)| {
            at(r.losses.distance, |d| d.p50, number::plain)
        })
        .num("reordered", |(_, r)| {
            number::percent(r.reordering.reordered_ratio)
        })
        .num("extent p50", |(_, r)| {
            at(r.reordering.extent, |d| d.p50, number::plain)
        })
        .num("extent max", |(_, r)| {
            at(r.reordering.extent, |d| d.max, number::plain)
        })
        .num("late by max", |(_, r)| {
            at(r.reordering.late_s, |d| d.max, number::seconds)
        })
        .noted(
            "Loss periods and distances: RFC 3357; reordering and its extent in packets: RFC 4737.",
        )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stream(received_bytes: u64, bps: f64) -> UdpResult {
        let text = include_str!("../../tests/it/runs/every-kind.json");
        let run = Run::from_json(text).unwrap();
        let mut udp = results::<UdpResult>(&run).next().unwrap().clone();
        udp.asked_bps = Some(50e6);
        udp.bps = Some(bps);
        udp.sender.as_mut().unwrap().sent_bytes = 12_500_000;
        udp.receiver.as_mut().unwrap().received_bytes = received_bytes;
        udp
    }

    #[test]
    fn times_are_named_where_a_queue_holds_what_was_sent() {
        // 50 Mbit/s for 2 s into a line of 19.3, whose queue empties for half a second more.
        let full = stream(6_000_000, 19.3e6);
        let notes = drained(&[("upload".to_owned(), &full)]);
        assert_eq!(
            notes,
            [
                "upload: what was sent in 2.00 s came in 2.49 s, because a queue held it. 'received' is the rate while it came, 'lost' the share of all that was sent."
            ]
        );
        let open = stream(12_400_000, 49.6e6);
        assert!(drained(&[("upload".to_owned(), &open)]).is_empty());
    }
}
