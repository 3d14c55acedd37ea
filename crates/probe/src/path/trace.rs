//! When to probe which hop, and when it is enough. Time comes from the network, which is a trait,
//! so all of this runs in virtual time.
//!
//! All hops of a cycle are probed at once, up to a horizon that moves away while the target does
//! not answer: a trace takes about as long as its slowest answer, not the sum of all.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::results::TimestampSource;
use plumb_model::results::path::AlteredField;
use plumb_wire::icmp_report::{MplsLabel, Report};
use plumb_wire::tcp_options::{Offered, offered};

use super::altered::{self, Difference};
use super::probe::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};

/// Hops probed at once before anything is known: most paths are shorter.
const FIRST_HORIZON: u8 = 16;
/// The horizon is at least so far beyond the furthest hop that answered, and moves on each time that
/// nothing was heard of the target for so long.
const BEYOND: u8 = 12;
const GROW_BY: u8 = 8;
const GROW_EVERY_NS: u64 = 50_000_000;
/// Silent hops probed beyond the last that answers, once a whole cycle was silent there.
const SILENT_BEYOND: u8 = 5;
/// How often the request to stop is looked at while nothing else happens.
const STOP_CHECK_NS: u64 = 100_000_000;
/// The least that missing answers are waited for where others came: 200 ms, as a router that is
/// busy takes; or so many times the slowest answer.
const PATIENCE_NS: u64 = 200_000_000;
const PATIENCE_ROUND_TRIPS: u64 = 3;
/// The same where the target did not answer, so that one may not know how far it is.
const PATIENCE_UNREACHED_NS: u64 = 1_000_000_000;
/// Failures of receiving, one after the other, before tracing ends.
const MAX_RECEIVE_FAILURES: u32 = 16;
/// What probes that look for changes bear: EF (RFC 3246), of which no bits in a row may be
/// cleared unseen, and ECT(0).
const MARKED: u8 = 46 << 2 | 2;

/// What to trace and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TracePlan {
    pub target: IpAddr,
    /// The first hop that is probed, from 1.
    pub first_hop: u8,
    /// The last hop that is probed.
    pub last_hop: u8,
    /// How often each hop is probed; without end when absent.
    pub cycles: Option<u32>,
    /// From the beginning of one cycle to the beginning of the next.
    pub interval: Duration,
    /// A probe whose answer takes longer counts as lost.
    pub timeout: Duration,
    /// Size of the whole IP packet; zero for the smallest.
    pub size_bytes: u16,
    /// What fills ICMP and UDP probes that are larger than the smallest.
    pub fill: u8,
    /// Type of service, or traffic class, of the probes.
    pub traffic_class: u8,
    /// No hop is probed that is further beyond the last that answers, where that is limited.
    pub max_unknown: Option<u8>,
    /// How long answers are waited for after the last probe; when absent, as long as those that came let expect.
    pub grace: Option<Duration>,
    /// Whether each cycle has a flow of its own: TCP probes that follow each other fast need it,
    /// for the target takes two SYNs of one flow for one.
    pub flow_per_cycle: bool,
    /// Whether one more probe to each hop is marked, to see what becomes of the marks.
    pub inspect: bool,
}

impl TracePlan {
    /// Three probes to each of at most 30 hops.
    pub fn new(target: IpAddr) -> Self {
        Self {
            target,
            first_hop: 1,
            last_hop: 30,
            cycles: Some(3),
            interval: Duration::from_millis(20),
            timeout: Duration::from_secs(3),
            size_bytes: 0,
            fill: 0,
            traffic_class: 0,
            max_unknown: None,
            grace: None,
            flow_per_cycle: false,
            inspect: true,
        }
    }
}

/// What was seen of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub from: IpAddr,
    pub rtt: Duration,
    /// Whose stamps it is made of.
    pub timestamps: TimestampSource,
    /// Whether the probe arrived at the target.
    pub arrival: bool,
    /// traceroute's mark, where there is one.
    pub annotation: Option<String>,
    /// Time to live that the answer had left.
    pub hop_limit: Option<u8>,
    /// MPLS labels that the probe bore.
    pub labels: Vec<MplsLabel>,
    /// Whether the probe was quoted, so that changes would have shown.
    pub quoted: bool,
    /// What was quoted otherwise than it was sent.
    pub differences: Vec<Difference>,
    /// What the target's SYN-ACK offers, and whether it agreed to ECN.
    pub syn_ack: Option<(Offered, bool)>,
}

/// One probe that was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    /// Number of the cycle, from 0; `None` for marked probes.
    pub cycle: Option<u32>,
    pub hops: u8,
    /// When it was sent, ns of CLOCK_MONOTONIC.
    pub sent_ns: u64,
    /// What answered in time.
    pub seen: Option<Seen>,
    /// Whether it was under way when this host lost its own way out, or dropped answers itself: that nothing came back
    /// to it says nothing of the path.
    pub cut_off: bool,
}

