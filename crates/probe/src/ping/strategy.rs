//! When to send and when to stop, and what the answers mean for the counts. The network, and
//! with it the clock, is a trait, so all of this runs in virtual time.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_net::datagram::{Failure, Unreachable};
use plumb_net::udp_counters::Drops;

use crate::ping::log::ProbeLog;
use crate::ping::plan::{Plan, Sizes};
use crate::ping::progress::{Progress, ProgressHandle, Seen};
use crate::ping::sample::{Answer, FarClock, Moment, Record};

/// How often the request to stop is looked at while nothing else happens.
const STOP_CHECK_NS: u64 = 100_000_000;

/// Failures of receiving, one after the other, before probing ends: one may be an interface
/// that went down, but a socket that always fails would be asked for ever.
const MAX_RECEIVE_FAILURES: u32 = 16;

/// An event that the network reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A probe entered the packet scheduler.
    Departed {
        sequence: u32,
        /// When, ns of CLOCK_REALTIME.
        ns: u64,
    },
    /// An answer came in.
    Answered(Answer),
    /// An ICMP error came in.
    Failed(Failure),
    /// Something else came of a probe, in words; it is not answered.
    Told(String),
}

/// What carries probes and knows the time.
pub trait Network {
    /// What its packets carry to be distinguished from others': ICMP's identifier, or the UDP session.
    fn id(&self) -> u32;

    fn now(&mut self) -> Moment {
        Moment::now()
    }

    /// What the far end said of its clock.
    fn far_clock(&self) -> Option<FarClock> {
        None
    }

    /// Sends a probe of that number; it is called once for each.
    ///
    /// # Errors
    /// When our own machine does not send it.
    fn send(&mut self, sequence: u32) -> io::Result<()>;

    /// The next event, or `None` when there is none until CLOCK_MONOTONIC reaches `until_ns`,
    /// or sooner; a time in the past means not to wait.
    ///
    /// # Errors
    /// Errors of the kernel.
    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>>;
}

/// Probes by the plan until
/// 1. all its probes have been sent, or `stop` is set, and
/// 2. every probe sent has been answered, or the timeout has passed since the last was sent.
///
/// So it ends within the timeout and [`STOP_CHECK_NS`] after it is asked to, and within the latter once
/// `abandoned` is set: then nothing is waited for.
pub(crate) fn run(
    network: &mut dyn Network,
    plan: &Plan,
    (stop, abandoned): (&AtomicBool, &AtomicBool),
    progress: &ProgressHandle,
) -> ProbeLog {
    let started = network.now();
    let mut prober = Prober::new(plan, started);
    let mut failures = 0;
    loop {
        let now = network.now();
        if stop.load(Ordering::Relaxed) {
            prober.to_send = prober.next();
        }
        if abandoned.load(Ordering::Relaxed) {
            break;
        }
        if let Some(asker) = progress.asker() {
            let mut log = prober.log(plan, network.id(), now.monotonic_ns);
            log.far_clock = network.far_clock();
            // The asker may have given up.
            let _ = asker.send(log);
        }
        prober.judge(now.monotonic_ns, progress);
        if prober.due().is_some_and(|due| due <= now.monotonic_ns) {
            let sequence = prober.next();
            let outcome = network.send(sequence);
            prober.sent(now, outcome, progress);
            progress.update(|p| prober.report(p));
        } else if prober.finished(now.monotonic_ns) {
            break;
        }
        match network.receive(prober.wake(now.monotonic_ns)) {
            Ok(event) => {
                failures = 0;
                if let Some(event) = event {
                    prober.take(event, progress);
                    progress.update(|p| prober.report(p));
                }
            }
            Err(error) => {
                failures += 1;
                prober.note(format!("receiving failed: {error}"));
                if failures >= MAX_RECEIVE_FAILURES {
                    prober.note("probing ended early, because receiving kept failing".to_owned());
                    break;
                }
            }
        }
    }
    let ended_ns = network.now().monotonic_ns;
    prober.judge(u64::MAX, progress);
    let mut log = prober.log(plan, network.id(), ended_ns);
    log.far_clock = network.far_clock();
    log
}

