//! Against a network that is a list of hops, in virtual time.
#![allow(clippy::unwrap_used)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::path::target::ProtocolAndPort;
use plumb_model::results::path::HopAnswers;

const MS: u64 = 1_000_000;

/// A path: for each hop its address's last byte, its round trip, and whether it answers the n-th
/// probe that reaches it.
struct Fake {
    now: u64,
    sent: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    answers: BTreeMap<u64, Answered>,
    hops: Vec<Hop>,
    asked: Vec<u32>,
    /// From this time on the second hop is another.
    detour_from_ns: u64,
    /// From this time on, for so long, our own interface is down.
    down: (u64, u64),
    /// How many answers our own receive buffer holds, and how many it dropped.
    buffer: usize,
    dropped: u64,
    /// When our own program stops, and for how long.
    stops: (u64, u64),
}

#[derive(Clone)]
struct Hop {
    address: u8,
    rtt_ns: u64,
    answers: fn(u32) -> bool,
}

fn line(hops: usize, rtt_ns: u64) -> Vec<Hop> {
    (1..=hops)
        .map(|i| Hop {
            address: i as u8,
            rtt_ns: rtt_ns * i as u64 / hops as u64,
            answers: |_| true,
        })
        .collect()
}

fn target() -> IpAddr {
    IpAddr::from([192, 0, 2, 1])
}

impl Fake {
    fn new(hops: Vec<Hop>) -> Self {
        Self {
            now: 5_000 * MS,
            sent: 0,
            queue: BinaryHeap::new(),
            answers: BTreeMap::new(),
            asked: vec![0; hops.len()],
            hops,
            detour_from_ns: u64::MAX,
            down: (u64::MAX, 0),
            buffer: usize::MAX,
            dropped: 0,
            stops: (u64::MAX, 0),
        }
    }
}

