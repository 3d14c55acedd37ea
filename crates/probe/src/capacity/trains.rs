//! Which trains to send, and what all of them together say. Time comes from the network, which is a
//! trait, so all of this runs in virtual time.
//!
//! Trains grow until one takes long enough that stamps do not matter, or is the longest allowed; that
//! length is repeated until the middle of their rates is known, or a longer one where some of it pass a
//! token bucket at once. After each there is a pause of several times its length, so that the path
//! carries others' traffic and its queue is empty for the next.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::results::capacity::{
    Doubt, RateEstimate, RateStatus, TrainBurst, TrainMethod, TrainResult,
};

use super::dispersion::{Arrival, Dispersion, Train, commonest, dispersion};
use crate::ping::strategy::{Event, Network};

const FIRST_PACKETS: u32 = 8;

/// A train that takes this long is long enough, whatever the stamps.
const ENOUGH_S: f64 = 0.02;

/// What the stamps of the first and the last packet may be off by together: interrupts are held back
/// for some tens of microseconds (ethtool -c: rx-usecs).
const STAMPS_OFF_S: f64 = 100e-6;

/// Trains of the final length: at least, and at most.
const LEAST_TRAINS: usize = 5;
const MOST_TRAINS: usize = 12;

/// Where the middle of the rates is known to this share, it is enough.
const SURE: f64 = 0.03;

/// A rate is given where both its bounds are within this share of it.
const TOLERANCE: f64 = 0.1;

/// Standard errors within which the middle is taken to lie.
const SIGMAS: f64 = 2.5;

/// Where packets arrive at this share of the rate they were sent at, or above, the sender was the
/// narrowest place as far as one can see.
const AS_SENT: f64 = 0.8;

/// Pairs are of use where this share of them agree; other traffic shows where they are this much faster
/// than the trains.
const PAIRS_AGREE: f64 = 0.5;
const PAIRS_FASTER: f64 = 1.15;

/// Losses that may be chance, as a share of the packets.
const FEW_LOST: f64 = 0.02;

/// Waits, ns: after a train at least; for the first answer of it; for another after the last.
const PAUSE_NS: u64 = 100_000_000;
const FIRST_ANSWER_NS: u64 = 2_000_000_000;
const NEXT_ANSWER_NS: u64 = 400_000_000;
/// Packets sent from one look at what came back to the next.
const TAKE_EVERY: u32 = 8;
/// The pause after a train, by its length.
const PAUSE_TIMES: f64 = 3.0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainsPlan {
    /// Whole IP packet, bytes.
    pub packet_bytes: u32,
    /// Packets of the longest train.
    pub longest_packets: u32,
    /// Bytes to send at most.
    pub bytes: u64,
    /// Time to take at most.
    pub time: Duration,
}

/// Sends trains until their rate is known; `None` where none came through.
///
/// # Errors
/// Errors of the local kernel.
pub(crate) fn trains(
    network: &mut dyn Network,
    plan: &TrainsPlan,
    method: TrainMethod,
    stop: &AtomicBool,
    show: &mut dyn FnMut(u32),
) -> io::Result<Option<TrainResult>> {
    let end_ns = network
        .now()
        .monotonic_ns
        .saturating_add(u64::try_from(plan.time.as_nanos()).unwrap_or(u64::MAX));
    let mut seen: Vec<(u32, Option<Dispersion>)> = Vec::new();
    let mut next_number = 0;
    let mut length = FIRST_PACKETS.min(plan.longest_packets);
    let (mut sent, mut received) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let bytes = (sent + u64::from(length)) * u64::from(plan.packet_bytes);
        if bytes > plan.bytes || network.now().monotonic_ns >= end_ns {
            break;
        }
        let train = send(network, &mut next_number, length, method)?;
        sent += u64::from(train.sent);
        received += train.arrivals.len() as u64;
        let found = dispersion(&train, plan.packet_bytes);
        let span_s = found.as_ref().map_or(0.0, |found| found.span_s);
        seen.push((length, found));
        show(u32::try_from(seen.len()).unwrap_or(u32::MAX));
        if seen.len() >= 2 && received == 0 {
            // The far end does not answer.
            break;
        }
        if span_s < ENOUGH_S {
            // Also one of a length that was enough before: a token bucket that filled up in the pause
            // lets pass what it had held back.
            length = (length * 2).min(plan.longest_packets);
        }
        let of_length = of_length(&seen, length);
        if of_length.len() >= MOST_TRAINS
            || of_length.len() >= LEAST_TRAINS
                && middle(&of_length).is_some_and(|(rate, error)| error <= SURE * rate)
        {
            break;
        }
        let pause_ns = PAUSE_NS.max((span_s * PAUSE_TIMES * 1e9) as u64);
        rest(network, pause_ns)?;
    }
    if received == 0 {
        return Ok(None);
    }
    let mut result = judge(&seen, plan.packet_bytes);
    result.method = method;
    (result.sent, result.received) = (sent, received);
    Ok(Some(result))
}

