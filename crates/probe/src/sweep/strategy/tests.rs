//! Probing many in virtual time, over a network that does what each test says.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use super::*;
use crate::ping::sample::Measured;
use plumb_model::protocol::Protocol;
use plumb_net::datagram::{Failure, Unreachable};

const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;
const APART: u64 = 1_700_000_000_000_000_000;

const FAILURE: Failure = Failure {
    why: Unreachable::Port,
    by: Reporter::Unknown,
};

/// Answers the probe of that number after the delays that `answers` gives for it, in nanoseconds.
struct Virtual<F> {
    now: u64,
    stamped: bool,
    answers: F,
    coming: BTreeMap<(u64, u64), ManyEvent>,
    sent: Vec<(u64, u64)>,
    /// Time that a call of `send` takes.
    send_takes: u64,
    /// CLOCK_REALTIME steps by so much from then on.
    step: (u64, i64),
    targets: Vec<SocketAddr>,
    pause: Option<(u64, u64)>,
    /// A target that nothing can be sent to.
    refused: Option<u32>,
}

impl<F: FnMut(u64) -> Vec<u64>> Virtual<F> {
    fn new(plan: &ManyPlan, answers: F) -> Self {
        Self {
            now: START,
            stamped: true,
            answers,
            coming: BTreeMap::new(),
            sent: vec![],
            send_takes: 10_000,
            step: (u64::MAX, 0),
            targets: plan.targets.clone(),
            pause: None,
            refused: None,
        }
    }

    fn at(&self, ns: u64) -> Moment {
        let step = if ns >= self.step.0 { self.step.1 } else { 0 };
        Moment {
            monotonic_ns: ns,
            realtime_ns: (ns + APART).checked_add_signed(step).unwrap(),
            uncertainty_ns: 100,
        }
    }

    fn put(&mut self, at: u64, event: ManyEvent) {
        self.coming.insert(
            (at, self.coming.len() as u64 + self.sent.len() as u64 * 1000),
            event,
        );
    }

    fn answer(&self, number: u64, arrives: u64) -> ManyEvent {
        ManyEvent::Answered {
            number: Lower::of_32(number as u32),
            from: self.targets[(number % self.targets.len() as u64) as usize].ip(),
            size_bytes: 56,
            answer: Answer {
                kernel_ns: Some(self.at(arrives).realtime_ns),
                ..answer_at(number as u32, self.at(arrives + 20_000))
            },
        }
    }

    fn run(&mut self, plan: &ManyPlan) -> (ManyLog, Vec<ManySeen>) {
        let mut seen = vec![];
        let log = run(self, plan, &AtomicBool::new(false), |tell| {
            seen.push(tell())
        });
        (log, seen)
    }
}

impl<F: FnMut(u64) -> Vec<u64>> ManyNetwork for Virtual<F> {
    fn now(&mut self) -> Moment {
        self.at(self.now)
    }

    fn stamps_departures(&self) -> bool {
        self.stamped
    }

    fn send(&mut self, probes: &[(u64, u32)]) -> Sending {
        let before = self.at(self.now);
        let refused = |probe: &&(u64, u32)| Some(probe.1) == self.refused;
        if probes.first().filter(refused).is_some() {
            return Sending {
                sent: 0,
                before,
                after: before,
                error: Some(io::ErrorKind::NetworkUnreachable.into()),
            };
        }
        let sendable = probes.iter().take_while(|probe| !refused(probe)).count();
        let probes = probes.get(..sendable).unwrap_or_default();
        let step = self.send_takes / probes.len() as u64;
        for (place, (number, _)) in probes.iter().enumerate() {
            let departs = self.now + step * place as u64;
            self.sent.push((*number, departs));
            if self.stamped {
                let ns = self.at(departs).realtime_ns;
                self.put(
                    departs,
                    ManyEvent::Departed {
                        number: *number,
                        ns,
                    },
                );
            }
            for delay in (self.answers)(*number) {
                let answer = self.answer(*number, departs + delay);
                self.put(departs + delay, answer);
            }
        }
        self.now += self.send_takes;
        if let Some((at, takes)) = self.pause
            && self.now >= at
        {
            self.now += takes;
            self.pause = None;
        }
        Sending {
            sent: probes.len(),
            before,
            after: self.at(self.now),
            error: None,
        }
    }

