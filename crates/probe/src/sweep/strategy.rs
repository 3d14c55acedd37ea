//! Whom to probe when, and what the answers mean for the counts of each target. The network, and
//! with it the clock, is a trait, so all of this runs in virtual time.
//!
//! What is kept of a target is [`Tally`], whatever the number of probes; what is kept of a probe lives
//! as long as its timeout.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::results::TimestampSource;
use plumb_model::summary::Summary;
use plumb_net::datagram::{Failure, Reporter};
use plumb_net::udp_counters::Drops;

use super::network::{Lower, ManyEvent, ManyNetwork, Sending};
use super::plan::ManyPlan;
use super::tally::Tally;
use crate::ping::sample::{Answer, Exchange, Moment, Record, Said};

/// Probes handed to the kernel at once at most: at 100,000 a second a third of a millisecond's.
const BATCH: usize = 32;

/// How often the request to stop and the timeouts are looked at while nothing else happens.
const CHECK_NS: u64 = 100_000_000;

/// How late probes may be and still be caught up with, faster than the rate: what a scheduler's
/// delay costs. Beyond it the schedule moves, so that a pause does not become a burst.
const CATCH_UP_NS: u64 = 5_000_000;

/// How long to wait where the kernel has no room for a packet just now.
const NO_ROOM_NS: u64 = 500_000;

/// Failures of receiving, one after the other, before probing ends.
const MAX_FAILURES: u32 = 16;

/// The outcome of a probe, reported once it is known. Targets are numbered from 0 as in the plan.
#[derive(Debug, Clone, PartialEq)]
pub enum ManySeen {
    /// A probe was answered in time.
    Answered {
        target: u32,
        /// Round of the probe, from 0.
        round: u64,
        rtt: Duration,
        /// Payload of the answer.
        size_bytes: usize,
        /// The hop limit of the answer.
        hop_limit: Option<u8>,
        /// What it was, where the protocol has several.
        said: Option<Said>,
        /// When the answer was in hand, ns of CLOCK_REALTIME.
        at_ns: u64,
        /// The times at both ends; absent where the far end reports none.
        exchange: Option<Exchange>,
    },
    /// Another answer to the same probe.
    Again {
        target: u32,
        /// Round of the probe.
        round: u64,
    },
    /// No answer came within the timeout.
    Lost {
        target: u32,
        /// Round of the probe.
        round: u64,
        /// When it was sent, ns of CLOCK_REALTIME.
        sent_ns: u64,
    },
    /// An ICMP error came back, a connection failed, or our own machine did not send.
    Failed {
        target: u32,
        why: String,
        /// The ICMP error, where it was one.
        failure: Option<Failure>,
    },
}

/// What remains of a probing.
#[derive(Debug)]
pub struct ManyLog {
    /// Each target, as in the plan.
    pub tallies: Vec<Tally>,
    /// Round trips of all targets together.
    pub rtt_s: Option<Distribution>,
    /// How late probes left against the schedule, which moves where the machine does not keep up.
    pub lateness_s: Option<Distribution>,
    /// What the answers were, by how often, where the protocol has several.
    pub answers: BTreeMap<String, u64>,
    /// Answers from an address that was not asked.
    pub strays: u64,
    /// Answers that our own sockets dropped.
    pub drops: Drops,
    /// Whose clock stamped the round trips.
    pub timestamps: TimestampSource,
    /// The start, on CLOCK_MONOTONIC.
    pub started_monotonic_ns: u64,
    /// From the start until the last probe was sent.
    pub sending_s: f64,
    /// From the start until nothing more was waited for.
    pub duration_s: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

/// A probe whose timeout has not passed.
#[derive(Debug, Clone, Copy)]
struct Flight {
    sent: Moment,
    departed_ns: Option<u64>,
    /// Answered, or never sent.
    settled: bool,
    refused: bool,
}

struct Prober<'a> {
    plan: &'a ManyPlan,
    stamped: bool,
    gap_ns: f64,
    period_ns: f64,
    /// When the schedule begins; it moves when we do not keep up.
    start_ns: u64,
    /// Nothing is sent any more from then on.
    until_ns: u64,
    started_ns: u64,
    timeout_ns: u64,
    to_send: u64,
    next: u64,
    /// The probes from number `base` on.
    flights: VecDeque<Flight>,
    base: u64,
    outstanding: u64,
    last_sent_ns: u64,
    tallies: Vec<Tally>,
    rtts: Summary,
    lateness: Summary,
    user_stamps: u64,
    answers: BTreeMap<Said, u64>,
    strays: u64,
    drops: Drops,
    notes: Vec<String>,
}