/// How probes follow answers.
struct Follows {
    /// When to stop sending, which no schedule says.
    until_ns: u64,
    /// How long after the latest probe the next one leaves at most and at least.
    wait_ns: u64,
    least_ns: u64,
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The state between two events.
struct Prober {
    started: Moment,
    interval_ns: u64,
    /// Where probes follow answers.
    follows: Option<Follows>,
    /// Probes that leave at once to begin with.
    preload: u32,
    sizes: Sizes,
    timeout: Duration,
    /// How many probes there will be; lowered to what has been sent when asked to stop.
    to_send: u32,
    /// Each probe that was tried, at its number.
    records: Vec<Record>,
    /// Probes before this number have been reported.
    judged: usize,
    last_sent_ns: u64,
    /// Probes without an answer.
    outstanding: u64,
    /// RFC 4737, section 3.3: one above the highest number answered.
    next_expected: u32,
    /// Answers beyond the first, with the far end's count.
    again: Vec<(u32, Option<u32>)>,
    /// Increases of the socket's counts of drops, by when they were reported.
    drops: Vec<(u64, Drops)>,
    dropped: Drops,
    sent: u64,
    received: u64,
    last_rtt: Option<Duration>,
    /// The hop limit that probes were sent with, where one was asked for.
    hop_limit_asked: Option<u8>,
    /// The hop limit of the latest answer, and when it changed.
    hop_limit: Option<u8>,
    hop_limit_changes: Vec<u64>,
    /// Answers by what they were.
    answers: BTreeMap<String, u64>,
    /// ICMP errors by what they said.
    icmp_errors: BTreeMap<String, u64>,
    notes: Vec<String>,
}

impl Prober {
    fn new(plan: &Plan, started: Moment) -> Self {
        Self {
            started,
            interval_ns: u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX),
            follows: plan.follows().map(|(wait, least)| {
                let longest = plan.duration.unwrap_or(Duration::MAX);
                Follows {
                    until_ns: started.monotonic_ns.saturating_add(ns(longest)),
                    wait_ns: ns(wait),
                    least_ns: ns(least),
                }
            }),
            preload: plan.preload,
            sizes: plan.sizes,
            timeout: plan.timeout,
            to_send: plan.probes(),
            records: Vec::new(),
            judged: 0,
            last_sent_ns: started.monotonic_ns,
            outstanding: 0,
            next_expected: 0,
            again: Vec::new(),
            drops: Vec::new(),
            dropped: Drops::default(),
            sent: 0,
            received: 0,
            last_rtt: None,
            hop_limit_asked: plan.hop_limit,
            hop_limit: None,
            hop_limit_changes: Vec::new(),
            answers: BTreeMap::new(),
            icmp_errors: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Number of the next probe.
    fn next(&self) -> u32 {
        self.records.len() as u32
    }

    /// When the next probe is due; `None` when there is none.
    fn due(&self) -> Option<u64> {
        let next = self.next();
        let due = match &self.follows {
            None => {
                let intervals = next.saturating_sub(self.preload.saturating_sub(1));
                let after = self.interval_ns.saturating_mul(u64::from(intervals));
                self.started.monotonic_ns.saturating_add(after)
            }
            Some(_) if next < self.preload => self.started.monotonic_ns,
            Some(follows) => {
                Some(self.follow_due(follows)).filter(|due| *due < follows.until_ns)?
            }
        };
        (next < self.to_send).then_some(due)
    }

    /// When the next probe is due that follows an answer: as soon as the latest is answered, but within the
    /// bounds.
    fn follow_due(&self, follows: &Follows) -> u64 {
        let Some(latest) = self.records.last() else {
            return self.started.monotonic_ns;
        };
        let after = |ns: u64| latest.sent.monotonic_ns.saturating_add(ns);
        let unanswered = after(follows.wait_ns);
        latest.answer.map_or(unanswered, |answer| {
            answer
                .at
                .monotonic_ns
                .max(after(follows.least_ns))
                .min(unanswered)
        })
    }

    /// Reports the probes whose timeout has passed.
    fn judge(&mut self, now_ns: u64, progress: &ProgressHandle) {
        let timeout = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        while let Some(record) = self.records.get(self.judged) {
            let given_up = now_ns >= record.sent.monotonic_ns.saturating_add(timeout);
            if record.answer.is_none() && !record.refused && !given_up {
                break;
            }
            if !record.refused && !record.in_time(self.timeout) {
                let sequence = self.judged as u32;
                progress.tell(|| Seen::Lost { sequence });
            }
            self.judged += 1;
        }
    }

    fn last_answer_by(&self) -> u64 {
        self.last_sent_ns
            .saturating_add(u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX))
    }

    fn finished(&self, now_ns: u64) -> bool {
        self.due().is_none() && (self.outstanding == 0 || now_ns >= self.last_answer_by())
    }

    /// Until when to wait for events.
    fn wake(&self, now_ns: u64) -> u64 {
        self.due()
            .unwrap_or_else(|| self.last_answer_by())
            .min(now_ns.saturating_add(STOP_CHECK_NS))
    }

    /// A probe was handed to the kernel at `now`.
    fn sent(&mut self, now: Moment, outcome: io::Result<()>, progress: &ProgressHandle) {
        let waits = |latest: &&Record| latest.answer.is_none() && !latest.refused;
        if self.records.last().filter(waits).is_some() {
            let sequence = self.next().saturating_sub(1);
            progress.tell(|| Seen::Outstanding { sequence });
        }
        self.records.push(Record {
            due_ns: self.due().unwrap_or(now.monotonic_ns),
            sent: now,
            size_bytes: self.sizes.of(self.next()),
            refused: outcome.is_err(),
            departed_ns: None,
            answer: None,
            duplicates: 0,
            reordered: false,
        });
        match outcome {
            Ok(()) => {
                self.sent += 1;
                self.outstanding += 1;
                self.last_sent_ns = now.monotonic_ns;
            }
            Err(error) => {
                let told = format!("our own machine did not send a probe: {error}");
                progress.tell(|| Seen::Told(told.clone()));
                self.note(told);
            }
        }
    }