impl Shot {
    /// Whether what became of it says something of the path.
    pub fn counts(&self) -> bool {
        self.seen.is_some() || !self.cut_off
    }
}

/// What remains of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceLog {
    /// What was asked for.
    pub plan: TracePlan,
    /// When it began and ended, ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Every probe, in the order in which they were sent.
    pub shots: Vec<Shot>,
    pub cycles: u32,
    /// Probes that our own machine refused to send.
    pub refused: u64,
    pub latest: Option<IpAddr>,
    /// What must be known.
    pub notes: Vec<String>,
}

/// One probe to each hop, under way.
#[derive(Debug)]
struct Round {
    cycle: Option<u32>,
    flow: u16,
    traffic_class: u8,
    ask_ecn: bool,
    /// One more than the last there is when it has been everywhere.
    next_hop: u16,
}

/// The state between two events.
struct Tracer {
    log: TraceLog,
    rounds: Vec<Round>,
    waiting: BTreeMap<ProbeId, usize>,
    /// The hop at which the path ends: the target answered there, or a router refused.
    end: Option<u8>,
    reached: bool,
    furthest: u8,
    horizon: u8,
    grow_at_ns: u64,
    last_sent_ns: u64,
    slowest_ns: u64,
    inspected: bool,
    dropped_here: u64,
}

/// Traces by the plan until all cycles are done and answered, or waited for long enough; `watch`
/// is shown the log after each answer, and every 100 ms. Ends within the timeout and 100 ms after `stop` is set.
pub fn run(
    network: &mut impl HopNetwork,
    plan: TracePlan,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&TraceLog),
) -> TraceLog {
    let started_ns = network.now_ns();
    let mut tracer = Tracer::new(plan, started_ns);
    let mut failures = 0;
    // Whether nothing is here that was not looked at: where this program was late itself, answers may be.
    let mut all_taken = true;
    loop {
        let now = network.now_ns();
        let stopped = stop.load(Ordering::Relaxed);
        if !stopped {
            tracer.open_rounds(now);
            tracer.grow(now);
            tracer.send(network);
        }
        if tracer.is_done(network.now_ns(), stopped) && (all_taken || tracer.waits_for_nothing()) {
            break;
        }
        match network.receive(tracer.wake(now, stopped)) {
            Ok(answered) => {
                failures = 0;
                all_taken = answered.is_none();
                match answered {
                    Some(answered) => tracer.take(network, answered),
                    // All that is here was taken.
                    None => tracer.count_dropped(network),
                }
                watch(&tracer.log);
            }
            Err(error) => {
                failures += 1;
                tracer.note(format!("Receiving failed: {error}."));
                if failures >= MAX_RECEIVE_FAILURES {
                    tracer.note("Tracing ended early, because receiving kept failing.".to_owned());
                    break;
                }
            }
        }
    }
    tracer.log.ended_ns = network.now_ns();
    tracer.log
}

impl Tracer {
    fn new(plan: TracePlan, started_ns: u64) -> Self {
        Self {
            horizon: FIRST_HORIZON.max(plan.first_hop),
            log: TraceLog {
                plan,
                started_ns,
                ended_ns: started_ns,
                shots: Vec::new(),
                cycles: 0,
                refused: 0,
                latest: None,
                notes: Vec::new(),
            },
            rounds: Vec::new(),
            waiting: BTreeMap::new(),
            end: None,
            reached: false,
            furthest: 0,
            grow_at_ns: started_ns + GROW_EVERY_NS,
            last_sent_ns: started_ns,
            slowest_ns: 0,
            inspected: false,
            dropped_here: 0,
        }
    }

    fn interval_ns(&self) -> u64 {
        u64::try_from(self.log.plan.interval.as_nanos()).unwrap_or(u64::MAX)
    }

    /// When the next cycle begins; `None` when there is none.
    fn next_cycle_ns(&self) -> Option<u64> {
        let more = self
            .log
            .plan
            .cycles
            .is_none_or(|cycles| self.log.cycles < cycles);
        more.then(|| {
            let since = self.interval_ns().saturating_mul(self.log.cycles.into());
            self.log.started_ns.saturating_add(since)
        })
    }

    fn open_rounds(&mut self, now: u64) {
        while self.next_cycle_ns().is_some_and(|due| due <= now) {
            let cycle = self.log.cycles;
            self.log.cycles += 1;
            let flow = if self.log.plan.flow_per_cycle {
                (cycle % u32::from(plumb_wire::path_probe::FLOWS - 1)) as u16
            } else {
                0
            };
            let class = self.log.plan.traffic_class;
            self.open(Some(cycle), flow, class);
        }
        // When it is known how far it is, or soon will be: half an interval later.
        let due = self.log.started_ns + self.interval_ns().min(GROW_EVERY_NS) / 2;
        if self.log.plan.inspect && !self.inspected && now >= due {
            self.inspected = true;
            let flow = if self.log.plan.flow_per_cycle {
                plumb_wire::path_probe::FLOWS - 1
            } else {
                0
            };
            self.open(None, flow, MARKED);
        }
    }