/// Probes by the plan until
/// 1. all its probes have been sent, or `stop` is set, and
/// 2. every probe sent has been answered, or the timeout has passed since the last was sent.
pub(super) fn run(
    network: &mut dyn ManyNetwork,
    plan: &ManyPlan,
    stop: &AtomicBool,
    mut tell: impl FnMut(&dyn Fn() -> ManySeen),
) -> ManyLog {
    let mut prober = Prober::new(plan, network.now(), network.stamps_departures());
    let mut due = Vec::with_capacity(BATCH);
    let mut events = Vec::new();
    let mut failures = 0;
    loop {
        let now_ns = network.now().monotonic_ns;
        if stop.load(Ordering::Relaxed) || now_ns >= prober.until_ns {
            prober.to_send = prober.next;
        }
        prober.due(now_ns, &mut due);
        let mut no_room_until = None;
        if !due.is_empty() {
            let sending = network.send(&due);
            let no_room = sending
                .error
                .as_ref()
                .is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            if no_room {
                no_room_until = Some(now_ns + NO_ROOM_NS);
            } else {
                prober.sent(&due, sending, &mut tell);
            }
        }
        match network.receive(&mut events) {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                prober.note(format!("receiving failed: {error}"));
                if failures >= MAX_FAILURES {
                    prober.note("probing ended early, because receiving kept failing".to_owned());
                    break;
                }
            }
        }
        let idle = events.is_empty();
        for event in events.drain(..) {
            prober.take(event, &mut tell);
        }
        let now_ns = network.now().monotonic_ns;
        prober.expire(now_ns, &mut tell);
        if prober.finished() {
            break;
        }
        let wake = no_room_until.unwrap_or_else(|| prober.wake(now_ns));
        if idle
            && wake > now_ns
            && let Err(error) = network.wait(wake)
        {
            prober.note(format!(
                "probing ended early, because waiting failed: {error}"
            ));
            break;
        }
    }
    let ended_ns = network.now().monotonic_ns;
    prober.expire(u64::MAX, &mut tell);
    prober.into_log(ended_ns)
}

impl<'a> Prober<'a> {
    fn new(plan: &'a ManyPlan, started: Moment, stamped: bool) -> Self {
        let targets = plan.targets.len() as u64;
        let gap_ns = 1e9 / plan.pps;
        let period_ns = (plan.period.as_nanos() as f64).max(gap_ns * targets as f64);
        let rounds = match plan.duration {
            Some(duration) => {
                let in_time = (duration.as_nanos() as f64 / period_ns).ceil() as u64;
                plan.rounds.unwrap_or(u64::MAX).min(in_time)
            }
            None => plan.rounds.unwrap_or(u64::MAX),
        };
        Self {
            plan,
            stamped,
            gap_ns,
            period_ns,
            start_ns: started.monotonic_ns,
            until_ns: plan.duration.map_or(u64::MAX, |duration| {
                let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                started.monotonic_ns.saturating_add(ns)
            }),
            started_ns: started.monotonic_ns,
            timeout_ns: u64::try_from(plan.timeout.as_nanos()).unwrap_or(u64::MAX),
            to_send: targets.saturating_mul(rounds),
            next: 0,
            flights: VecDeque::new(),
            base: 0,
            outstanding: 0,
            last_sent_ns: started.monotonic_ns,
            tallies: vec![Tally::default(); plan.targets.len()],
            rtts: Summary::new(),
            lateness: Summary::new(),
            user_stamps: 0,
            answers: BTreeMap::new(),
            strays: 0,
            drops: Drops::default(),
            notes: Vec::new(),
        }
    }

    fn target(&self, number: u64) -> u32 {
        (number % self.plan.targets.len().max(1) as u64) as u32
    }

    fn round(&self, number: u64) -> u64 {
        number / self.plan.targets.len().max(1) as u64
    }

    fn due_ns(&self, number: u64) -> u64 {
        let after = self.round(number) as f64 * self.period_ns
            + f64::from(self.target(number)) * self.gap_ns;
        self.start_ns.saturating_add(after as u64)
    }