    fn receive(&mut self, events: &mut Vec<ManyEvent>) -> io::Result<()> {
        let later = self.coming.split_off(&(self.now + 1, 0));
        events.extend(std::mem::replace(&mut self.coming, later).into_values());
        Ok(())
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let next = self.coming.keys().next().map_or(u64::MAX, |(at, _)| *at);
        self.now = self.now.max(until_ns.min(next));
        Ok(())
    }
}

fn answer_at(sequence: u32, at: Moment) -> Answer {
    Answer {
        sequence,
        at,
        kernel_ns: None,
        measured: None,
        said: None,
        far_end: None,
        hop_limit: Some(64),
        drops: Drops::default(),
    }
}

fn plan(targets: u32, rounds: u64) -> ManyPlan {
    let target = |n| SocketAddr::from((Ipv4Addr::from(0x0a00_0001 + n), 0));
    ManyPlan {
        rounds: Some(rounds),
        period: Duration::from_millis(100),
        timeout: Duration::from_millis(500),
        ..ManyPlan::new(Protocol::Icmp, (0..targets).map(target).collect())
    }
}

#[test]
fn targets_are_probed_in_turn_at_the_rate_and_by_the_period() {
    let plan = plan(5, 3);
    let mut net = Virtual::new(&plan, |_| vec![20 * MS]);
    let (log, seen) = net.run(&plan);
    let due: Vec<u64> = (0..15)
        .map(|n| START + n / 5 * 100 * MS + n % 5 * MS)
        .collect();
    assert_eq!(net.sent.iter().map(|s| s.1).collect::<Vec<_>>(), due);
    for tally in &log.tallies {
        assert_eq!((tally.sent, tally.received, tally.reordered), (3, 3, 0));
        assert_eq!((tally.min_ns, tally.max_ns), (20 * MS, 20 * MS));
        assert_eq!((tally.mean_s(), tally.stddev_s()), (Some(0.02), Some(0.0)));
    }
    assert_eq!(seen.len(), 15);
    assert_eq!(log.timestamps, TimestampSource::Kernel);
    assert_eq!(log.rtt_s.unwrap().count, 15);
    // A rate that does not fit the period stretches it.
    let slow = ManyPlan { pps: 10.0, ..plan };
    let mut net = Virtual::new(&slow, |_| vec![20 * MS]);
    net.run(&slow);
    assert_eq!(net.sent.last().unwrap().1, START + 14 * 100 * MS);
}

#[test]
fn nothing_is_sent_once_the_time_is_over_and_what_was_not_is_not_lost() {
    let long = ManyPlan {
        duration: Some(Duration::from_millis(500)),
        ..plan(2000, 1)
    };
    let mut net = Virtual::new(&long, |_| vec![20 * MS]);
    let (log, _) = net.run(&long);
    // One a millisecond.
    assert!((490..=501).contains(&net.sent.len()), "{}", net.sent.len());
    assert!(net.sent.iter().all(|sent| sent.1 <= START + 500 * MS));
    let of = |sent| log.tallies.iter().filter(move |tally| tally.sent == sent);
    assert_eq!(of(1).count(), net.sent.len());
    assert!(of(1).all(|tally| tally.received == 1));
}

#[test]
fn without_stamps_departures_lie_within_the_sending_of_their_batch() {
    let fast = ManyPlan {
        pps: 1e6,
        ..plan(32, 2)
    };
    let mut net = Virtual::new(&fast, |_| vec![3 * MS]);
    net.stamped = false;
    net.send_takes = 64_000;
    let (log, _) = net.run(&fast);
    assert_eq!(log.timestamps, TimestampSource::User);
    let rtt = log.rtt_s.unwrap();
    assert!(
        (rtt.min - 0.003).abs() < 10e-6 && (rtt.max - 0.003).abs() < 10e-6,
        "{rtt:?}"
    );
}