    fn take(&mut self, event: Event, progress: &ProgressHandle) {
        match event {
            Event::Departed { sequence, ns } => {
                if let Some(record) = self.records.get_mut(sequence as usize) {
                    record.departed_ns.get_or_insert(ns);
                }
            }
            Event::Answered(answer) => self.answered(answer, progress),
            Event::Told(told) => {
                progress.tell(|| Seen::Told(told.clone()));
                self.note(told);
            }
            Event::Failed(failure) => {
                progress.tell(|| Seen::Told(failure.sentence()));
                self.note(failure.sentence());
                let hops = self.hop_limit_asked;
                if let Some(hops) = hops.filter(|_| failure.why == Unreachable::HopLimit) {
                    self.note(format!("the probes were sent with a hop limit of {hops}"));
                }
                *self.icmp_errors.entry(failure.to_string()).or_default() += 1;
            }
        }
    }

    fn answered(&mut self, answer: Answer, progress: &ProgressHandle) {
        if answer.drops != self.dropped {
            self.drops
                .push((answer.at.monotonic_ns, answer.drops.since(self.dropped)));
            self.dropped = answer.drops;
        }
        let Some(record) = self
            .records
            .get_mut(answer.sequence as usize)
            .filter(|record| !record.refused)
        else {
            // A number that was never sent: one that was made up does not belong in the counts.
            return;
        };
        if record.answer.is_some() {
            record.duplicates += 1;
            let sequence = answer.sequence;
            let count = answer.far_end.and_then(|far| far.count);
            self.again.push((sequence, count));
            progress.tell(|| Seen::Again { sequence });
            return;
        }
        record.answer = Some(answer);
        self.outstanding -= 1;
        let Some(trip) = record.round_trip().filter(|trip| trip.rtt <= self.timeout) else {
            return; // late, which is lost
        };
        self.received += 1;
        if let Some(said) = answer.said {
            *self.answers.entry(said.to_string()).or_default() += 1;
        }
        self.last_rtt = Some(trip.rtt);
        let size_bytes = record.size_bytes;
        progress.tell(|| Seen::Answered {
            sequence: answer.sequence,
            size_bytes,
            rtt: trip.rtt,
            hop_limit: answer.hop_limit,
            said: answer.said,
            at_ns: answer.at.realtime_ns,
        });
        if let Some(hops) = answer.hop_limit {
            let changed = self.hop_limit.is_some_and(|before| before != hops);
            self.hop_limit_changes
                .extend(changed.then_some(answer.at.monotonic_ns));
            self.hop_limit = Some(hops);
        }
        if answer.sequence < self.next_expected {
            record.reordered = true;
        } else {
            self.next_expected = answer.sequence.saturating_add(1);
        }
    }

    /// Keeps what must be known to read the numbers; the same thing once.
    fn note(&mut self, note: String) {
        if self.notes.len() < 8 && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn report(&self, progress: &mut Progress) {
        progress.sent = self.sent;
        progress.received = self.received;
        progress.last_rtt = self.last_rtt;
    }

    /// What was seen until `ended_ns`; probes that are not answered by then count as lost.
    fn log(&self, plan: &Plan, id: u32, ended_ns: u64) -> ProbeLog {
        let start = self.started.monotonic_ns;
        let since_start = |ns: u64| ns.saturating_sub(start) as f64 / 1e9;
        let mut log = ProbeLog {
            protocol: plan.protocol,
            address: plan.target.ip(),
            id,
            samples: (0..)
                .zip(&self.records)
                .filter_map(|(n, r)| r.sample(n, start, self.timeout))
                .collect(),
            refused_s: self
                .records
                .iter()
                .filter(|r| r.refused)
                .map(|r| since_start(r.sent.monotonic_ns))
                .collect(),
            again: self.again.clone(),
            far_clock: None,
            drops: self
                .drops
                .iter()
                .map(|(ns, count)| (since_start(*ns), *count))
                .collect(),
            hop_limit_changes_s: self
                .hop_limit_changes
                .iter()
                .map(|ns| since_start(*ns))
                .collect(),
            answers: self.answers.clone(),
            icmp_errors: self.icmp_errors.clone(),
            started_monotonic_ns: start,
            duration_s: since_start(ended_ns),
            notes: self.notes.clone(),
        };
        let corrupted = log.result(0.0, f64::INFINITY).corrupted;
        if corrupted > 0 {
            log.notes.push(format!(
                "up to {corrupted} answers came with a wrong checksum: the path corrupts packets; the kernel discards them, and \
                 they count as lost"
            ));
        }
        let ignored = log.residences_ignored();
        if ignored > 0 {
            log.notes.push(format!(
                "the far end's times of {ignored} answers made no sense (did its clock step?): \
                 the time that it kept those probes is still in their round trips"
            ));
        }
        log
    }
}

#[cfg(test)]
mod tests;