    /// The probes that are due, as many as are sent at once.
    fn due(&mut self, now_ns: u64, due: &mut Vec<(u64, u32)>) {
        due.clear();
        if self.next < self.to_send {
            let late = now_ns.saturating_sub(self.due_ns(self.next));
            self.start_ns += late.saturating_sub(CATCH_UP_NS);
        }
        let mut number = self.next;
        while due.len() < BATCH && number < self.to_send && self.due_ns(number) <= now_ns {
            due.push((number, self.target(number)));
            number += 1;
        }
    }

    fn sent(
        &mut self,
        due: &[(u64, u32)],
        sending: Sending,
        tell: &mut impl FnMut(&dyn Fn() -> ManySeen),
    ) {
        let Sending {
            sent,
            before,
            after,
            error,
        } = sending;
        let took = after.realtime_ns.saturating_sub(before.realtime_ns);
        for (place, (number, target)) in due.iter().take(sent).enumerate() {
            self.lateness
                .record(before.monotonic_ns.saturating_sub(self.due_ns(*number)), 1);
            // Without stamps: packets of a batch enter one after the other while it is being sent.
            let share = took.saturating_mul(place as u64) / sent.max(1) as u64;
            let departed = (!self.stamped).then(|| before.realtime_ns + share);
            self.fly(before, departed, false);
            if let Some(tally) = self.tallies.get_mut(*target as usize) {
                tally.sent += 1;
            }
        }
        if let (0, Some(error), Some((_, target))) = (sent, error, due.first()) {
            let why = format!("our own machine did not send a probe: {error}");
            self.note(why.clone());
            if let Some(tally) = self.tallies.get_mut(*target as usize) {
                tally.refused += 1;
            }
            self.failed(*target, (why, None), tell);
            self.fly(before, None, true);
        }
        self.last_sent_ns = after.monotonic_ns;
    }

    fn fly(&mut self, sent: Moment, departed_ns: Option<u64>, refused: bool) {
        self.flights.push_back(Flight {
            sent,
            departed_ns,
            settled: refused,
            refused,
        });
        self.outstanding += u64::from(!refused);
        self.next += 1;
    }

    fn take(&mut self, event: ManyEvent, tell: &mut impl FnMut(&dyn Fn() -> ManySeen)) {
        match event {
            ManyEvent::Departed { number, ns } => {
                if let Some(flight) = self.flight(number) {
                    flight.departed_ns.get_or_insert(ns);
                }
            }
            ManyEvent::Answered {
                number,
                from,
                size_bytes,
                answer,
            } => self.answered(number, from, size_bytes, answer, tell),
            ManyEvent::Failed {
                to,
                number,
                failure,
            } => match self.probe_of(number, to) {
                Some(number) => {
                    // Who it is goes without saying where it is the target itself.
                    let why = match failure.by {
                        Reporter::Host(by) if by == to => failure.why.to_string(),
                        _ => failure.to_string(),
                    };
                    self.failed(self.target(number), (why, Some(failure)), tell);
                }
                None => self.strays += 1,
            },
            ManyEvent::Told { number, why } => {
                self.failed(self.target(number), (why, None), tell);
            }
        }
    }

    /// The latest probe to that address whose number has these lower bits: of those that may still be
    /// answered, or the latest of all.
    fn probe_of(&self, lower: Lower, address: IpAddr) -> Option<u64> {
        let mut candidates = lower.below(self.next);
        let first = candidates.next()?;
        std::iter::once(first)
            .chain(candidates.take_while(|number| *number >= self.base))
            .find(|number| {
                let target = self.plan.targets.get(self.target(*number) as usize);
                target.is_some_and(|target| target.ip() == address)
            })
    }