#[test]
fn a_pause_of_our_own_machine_does_not_become_a_burst() {
    let plan = ManyPlan {
        pps: 10_000.0,
        ..plan(2000, 1)
    };
    let mut net = Virtual::new(&plan, |_| vec![MS]);
    net.pause = Some((START + 50 * MS, 100 * MS));
    let (log, _) = net.run(&plan);
    assert_eq!(log.tallies.iter().filter(|t| t.received == 1).count(), 2000);
    // In no 10 ms more than 100 and what 5 ms are caught up with.
    for first in 0..net.sent.len() {
        let from = net.sent[first].1;
        let within = net.sent[first..]
            .iter()
            .take_while(|s| s.1 < from + 10 * MS)
            .count();
        assert!(within <= 100 + 50 + BATCH, "{within} from {from}");
    }
    assert!(log.lateness_s.unwrap().max < 0.15);
}

#[test]
fn losses_duplicates_late_answers_and_strangers_are_told_apart() {
    let plan = ManyPlan {
        period: Duration::from_millis(300),
        ..plan(4, 3)
    };
    let mut net = Virtual::new(&plan, |number| match number {
        0 => vec![],
        1 => vec![10 * MS, 20 * MS],
        2 => vec![600 * MS],
        // The second answer of the last target comes after its third.
        7 => vec![330 * MS],
        _ => vec![10 * MS],
    });
    let stranger = ManyEvent::Answered {
        number: Lower::of_32(4),
        from: Ipv4Addr::new(192, 0, 2, 1).into(),
        size_bytes: 56,
        answer: Answer {
            drops: Drops {
                full: 3,
                corrupted: 1,
            },
            ..answer_at(4, net.at(START + 400 * MS))
        },
    };
    net.put(START + 400 * MS, stranger);
    let unsent = net.answer(4_000_000, START + 160 * MS);
    net.put(START + 160 * MS, unsent);
    let (log, seen) = net.run(&plan);
    let counts: Vec<_> = log
        .tallies
        .iter()
        .map(|t| (t.sent, t.received, t.duplicates, t.reordered, t.late))
        .collect();
    assert_eq!(
        counts,
        [
            (3, 2, 0, 0, 0),
            (3, 3, 1, 0, 0),
            (3, 2, 0, 0, 1),
            (3, 3, 0, 1, 0)
        ]
    );
    assert_eq!(
        (log.strays, log.drops.full, log.drops.corrupted),
        (1, 3, 1),
        "a socket counts its drops together"
    );
    let lost: Vec<_> = seen
        .iter()
        .filter_map(|seen| match seen {
            ManySeen::Lost { target, round, .. } => Some((*target, *round)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(0, 0), (2, 0)]);
}

#[test]
fn an_error_is_of_the_target_that_it_was_sent_to() {
    // So many that the lower half of the number comes again within the timeout.
    let plan = ManyPlan {
        pps: 1e6,
        timeout: Duration::from_millis(500),
        ..plan(70_000, 1)
    };
    let mut net = Virtual::new(&plan, |_| vec![]);
    for (number, at) in [(3u64, 200), (65_539, 201)] {
        let event = ManyEvent::Failed {
            to: plan.targets[number as usize].ip(),
            number: Lower::of_16(number as u16),
            failure: FAILURE,
        };
        net.put(START + at * MS, event);
    }
    let (log, _) = net.run(&plan);
    for (number, tally) in log.tallies.iter().enumerate() {
        let told = matches!(number, 3 | 65_539);
        assert_eq!(tally.error.is_some(), told, "{number}");
    }
}

#[test]
fn what_our_own_machine_did_not_send_is_told_of_its_target() {
    let plan = plan(3, 1);
    let mut net = Virtual::new(&plan, |_| vec![20 * MS]);
    net.refused = Some(1);
    let (log, seen) = net.run(&plan);
    let tally = &log.tallies[1];
    assert_eq!((tally.sent, tally.refused), (0, 1));
    assert!(tally.error.as_ref().unwrap().contains("did not send"));
    let told: Vec<u32> = seen
        .iter()
        .filter_map(|seen| match seen {
            ManySeen::Failed { target, .. } => Some(*target),
            _ => None,
        })
        .collect();
    assert_eq!(told, [1]);
}

#[test]
fn numbers_are_known_by_their_lower_bits() {
    let below = |lower: Lower, next| lower.below(next).take(3).collect::<Vec<_>>();
    assert_eq!(below(Lower::of_16(5), 5), [0; 0], "not sent yet");
    assert_eq!(below(Lower::of_16(5), 6), [5]);
    assert_eq!(below(Lower::of_16(5), 200_000), [196_613, 131_077, 65_541]);
    assert_eq!(below(Lower::of_32(7), 1 << 33), [(1 << 32) + 7, 7]);
    assert_eq!(below(Lower::of_32(7), 0), [0; 0]);
    assert!(Lower::of_16(5).is_of(65_541) && !Lower::of_32(5).is_of(65_541));
}

#[test]
fn what_answers_were_is_counted_and_failures_are_kept_in_words() {
    let plan = plan(2, 2);
    let mut net = Virtual::new(&plan, |number| match number {
        1 => vec![],
        _ => vec![10 * MS],
    });
    let why = "nobody there".to_owned();
    net.put(START + 300 * MS, ManyEvent::Told { number: 1, why });
    let refused = Answer {
        said: Some(Said::Reset),
        measured: Some(Measured {
            rtt: Duration::from_millis(2),
            timestamps: TimestampSource::Kernel,
            phases: None,
        }),
        ..answer_at(0, net.at(START + 5 * MS))
    };
    net.put(
        START + 5 * MS,
        ManyEvent::Answered {
            number: Lower::of_32(0),
            from: plan.targets[0].ip(),
            size_bytes: 0,
            answer: refused,
        },
    );
    let (log, _) = net.run(&plan);
    assert_eq!(log.answers, BTreeMap::from([("RST".to_owned(), 1)]));
    assert_eq!(log.tallies[1].error.as_deref(), Some("nobody there"));
    assert_eq!((log.tallies[1].sent, log.tallies[1].received), (2, 1));
    assert_eq!(log.tallies[0].min_ns, 2 * MS);
}

#[test]
fn a_clock_step_makes_no_wrong_round_trip() {
    for step in [-3_000 * MS as i64, 3_000 * MS as i64] {
        let plan = plan(10, 5);
        let mut net = Virtual::new(&plan, |_| vec![30 * MS]);
        net.step = (START + 215 * MS, step);
        let (log, _) = net.run(&plan);
        let rtt = log.rtt_s.unwrap();
        assert_eq!(rtt.count, 50);
        assert!(rtt.min >= 0.0299 && rtt.max <= 0.0302, "{rtt:?}");
        assert_eq!(log.timestamps, TimestampSource::User);
    }
}

proptest::proptest! {
    #[test]
    fn whatever_comes_back_the_counts_hold(
        delays in proptest::collection::vec(proptest::collection::vec(0u64..900, 0..3), 1..40),
        strange in proptest::collection::vec(proptest::prelude::any::<(u32, u16, u64)>(), 0..10),
    ) {
        let plan = plan(delays.len() as u32, 1);
        let mut net = Virtual::new(&plan, |n| delays[n as usize].iter().map(|ms| ms * MS).collect());
        for (number, sequence, ns) in strange {
            let to = plan.targets[0].ip();
            net.put(START + ns % (1000 * MS), ManyEvent::Failed { to, number: Lower::of_16(sequence), failure: FAILURE });
            net.put(START, ManyEvent::Departed { number: number.into(), ns });
        }
        let (log, _) = net.run(&plan);
        let sent: u64 = log.tallies.iter().map(|t| t.sent).sum();
        let received: u64 = log.tallies.iter().map(|t| t.received).sum();
        let in_time = delays.iter().filter(|d| d.iter().min().is_some_and(|ms| *ms <= 499)).count() as u64;
        proptest::prop_assert_eq!(sent, delays.len() as u64);
        proptest::prop_assert!(received >= in_time && received <= delays.iter().filter(|d| !d.is_empty()).count() as u64);
    }
}