/// Sends one train and takes what comes back. Packets are numbered over all trains.
fn send(
    network: &mut dyn Network,
    next_number: &mut u32,
    length: u32,
    method: TrainMethod,
) -> io::Result<Train> {
    let first = *next_number;
    let mut sent = 0;
    let mut back = Back::default();
    for _ in 0..length {
        let number = *next_number;
        *next_number = number.wrapping_add(1);
        match network.send(number) {
            Ok(()) => sent += 1,
            // Our own queue is full: that is the end of this train.
            Err(error) if crate::path::retransmit::is_loss(&error) => break,
            Err(error) => return Err(error),
        }
        // Stamps and answers that are not read fill the socket, and the rest is dropped.
        if sent % TAKE_EVERY == 0 {
            let now_ns = network.now().monotonic_ns;
            while let Some(event) = network.receive(now_ns)? {
                back.take(&event, first, method);
            }
        }
    }
    let mut until_ns = network.now().monotonic_ns.saturating_add(FIRST_ANSWER_NS);
    while back.arrived.len() < sent as usize {
        match network.receive(until_ns)? {
            Some(event) if back.take(&event, first, method) => {
                until_ns = network.now().monotonic_ns.saturating_add(NEXT_ANSWER_NS);
            }
            Some(_) => {}
            None if network.now().monotonic_ns >= until_ns => break,
            None => {}
        }
    }
    let Back { arrived, departed } = back;
    let arrivals = arrived.into_iter().map(|(number, arrived_ns)| Arrival {
        number,
        departed_ns: departed.get(&first.wrapping_add(number)).copied(),
        arrived_ns,
    });
    Ok(Train {
        sent,
        arrivals: arrivals.collect(),
    })
}

/// What came back of a train, by number of the packet in it.
#[derive(Default)]
struct Back {
    arrived: BTreeMap<u32, i64>,
    departed: BTreeMap<u32, i64>,
}