    fn flight(&mut self, number: u64) -> Option<&mut Flight> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.flights.get_mut(index)
    }

    fn answered(
        &mut self,
        lower: Lower,
        from: IpAddr,
        size_bytes: usize,
        answer: Answer,
        tell: &mut impl FnMut(&dyn Fn() -> ManySeen),
    ) {
        self.drops = Drops {
            full: self.drops.full.max(answer.drops.full),
            corrupted: self.drops.corrupted.max(answer.drops.corrupted),
        };
        if lower.below(self.next).next().is_none() {
            return; // never sent: one that was made up does not belong in the counts
        }
        let Some(number) = self.probe_of(lower, from) else {
            self.strays += 1;
            return;
        };
        let (target, round) = (self.target(number), self.round(number));
        let Some(flight) = self.flight(number) else {
            if let Some(tally) = self.tallies.get_mut(target as usize) {
                tally.late += 1;
            }
            return;
        };
        if flight.refused {
            return;
        }
        if flight.settled {
            if let Some(tally) = self.tallies.get_mut(target as usize) {
                tally.duplicates += 1;
            }
            tell(&|| ManySeen::Again { target, round });
            return;
        }
        flight.settled = true;
        let record = Record {
            due_ns: 0,
            sent: flight.sent,
            size_bytes: 0,
            refused: false,
            departed_ns: flight.departed_ns,
            answer: Some(answer),
            duplicates: 0,
            reordered: false,
        };
        let Some(trip) = record.round_trip() else {
            return;
        };
        self.outstanding -= 1;
        if trip.rtt > self.plan.timeout {
            if let Some(tally) = self.tallies.get_mut(target as usize) {
                tally.late += 1;
            }
            let sent_ns = record.sent.realtime_ns;
            tell(&|| ManySeen::Lost {
                target,
                round,
                sent_ns,
            });
            return;
        }
        // Without stamps of departures they are our own, unless something else timed the whole.
        let kernel = trip.timestamps == TimestampSource::Kernel
            && (self.stamped || answer.measured.is_some());
        self.user_stamps += u64::from(!kernel);
        if let Some(said) = answer.said {
            *self.answers.entry(said).or_default() += 1;
        }
        self.rtts
            .record(u64::try_from(trip.rtt.as_nanos()).unwrap_or(u64::MAX), 1);
        if let Some(tally) = self.tallies.get_mut(target as usize) {
            tally.answered(trip.rtt, round);
            tally.said = answer.said;
        }
        tell(&|| ManySeen::Answered {
            target,
            round,
            rtt: trip.rtt,
            size_bytes,
            hop_limit: answer.hop_limit,
            said: answer.said,
            at_ns: answer.at.realtime_ns,
            exchange: record.exchange(),
        });
    }

    fn failed(
        &mut self,
        target: u32,
        (why, failure): (String, Option<Failure>),
        tell: &mut impl FnMut(&dyn Fn() -> ManySeen),
    ) {
        if let Some(tally) = self.tallies.get_mut(target as usize) {
            tally.error = Some(why.as_str().into());
        }
        tell(&|| ManySeen::Failed {
            target,
            why: why.clone(),
            failure,
        });
    }

    /// Gives up the probes whose timeout has passed.
    fn expire(&mut self, now_ns: u64, tell: &mut impl FnMut(&dyn Fn() -> ManySeen)) {
        while let Some(flight) = self.flights.front() {
            if now_ns < flight.sent.monotonic_ns.saturating_add(self.timeout_ns) {
                break;
            }
            let (settled, sent_ns) = (flight.settled, flight.sent.realtime_ns);
            if !settled {
                self.outstanding -= 1;
                let (target, round) = (self.target(self.base), self.round(self.base));
                tell(&|| ManySeen::Lost {
                    target,
                    round,
                    sent_ns,
                });
            }
            self.flights.pop_front();
            self.base += 1;
        }
    }

    fn finished(&self) -> bool {
        self.next >= self.to_send && self.outstanding == 0
    }

    /// Until when to wait for events.
    fn wake(&self, now_ns: u64) -> u64 {
        let next = match self.next < self.to_send {
            true => self.due_ns(self.next),
            false => self.last_sent_ns.saturating_add(self.timeout_ns),
        };
        next.min(now_ns.saturating_add(CHECK_NS))
    }

    /// Keeps what must be known to read the numbers; the same thing once.
    fn note(&mut self, note: String) {
        if self.notes.len() < 8 && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn into_log(self, ended_ns: u64) -> ManyLog {
        let since = |ns: u64| ns.saturating_sub(self.started_ns) as f64 / 1e9;
        let received: u64 = self.tallies.iter().map(|tally| tally.received).sum();
        ManyLog {
            rtt_s: self.rtts.distribution(),
            lateness_s: self.lateness.distribution(),
            answers: self
                .answers
                .iter()
                .map(|(said, times)| (said.to_string(), *times))
                .collect(),
            strays: self.strays,
            drops: self.drops,
            timestamps: match received > 0 && self.user_stamps == 0 {
                true => TimestampSource::Kernel,
                false => TimestampSource::User,
            },
            started_monotonic_ns: self.started_ns,
            sending_s: since(self.last_sent_ns),
            duration_s: since(ended_ns),
            notes: self.notes,
            tallies: self.tallies,
        }
    }
}

#[cfg(test)]
mod tests;