    fn open(&mut self, cycle: Option<u32>, flow: u16, traffic_class: u8) {
        self.rounds.push(Round {
            cycle,
            flow,
            traffic_class,
            ask_ecn: cycle.is_none(),
            next_hop: self.log.plan.first_hop.into(),
        });
    }

    /// The last hop worth probing now.
    fn limit(&self) -> u8 {
        let silent = self.log.cycles > 1 && self.is_silent_beyond();
        let limit = match self.end {
            Some(end) => end,
            None if silent => self.furthest.saturating_add(SILENT_BEYOND),
            None => self.horizon,
        };
        let known = self.furthest.max(self.log.plan.first_hop.saturating_sub(1));
        let unknown = self.log.plan.max_unknown.unwrap_or(u8::MAX);
        limit
            .min(known.saturating_add(unknown))
            .min(self.log.plan.last_hop)
    }

    /// Whether everything up to the last hop was asked, a while ago, and no hop beyond the furthest known one has
    /// answered.
    fn is_silent_beyond(&self) -> bool {
        self.horizon >= self.log.plan.last_hop
            && self.grow_at_ns.saturating_add(PATIENCE_UNREACHED_NS) < self.last_sent_ns
    }

    fn grow(&mut self, now: u64) {
        if self.end.is_none() && self.horizon < self.log.plan.last_hop && now >= self.grow_at_ns {
            self.horizon = self.horizon.saturating_add(GROW_BY);
            self.grow_at_ns = now + GROW_EVERY_NS;
        }
    }

    fn send(&mut self, network: &mut impl HopNetwork) {
        let limit = self.limit();
        for index in 0..self.rounds.len() {
            while let Some(round) = self.rounds.get_mut(index)
                && let Ok(hops) = u8::try_from(round.next_hop)
                && hops <= limit
            {
                let probe = Probe {
                    hops,
                    flow: round.flow,
                    size_bytes: self.log.plan.size_bytes,
                    dont_fragment: false,
                    traffic_class: round.traffic_class,
                    ask_ecn: round.ask_ecn,
                    fill: self.log.plan.fill,
                };
                let cycle = round.cycle;
                round.next_hop += 1;
                let sent_ns = network.now_ns();
                match network.send(&probe) {
                    Ok(id) => {
                        self.waiting.insert(id, self.log.shots.len());
                        self.log.shots.push(Shot {
                            cycle,
                            hops: probe.hops,
                            sent_ns,
                            seen: None,
                            cut_off: false,
                        });
                        self.last_sent_ns = sent_ns;
                    }
                    Err(error) => {
                        self.log.refused += 1;
                        if is_cut_off(&error) {
                            self.cut_off(sent_ns);
                        }
                        self.note(format!("This host did not send some probes: {error}."));
                    }
                }
            }
        }
        // Only the latest rounds can still have to go further.
        let open = self.rounds.len().saturating_sub(4);
        if self.log.plan.cycles.is_none() {
            self.rounds.drain(..open);
        }
    }

    /// What is still waited for cannot come back, if it was sent as lately as answers take.
    fn cut_off(&mut self, now: u64) {
        let since = now.saturating_sub(self.patience_ns(PATIENCE_NS));
        for index in self.waiting.values() {
            if let Some(shot) = self.log.shots.get_mut(*index) {
                shot.cut_off |= shot.sent_ns >= since;
            }
        }
    }

    /// Answers that this host dropped are no loss on the path, and which ones were dropped is unknown.
    fn count_dropped(&mut self, network: &mut impl HopNetwork) {
        let dropped = network.dropped_here();
        if dropped > self.dropped_here {
            self.dropped_here = dropped;
            self.cut_off(network.now_ns());
            self.note(
                "This host dropped answers, because its own receive buffer was full: probes that were under way \
                 then are not counted."
                    .to_owned(),
            );
        }
    }

    fn patience_ns(&self, least: u64) -> u64 {
        let timeout = u64::try_from(self.log.plan.timeout.as_nanos()).unwrap_or(u64::MAX);
        least
            .max(self.slowest_ns.saturating_mul(PATIENCE_ROUND_TRIPS))
            .min(timeout)
    }