impl HopNetwork for Fake {
    fn now_ns(&mut self) -> u64 {
        self.now
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        let id = self.sent;
        self.sent += 1;
        let (down_ns, for_ns) = self.down;
        if self.now >= down_ns && self.now - down_ns < for_ns {
            // Whatever is in flight is lost.
            self.queue.clear();
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        let index = usize::from(probe.hops).min(self.hops.len()) - 1;
        let hop = self.hops.get(index).unwrap();
        let asked = self.asked.get_mut(index).unwrap();
        *asked += 1;
        if (hop.answers)(*asked - 1) && self.queue.len() >= self.buffer {
            self.dropped += 1;
        } else if (hop.answers)(*asked - 1) {
            let last = index + 1 == self.hops.len();
            let moved = index == 1 && self.now >= self.detour_from_ns;
            let from = if last {
                target()
            } else {
                IpAddr::from([10, u8::from(moved), 0, hop.address])
            };
            let kind = if last {
                AnswerKind::EchoReply
            } else {
                AnswerKind::Icmp(Report::TimeExceeded(0))
            };
            self.queue.push(Reverse((self.now + hop.rtt_ns, id)));
            self.answers.insert(
                id,
                Answered {
                    id: ProbeId(id),
                    probe: *probe,
                    rtt: Duration::from_nanos(hop.rtt_ns),
                    timestamps: TimestampSource::Kernel,
                    answer: Answer::plain(from, kind, Some(64u8.saturating_sub(index as u8))),
                },
            );
        }
        Ok(ProbeId(id))
    }

    fn dropped_here(&self) -> u64 {
        self.dropped
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        if self.now >= self.stops.0 {
            self.now += std::mem::take(&mut self.stops.1);
        }
        match self.queue.peek() {
            Some(Reverse((at, id))) if *at <= until_ns.max(self.now) => {
                self.now = self.now.max(*at);
                let id = *id;
                self.queue.pop();
                Ok(self.answers.remove(&id))
            }
            _ => {
                self.now = self.now.max(until_ns);
                Ok(None)
            }
        }
    }
}

fn trace(hops: Vec<Hop>, change: impl FnOnce(&mut TracePlan)) -> TraceLog {
    traced(Fake::new(hops), change)
}

fn traced(mut fake: Fake, change: impl FnOnce(&mut TracePlan)) -> TraceLog {
    let mut plan = TracePlan::new(target());
    plan.inspect = false;
    change(&mut plan);
    run(&mut fake, plan, &AtomicBool::new(false), &mut |_| {})
}

fn took_ms(log: &TraceLog) -> u64 {
    (log.ended_ns - log.started_ns) / MS
}

#[test]
fn thirty_hops_take_little_longer_than_the_slowest_answer() {
    for rtt in [1, 30, 100, 300, 700] {
        let log = trace(line(30, rtt * MS), |_| {});
        let result = log.result(ProtocolAndPort::Icmp);
        assert!(result.reached);
        assert_eq!(result.hops.len(), 30);
        assert!(
            result
                .hops
                .iter()
                .all(|hop| (hop.sent, hop.received) == (3, 3))
        );
        assert!(
            took_ms(&log) <= rtt * 3 / 2 + 200,
            "{rtt} ms: {}",
            took_ms(&log)
        );
        assert!(
            result.hops.iter().all(|hop| hop.notes.is_empty()),
            "symmetric"
        );
        assert_eq!((result.routes.len(), result.changes.len()), (1, 0));
        assert_eq!(result.loss, None);
    }
}

#[test]
fn a_short_path_is_not_flooded() {
    let log = trace(line(3, 10 * MS), |_| {});
    // The first cycle goes to the horizon, and the second cycle begins when the first was answered.
    assert!(log.shots.len() <= 16 + 3 + 3, "{}", log.shots.len());
    assert_eq!(log.result(ProtocolAndPort::Icmp).hops.len(), 3);
}

#[test]
fn a_hop_that_declines_is_no_loss_and_a_lossy_line_is() {
    let mut hops = line(6, 40 * MS);
    hops.get_mut(1).unwrap().answers = |n| n % 2 == 0;
    hops.get_mut(2).unwrap().answers = |_| false;
    let cycles = |plan: &mut TracePlan| {
        plan.cycles = Some(40);
        plan.interval = Duration::from_millis(100);
    };
    let result = trace(hops.clone(), cycles).result(ProtocolAndPort::Icmp);
    assert_eq!(result.loss, None);
    let how: Vec<_> = result.hops.iter().map(|hop| hop.answers).collect();
    let (well, sparing, silent) = (HopAnswers::Well, HopAnswers::Sparing, HopAnswers::Silent);
    assert_eq!(how, [well, sparing, silent, well, well, well]);
    for hop in hops.iter_mut().skip(3) {
        hop.answers = |n| n % 8 != 3;
    }
    let loss = trace(hops, cycles)
        .result(ProtocolAndPort::Icmp)
        .loss
        .unwrap();
    assert_eq!(loss.begins_at_ttl, 4);
    assert!((loss.ratio - 0.125).abs() < 0.02, "{loss:?}");
}

#[test]
fn a_target_that_does_not_answer_ends_it_in_time() {
    let mut hops = line(5, 20 * MS);
    hops.last_mut().unwrap().answers = |_| false;
    let log = trace(hops, |_| {});
    let result = log.result(ProtocolAndPort::Icmp);
    assert!(!result.reached);
    assert_eq!(result.hops.len(), 5);
    assert_eq!(result.hops.last().unwrap().address, None);
    assert!(took_ms(&log) <= 1_500, "{}", took_ms(&log));
}

#[test]
fn no_further_than_so_many_silent_hops_beyond_the_last_that_answers() {
    // Two that are silent before the target, and one in the middle. One beyond the last that answers is shown.
    for (max_unknown, probed, shown) in [(1, 3, 3), (2, 7, 6), (3, 8, 8), (9, 8, 8)] {
        let mut path = line(8, 20 * MS);
        for silent in [2, 5, 6] {
            path.get_mut(silent).unwrap().answers = |_| false;
        }
        let log = trace(path, |plan| plan.max_unknown = Some(max_unknown));
        let result = log.result(ProtocolAndPort::Icmp);
        assert_eq!((result.reached, result.hops.len()), (shown == 8, shown));
        let furthest = log.shots.iter().map(|shot| shot.hops).max();
        assert!(furthest >= Some(probed), "{furthest:?}");
        assert!(max_unknown > 2 || furthest == Some(probed), "{furthest:?}");
    }
}

#[test]
fn the_time_of_grace_is_that_which_was_asked_for() {
    for (grace_ms, took) in [(50, 50..=120), (500, 500..=620), (9_000, 3_000..=3_200)] {
        let mut hops = line(5, 20 * MS);
        hops.last_mut().unwrap().answers = |_| false;
        let log = trace(hops, |plan| {
            plan.cycles = Some(1);
            plan.last_hop = 5;
            plan.grace = Some(Duration::from_millis(grace_ms));
        });
        assert!(
            took.contains(&took_ms(&log)),
            "{grace_ms}: {}",
            took_ms(&log)
        );
    }
}

#[test]
fn a_change_of_the_route_has_its_time() {
    let mut fake = Fake::new(line(4, 10 * MS));
    fake.detour_from_ns = fake.now + 2_250 * MS;
    let log = traced(fake, |plan| {
        plan.cycles = Some(10);
        plan.interval = Duration::from_millis(500);
    });
    let result = log.result(ProtocolAndPort::Icmp);
    let [change] = result.changes.as_slice() else {
        panic!("{:?}", result.changes)
    };
    assert_eq!((change.ttl, change.from_route, change.to_route), (2, 0, 1));
    assert!((change.at_s - 2.5).abs() < 1e-3 && (change.after_s - 2.0).abs() < 1e-3);
    let received: Vec<u64> = result.routes.iter().map(|route| route.received).collect();
    assert_eq!(received, [5, 5]);
    let moved = result.hops.get(1).unwrap();
    assert_eq!(moved.addresses.len(), 2);
    // What stands there now, and how far it is, is of the new route alone.
    assert_eq!(moved.address.as_deref(), Some("10.1.0.2"));
    let counts: Vec<_> = result
        .hops
        .iter()
        .map(|hop| (hop.received, hop.rtt_s.unwrap().count))
        .collect();
    assert_eq!(counts, [(10, 10), (10, 5), (10, 5), (10, 5)]);
}

#[test]
fn the_target_may_be_far_away() {
    let log = trace(line(255, 200 * MS), |plan| plan.last_hop = 255);
    let result = log.result(ProtocolAndPort::Icmp);
    assert!(result.reached);
    assert_eq!(result.hops.len(), 255);
}

#[test]
fn stopping_ends_an_endless_trace() {
    let mut fake = Fake::new(line(4, 10 * MS));
    let mut plan = TracePlan::new(target());
    plan.cycles = None;
    plan.interval = Duration::from_secs(1);
    let stop = AtomicBool::new(false);
    let log = run(&mut fake, plan, &stop, &mut |log| {
        stop.store(log.cycles >= 5, Ordering::Relaxed);
    });
    assert_eq!(log.cycles, 5);
    assert!(took_ms(&log) < 4_700, "{}", took_ms(&log));
}

#[test]
fn an_interface_that_goes_down_is_no_loss_on_the_path() {
    for (down_ms, for_ms, hears) in [(410, 300, 17), (410, 100_000, 5)] {
        let mut fake = Fake::new(line(5, 40 * MS));
        // While the answers of the fifth cycle are on their way.
        fake.down = (fake.now + down_ms * MS, for_ms * MS);
        let log = traced(fake, |plan| {
            plan.cycles = Some(20);
            plan.interval = Duration::from_millis(100);
        });
        let result = log.result(ProtocolAndPort::Icmp);
        assert!(result.reached && result.loss.is_none(), "{result:?}");
        assert!(log.refused > 0 && log.notes.iter().any(|note| note.contains("did not send")));
        let last = result.hops.last().unwrap();
        assert_eq!(last.sent, last.received);
        assert!(
            last.received >= hears - 2 && last.received <= hears,
            "{last:?}"
        );
    }
}

#[test]
fn answers_that_came_while_this_program_stood_still_count() {
    // When all is sent, and the last answers are on their way.
    for stops_ms in [60, 80, 100, 120] {
        let mut fake = Fake::new(line(5, 100 * MS));
        fake.stops = (fake.now + stops_ms * MS, 5_000 * MS);
        let log = traced(fake, |plan| plan.cycles = Some(3));
        let result = log.result(ProtocolAndPort::Icmp);
        assert!(
            result.reached && result.loss.is_none(),
            "{stops_ms}: {result:?}"
        );
        assert!(result.hops.iter().all(|hop| hop.sent == hop.received));
    }
}

#[test]
fn answers_that_this_host_dropped_are_no_loss_on_the_path() {
    let mut fake = Fake::new(line(5, 40 * MS));
    fake.buffer = 6;
    let log = traced(fake, |plan| {
        plan.cycles = Some(20);
        plan.interval = Duration::from_millis(20);
    });
    let result = log.result(ProtocolAndPort::Icmp);
    assert!(result.reached && result.loss.is_none(), "{result:?}");
    let dropped = |note: &String| note.contains("its own receive buffer was full");
    assert_eq!(log.notes.iter().filter(|note| dropped(note)).count(), 1);
    let last = result.hops.last().unwrap();
    assert!(
        last.sent == last.received && last.received > 0 && last.received < 20,
        "{last:?}"
    );
}

#[test]
fn there_may_be_255_hops_and_no_more() {
    for (hops, reached) in [(255, true), (300, false)] {
        let log = trace(line(hops, 200 * MS), |plan| plan.last_hop = 255);
        let result = log.result(ProtocolAndPort::Icmp);
        assert_eq!((result.reached, result.hops.len()), (reached, 255));
        assert!(result.loss.is_none() && result.hops.iter().all(|hop| hop.received == 3));
    }
}