impl Back {
    /// Takes what came; whether it is an answer to this train, whose first packet has that number.
    fn take(&mut self, event: &Event, first: u32, method: TrainMethod) -> bool {
        match *event {
            Event::Departed { sequence, ns } => {
                self.departed.insert(sequence, signed(ns));
                false
            }
            Event::Answered(answer) if answer.sequence >= first => {
                let at = match (method, answer.far_end) {
                    (TrainMethod::Native, Some(far)) => far.received_ns,
                    _ => signed(answer.kernel_ns.unwrap_or(answer.at.realtime_ns)),
                };
                let number = answer.sequence - first;
                self.arrived.entry(number).or_insert(at);
                true
            }
            _ => false,
        }
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Lets the time pass; what still comes in is late.
fn rest(network: &mut dyn Network, ns: u64) -> io::Result<()> {
    let until_ns = network.now().monotonic_ns.saturating_add(ns);
    while network.now().monotonic_ns < until_ns {
        network.receive(until_ns)?;
    }
    Ok(())
}

fn of_length(seen: &[(u32, Option<Dispersion>)], length: u32) -> Vec<&Dispersion> {
    let of_length = seen.iter().filter(|(of, _)| *of == length);
    of_length.filter_map(|(_, found)| found.as_ref()).collect()
}

/// The middle of the trains' rates and how far it is known, by their order and by the stamps.
fn middle(trains: &[&Dispersion]) -> Option<(f64, f64)> {
    let mut rates: Vec<f64> = trains.iter().map(|train| train.bps).collect();
    rates.sort_by(f64::total_cmp);
    let count = rates.len();
    let at = |place: f64| {
        let place = place.clamp(0.0, count.saturating_sub(1) as f64);
        let below = *rates.get(place.floor() as usize)?;
        let above = *rates.get(place.ceil() as usize)?;
        Some(below + (above - below) * place.fract())
    };
    let place = (count as f64 - 1.0) / 2.0;
    let spread = SIGMAS * (count as f64).sqrt() / 2.0;
    let rate = at(place)?;
    let by_order = (at(place + spread)? - at(place - spread)?) / 2.0;
    let off = |train: &&Dispersion| {
        let bunch_s = if train.bunched {
            train.longest_gap_s
        } else {
            0.0
        };
        (STAMPS_OFF_S + bunch_s) / train.span_s
    };
    let by_stamps = trains.iter().map(off).fold(0.0, f64::max) * rate;
    Some((rate, by_order.hypot(by_stamps)))
}

/// The result of all trains. Trains of the final length count, or else trains of the last length that gave a result.
fn judge(seen: &[(u32, Option<Dispersion>)], packet_bytes: u32) -> TrainResult {
    let told = seen.iter().rev().find(|(_, found)| found.is_some());
    let length = told.map_or(0, |(length, _)| *length);
    let counted = of_length(seen, length);
    let rates: Vec<f64> = counted.iter().map(|train| train.bps).collect();
    let mut sent: Vec<f64> = counted.iter().filter_map(|train| train.sent_bps).collect();
    sent.sort_by(f64::total_cmp);
    let sent_bps = plumb_model::distribution::quantile_of_sorted(&sent, 0.5);
    let pairs: Vec<f64> = counted
        .iter()
        .flat_map(|train| train.pairs_bps.iter().copied())
        .collect();
    let pair = commonest(&pairs, TOLERANCE);
    let mut rate = rate(&counted, sent_bps, pair, length);
    let burst = burst(seen, packet_bytes, rate.bps.or(rate.at_least_bps));
    if burst.is_some() {
        rate.doubts.push(Doubt::TokenBucket);
    }
    TrainResult {
        method: TrainMethod::Echo,
        rate,
        packet_bytes,
        longest_packets: seen.iter().map(|(length, _)| *length).max().unwrap_or(0),
        trains: u32::try_from(seen.len()).unwrap_or(u32::MAX),
        sent: 0,
        received: 0,
        sent_bps,
        train_bps: Distribution::of(rates),
        pair_bps: pair.map(|(bps, _)| bps),
        pair_ratio: pair.map(|(_, share)| share),
        burst,
    }
}

fn rate(
    counted: &[&Dispersion],
    sent_bps: Option<f64>,
    pair: Option<(f64, f64)>,
    length: u32,
) -> RateEstimate {
    let Some((rate, error)) = middle(counted) else {
        return RateEstimate {
            doubts: vec![Doubt::FewAnswers],
            ..RateEstimate::default()
        };
    };
    let mut doubts = Vec::new();
    let mut told = true;
    let (low, mut high) = ((rate - error).max(0.0), Some(rate + error));
    if counted.len() < LEAST_TRAINS {
        (told, high) = (false, None);
        doubts.push(Doubt::FewAnswers);
    }
    if counted.iter().filter(|train| train.bunched).count() * 2 > counted.len() {
        doubts.push(Doubt::Bunched);
    }
    // Whether the sender was faster than what arrived is the point of a train.
    if sent_bps.is_none_or(|sent| rate >= AS_SENT * sent) {
        (told, high) = (false, None);
        doubts.push(Doubt::Sender);
    }
    if error > TOLERANCE * rate {
        told = false;
        doubts.push(Doubt::Timing);
    }
    let lost: u32 = counted.iter().map(|train| train.lost).sum();
    let all = f64::from(length) * counted.len() as f64;
    let pairs = pair.filter(|(_, share)| *share >= PAIRS_AGREE);
    if f64::from(lost) > FEW_LOST * all {
        doubts.push(Doubt::Lost);
        // Where packets were lost before the narrowest place, trains arrive more slowly than it
        // carries; neighbours that both came through do not.
        let agree = pairs.is_some_and(|(bps, _)| (bps / rate - 1.0).abs() <= TOLERANCE);
        if !agree {
            (told, high) = (false, None);
        }
    }
    if let Some((bps, _)) = pairs
        && bps > PAIRS_FASTER * rate
        && !doubts.contains(&Doubt::Bunched)
    {
        told = false;
        high = high.map(|_| bps * (1.0 + TOLERANCE));
        doubts.push(Doubt::CrossTraffic);
    }
    RateEstimate {
        status: match (told, low > 0.0 || high.is_some()) {
            (true, _) => RateStatus::Measured,
            (false, true) => RateStatus::Bounded,
            (false, false) => RateStatus::Unknown,
        },
        bps: told.then_some(rate),
        at_least_bps: (low > 0.0).then_some(low),
        at_most_bps: high,
        doubts,
    }
}

/// The token bucket that trains saw: where they became slower and settled at about the rate that was
/// found.
fn burst(
    seen: &[(u32, Option<Dispersion>)],
    packet_bytes: u32,
    rate: Option<f64>,
) -> Option<TrainBurst> {
    /// What the rate afterwards and the rate found may differ by.
    const LIKE: f64 = 0.25;
    let rate = rate?;
    let knees = seen.iter().filter_map(|(_, found)| found.as_ref()?.knee);
    let largest = knees
        .filter(|knee| (knee.later_bps / rate - 1.0).abs() <= LIKE)
        .max_by_key(|knee| knee.packets)?;
    let spent = f64::from(largest.packets) * f64::from(packet_bytes);
    Some(TrainBurst {
        first_bps: largest.first_bps,
        later_bps: largest.later_bps,
        // Meanwhile the bucket was filled at the later rate.
        bucket_bytes: spent * (1.0 - largest.later_bps / largest.first_bps),
    })
}