    fn take(&mut self, network: &impl HopNetwork, answered: Answered) {
        let Some(index) = self.waiting.remove(&answered.id) else {
            return;
        };
        if answered.rtt > self.log.plan.timeout {
            return;
        }
        let target = self.log.plan.target;
        let as_sent = network.as_sent(answered.id, &answered.probe);
        let seen = see(&answered, target, &as_sent);
        let hops = answered.probe.hops;
        let rtt_ns = u64::try_from(answered.rtt.as_nanos()).unwrap_or(u64::MAX);
        self.slowest_ns = self.slowest_ns.max(rtt_ns);
        let refused = seen.annotation.is_some()
            && !matches!(
                answered.answer.kind,
                AnswerKind::Icmp(Report::TooBig { .. })
            );
        if seen.arrival || refused {
            self.end = Some(self.end.map_or(hops, |end| end.min(hops)));
            self.reached |= seen.arrival;
        } else if self.end == Some(hops) {
            // The path became longer.
            self.end = None;
        }
        if !seen.arrival {
            self.furthest = self.furthest.max(hops);
        }
        self.horizon = self.horizon.max(hops.saturating_add(BEYOND));
        self.log.latest = Some(seen.from);
        if let Some(shot) = self.log.shots.get_mut(index) {
            shot.seen = Some(seen);
        }
    }

    /// Whether nothing more will be sent, and nothing more is waited for.
    fn is_done(&self, now: u64, stopped: bool) -> bool {
        if stopped {
            return now >= self.give_up_ns() || self.waits_for_nothing();
        }
        let limit = u16::from(self.limit());
        let all_begun =
            self.next_cycle_ns().is_none() && (self.inspected || !self.log.plan.inspect);
        let all_sent = self.rounds.iter().all(|round| round.next_hop > limit);
        let grown = self.end.is_some() || self.horizon >= self.log.plan.last_hop;
        all_begun && all_sent && grown && (self.waits_for_nothing() || now >= self.give_up_ns())
    }

    /// Whether every probe to a hop of the path was answered.
    fn waits_for_nothing(&self) -> bool {
        self.end.is_some_and(|end| {
            self.waiting.values().all(|index| {
                self.log
                    .shots
                    .get(*index)
                    .is_none_or(|shot| shot.hops > end)
            })
        })
    }

    /// When what has not been answered is given up.
    fn give_up_ns(&self) -> u64 {
        if let Some(grace) = self.log.plan.grace {
            let grace = grace.min(self.log.plan.timeout).as_nanos();
            let grace_ns = u64::try_from(grace).unwrap_or(u64::MAX);
            return self.last_sent_ns.saturating_add(grace_ns);
        }
        let least = if self.reached {
            PATIENCE_NS
        } else {
            PATIENCE_UNREACHED_NS
        };
        self.last_sent_ns.saturating_add(self.patience_ns(least))
    }

    fn wake(&self, now: u64, stopped: bool) -> u64 {
        let mut wake = now + STOP_CHECK_NS;
        if !stopped {
            wake = wake.min(self.next_cycle_ns().unwrap_or(u64::MAX));
            if self.end.is_none() && self.horizon < self.log.plan.last_hop {
                wake = wake.min(self.grow_at_ns);
            }
            if self.log.plan.inspect && !self.inspected {
                let due = self.log.started_ns + self.interval_ns().min(GROW_EVERY_NS) / 2;
                wake = wake.min(due);
            }
        }
        if stopped || self.next_cycle_ns().is_none() {
            wake = wake.min(self.give_up_ns());
        }
        wake
    }

    fn note(&mut self, note: String) {
        if !self.log.notes.contains(&note) {
            self.log.notes.push(note);
        }
    }
}

/// Whether this host has no way out any more: its interface is down, or its route gone.
fn is_cut_off(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkDown | io::ErrorKind::NetworkUnreachable
    )
}

/// What matters of an answer.
fn see(answered: &Answered, target: IpAddr, as_sent: &[u8]) -> Seen {
    let answer = &answered.answer;
    let arrival = answer.is_arrival(target);
    let expired = answer.kind == AnswerKind::Icmp(Report::TimeExceeded(0));
    let mut differences = altered::differences(as_sent, &answer.quote, expired);
    if arrival && answer.from != target {
        differences.push(Difference {
            field: AlteredField::AnswerFrom,
            sent: target.to_string(),
            seen: answer.from.to_string(),
        });
    }
    Seen {
        from: answer.from,
        rtt: answered.rtt,
        timestamps: answered.timestamps,
        arrival,
        annotation: answer.annotation(),
        hop_limit: answer.hop_limit,
        labels: answer.labels.clone(),
        quoted: !answer.quote.is_empty(),
        differences,
        syn_ack: syn_ack(answer),
    }
}

fn syn_ack(answer: &Answer) -> Option<(Offered, bool)> {
    let ecn = answer.segment.get(13)? & plumb_wire::ip::ECE != 0;
    (answer.kind == AnswerKind::SynAck)
        .then(|| offered(&answer.segment))
        .flatten()
        .map(|offered| (offered, ecn))
}

#[cfg(test)]
mod tests;
