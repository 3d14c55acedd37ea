//! Probing in virtual time, over a network that does what each test says.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod following;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use plumb_model::protocol::Protocol;
use plumb_model::results::TimestampSource;
use plumb_net::datagram::Reporter;

use super::*;
use crate::ping::plan::Pace;
use crate::ping::sample::FarEnd;
use proptest::strategy::Strategy as _;

const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;
/// CLOCK_REALTIME less CLOCK_MONOTONIC, until the clock is stepped.
const APART: u64 = 1_700_000_000_000_000_000;

/// Answers each probe after the delays that `answers` gives for it.
struct Virtual<F> {
    now: u64,
    /// How far CLOCK_REALTIME has been stepped, and from when.
    step: (u64, i64),
    answers: F,
    coming: BTreeMap<(u64, u64), Event>,
    sent: Vec<u64>,
    stop_at: u64,
    receive_fails_from: u64,
}

impl<F: FnMut(u32) -> Vec<u64>> Virtual<F> {
    fn new(answers: F) -> Self {
        Self {
            now: START,
            step: (u64::MAX, 0),
            answers,
            coming: BTreeMap::new(),
            sent: vec![],
            stop_at: u64::MAX,
            receive_fails_from: u64::MAX,
        }
    }

    fn at(&self, monotonic_ns: u64) -> Moment {
        let step = if monotonic_ns >= self.step.0 {
            self.step.1
        } else {
            0
        };
        Moment {
            monotonic_ns,
            realtime_ns: (monotonic_ns + APART).checked_add_signed(step).unwrap(),
            uncertainty_ns: 100,
        }
    }

    fn put(&mut self, at: u64, event: Event) {
        let unique = self.coming.len() as u64 + self.sent.len() as u64 * 1000;
        self.coming.insert((at, unique), event);
    }

    fn run(&mut self, plan: &Plan) -> ProbeLog {
        let stop = AtomicBool::new(false);
        let mut stoppable = Stoppable {
            network: self,
            stop: &stop,
        };
        run(
            &mut stoppable,
            plan,
            (&stop, &AtomicBool::new(false)),
            &ProgressHandle::default(),
        )
    }
}

struct Stoppable<'a, F> {
    network: &'a mut Virtual<F>,
    stop: &'a AtomicBool,
}

impl<F: FnMut(u32) -> Vec<u64>> Network for Stoppable<'_, F> {
    fn id(&self) -> u32 {
        7
    }

    fn now(&mut self) -> Moment {
        self.stop
            .store(self.network.now >= self.network.stop_at, Ordering::Relaxed);
        self.network.at(self.network.now)
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        let net = &mut *self.network;
        let delays = (net.answers)(sequence);
        if delays == [u64::MAX] {
            return Err(io::Error::from_raw_os_error(105)); // ENOBUFS
        }
        let departed = net.now + 10_000;
        net.sent.push(net.now);
        net.put(
            departed,
            Event::Departed {
                sequence,
                ns: net.at(departed).realtime_ns,
            },
        );
        for delay in delays {
            let arrives = departed + delay;
            let at = net.at(arrives + 50_000);
            let kernel_ns = Some(net.at(arrives).realtime_ns);
            net.put(
                arrives,
                Event::Answered(Answer {
                    kernel_ns,
                    hop_limit: Some(60),
                    ..Answer::at(at, sequence)
                }),
            );
        }
        Ok(())
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let net = &mut *self.network;
        if net.now >= net.receive_fails_from {
            return Err(io::Error::from_raw_os_error(100)); // ENETDOWN
        }
        match net.coming.first_key_value() {
            Some((&(at, _), _)) if at <= until_ns.max(net.now) => {
                net.now = net.now.max(at);
                Ok(net.coming.pop_first().map(|(_, event)| event))
            }
            _ => {
                net.now = net.now.max(until_ns);
                Ok(None)
            }
        }
    }
}

fn plan(count: u64) -> Plan {
    let target = (IpAddr::from(Ipv4Addr::LOCALHOST), 1).into();
    Plan {
        count: Some(count),
        ..Plan::new(Protocol::Udp, "far", target)
    }
}

fn rtts_ms(log: &ProbeLog) -> Vec<Option<f64>> {
    log.samples
        .iter()
        .map(|s| s.rtt.map(|rtt| rtt.as_secs_f64() * 1e3))
        .collect()
}

#[test]
fn probes_leave_on_schedule_whatever_the_answers_do() {
    // Each answer takes two and a half intervals.
    let mut net = Virtual::new(|_| vec![250 * MS]);
    let log = net.run(&plan(5));
    let due: Vec<u64> = (0..5).map(|i| START + i * 100 * MS).collect();
    assert_eq!(net.sent, due);
    assert_eq!(rtts_ms(&log), [Some(250.0); 5]);
    let result = log.result(0.0, 10.0);
    assert_eq!(
        (
            result.sent,
            result.received,
            result.reordered,
            result.duplicates
        ),
        (5, 5, 0, 0)
    );
    assert_eq!(result.timestamps, TimestampSource::Kernel);
    assert_eq!(result.lateness_s.unwrap().max, 0.0);
    assert!(
        (log.duration_s - 0.65).abs() < 0.001,
        "ends with the last answer, not with its timeout"
    );
}

#[test]
fn a_loss_at_the_end_is_waited_for_and_counted() {
    let mut net = Virtual::new(|n| if n == 4 { vec![] } else { vec![20 * MS] });
    let log = net.run(&plan(5));
    assert_eq!(rtts_ms(&log)[4], None);
    assert!(
        (log.duration_s - 3.4).abs() < 1e-9,
        "three seconds after the last was sent"
    );
    let result = log.result(0.0, 10.0);
    assert_eq!(
        (result.sent, result.received, result.loss_ratio),
        (5, 4, Some(0.2))
    );
}

#[test]
fn duplicates_and_reordering_are_counted_as_rfc_4737_has_them() {
    // Arrivals: 0, 2, 2, 1, 3: only 1 is below a number already seen.
    let mut net = Virtual::new(|n| match n {
        1 => vec![250 * MS],
        2 => vec![20 * MS, 30 * MS],
        _ => vec![20 * MS],
    });
    let log = net.run(&plan(6));
    let result = log.result(0.0, 10.0);
    assert_eq!(
        (result.received, result.duplicates, result.reordered),
        (6, 1, 1)
    );
    assert!(log.samples[1].reordered && !log.samples[2].reordered);
    assert_eq!(log.samples[2].duplicates, 1);
    assert_eq!(rtts_ms(&log)[2], Some(20.0), "the first answer counts");
}

#[test]
fn a_late_answer_is_a_lost_one() {
    let short = Plan {
        timeout: Duration::from_millis(150),
        ..plan(6)
    };
    let mut net = Virtual::new(|n| {
        if n == 1 {
            vec![160 * MS]
        } else {
            vec![20 * MS]
        }
    });
    let log = net.run(&short);
    let result = log.result(0.0, 10.0);
    assert_eq!((result.sent, result.received, result.reordered), (6, 5, 0));
    assert!(log.samples[1].late && log.samples[1].rtt.is_none());
}

#[test]
fn a_probe_that_was_refused_here_is_no_loss_there() {
    let mut net = Virtual::new(|n| {
        if n == 1 {
            vec![u64::MAX]
        } else {
            vec![20 * MS]
        }
    });
    let log = net.run(&plan(4));
    let result = log.result(0.0, 10.0);
    assert_eq!(
        (result.sent, result.received, result.send_errors),
        (3, 3, 1)
    );
    assert_eq!(
        log.samples.iter().map(|s| s.sequence).collect::<Vec<_>>(),
        [0, 2, 3]
    );
    assert_eq!(log.notes.len(), 1);
}

#[test]
fn asked_to_stop_it_ends_within_the_timeout() {
    let mut net = Virtual::new(|_| vec![]);
    net.stop_at = START + 450 * MS;
    let log = net.run(&Plan {
        count: None,
        ..plan(0)
    });
    assert_eq!(net.sent.len(), 5);
    assert!((3.4..3.6).contains(&log.duration_s), "{}", log.duration_s);
    let mut answered = Virtual::new(|_| vec![20 * MS]);
    answered.stop_at = START + 450 * MS;
    let log = answered.run(&Plan {
        count: None,
        ..plan(0)
    });
    assert!(
        log.duration_s < 0.6,
        "nothing to wait for: {}",
        log.duration_s
    );
}

#[test]
fn nothing_to_send_ends_at_once() {
    let log = Virtual::new(|_| vec![]).run(&plan(0));
    assert_eq!((log.samples.len(), log.duration_s), (0, 0.0));
}

#[test]
fn a_clock_step_spoils_neither_round_trips_nor_the_schedule() {
    for step_ns in [-3_600_000 * MS as i64, 3_600_000 * MS as i64] {
        let mut net = Virtual::new(|_| vec![30 * MS]);
        net.step = (START + 215 * MS, step_ns); // while the third probe is under way
        let log = net.run(&plan(5));
        for (rtt, n) in rtts_ms(&log).into_iter().zip(0..) {
            // Our own readings hold the 10 µs to the scheduler and the 50 µs to our reading too.
            assert_eq!(
                rtt,
                Some(if n == 2 { 30.06 } else { 30.0 }),
                "probe {n}, step {step_ns}"
            );
        }
        assert_eq!(log.samples[2].timestamps, TimestampSource::User);
        assert_eq!(log.result(0.0, 10.0).timestamps, TimestampSource::User);
        assert_eq!(log.result(0.25, 10.0).timestamps, TimestampSource::Kernel);
        assert_eq!(net.sent.len(), 5);
    }
}

#[test]
fn numbers_never_sent_and_icmp_errors_leave_the_counts_alone() {
    let mut net = Virtual::new(|_| vec![20 * MS]);
    let at = net.at(START + 50 * MS);
    let forged = Answer::at(at, 99);
    net.put(at.monotonic_ns, Event::Answered(forged));
    net.put(
        at.monotonic_ns,
        Event::Departed {
            sequence: 77,
            ns: 1,
        },
    );
    let by_nobody = Failure {
        why: Unreachable::Port,
        by: Reporter::Unknown,
    };
    net.put(at.monotonic_ns, Event::Failed(by_nobody));
    let log = net.run(&plan(3));
    assert_eq!(log.result(0.0, 10.0).received, 3);
    assert_eq!(log.notes, ["an ICMP error came back: port unreachable"]);
    let errors = log.result(0.0, 10.0).icmp_errors;
    assert_eq!(
        errors.into_iter().collect::<Vec<_>>(),
        [("port unreachable".to_owned(), 1)]
    );
}

#[test]
fn where_nobody_is_left_to_answer_nothing_is_waited_for() {
    let mut net = Virtual::new(|_| vec![]);
    net.stop_at = START + 50 * MS;
    let patient = Plan {
        timeout: Duration::from_secs(10),
        ..plan(1000)
    };
    let gone = AtomicBool::new(false);
    let mut stoppable = Stoppable {
        network: &mut net,
        stop: &gone,
    };
    let log = run(
        &mut stoppable,
        &patient,
        (&gone, &gone),
        &ProgressHandle::default(),
    );
    assert!(log.samples.iter().all(|sample| sample.rtt.is_none()));
    assert!(!log.samples.is_empty());
    assert!(net.now <= net.stop_at + STOP_CHECK_NS, "{}", net.now);
}

#[test]
fn what_became_of_each_probe_is_told_once() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut net = Virtual::new(|n| match n {
        1 => vec![],
        2 => vec![20 * MS, 30 * MS],
        3 => vec![200 * MS],
        _ => vec![20 * MS],
    });
    let short = Plan {
        timeout: Duration::from_millis(150),
        ..plan(6)
    };
    let stop = AtomicBool::new(false);
    let mut stoppable = Stoppable {
        network: &mut net,
        stop: &stop,
    };
    run(
        &mut stoppable,
        &short,
        (&stop, &AtomicBool::new(false)),
        &ProgressHandle::telling(sender),
    );
    let told: Vec<_> = receiver
        .iter()
        .map(|seen| match seen {
            Seen::Answered {
                sequence,
                hop_limit: Some(60),
                ..
            } => ('a', sequence),
            Seen::Again { sequence } => ('d', sequence),
            Seen::Lost { sequence } => ('l', sequence),
            Seen::Outstanding { sequence } => ('o', sequence),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            ('a', 0),
            ('o', 1),
            ('a', 2),
            ('d', 2),
            ('l', 1),
            ('o', 3),
            ('a', 4),
            ('l', 3),
            ('a', 5)
        ]
    );
}

#[test]
fn a_change_of_the_way_back_shows_in_the_hop_limit() {
    let clock = Virtual::new(|_| vec![]);
    let mut prober = Prober::new(&plan(4), clock.at(START));
    let quiet = ProgressHandle::default();
    for (sequence, hops) in [(0, 60), (1, 58), (2, 58), (3, 60)] {
        prober.sent(
            clock.at(START + u64::from(sequence) * 100 * MS),
            Ok(()),
            &quiet,
        );
        let answer = Answer {
            hop_limit: Some(hops),
            ..Answer::at(
                clock.at(START + u64::from(sequence) * 100 * MS + 20 * MS),
                sequence,
            )
        };
        prober.take(Event::Answered(answer), &quiet);
    }
    let result = prober.log(&plan(4), 7, START).result(0.0, 1.0);
    assert_eq!(result.hop_limit_changes, 2);
    assert_eq!(result.hop_limits.len(), 2);
}

#[test]
fn times_of_the_far_end_that_make_no_sense_are_noted() {
    let clock = Virtual::new(|_| vec![]);
    let log_of = |sent_ns| {
        let mut prober = Prober::new(&plan(1), clock.at(START));
        prober.sent(clock.at(START), Ok(()), &ProgressHandle::default());
        let answer = Event::Answered(Answer {
            far_end: Some(FarEnd {
                received_ns: 0,
                sent_ns,
                count: None,
                hop_limit: None,
            }),
            ..Answer::at(clock.at(START + 20 * MS), 0)
        });
        prober.take(answer, &ProgressHandle::default());
        prober.log(&plan(1), 7, START + 20 * MS)
    };
    assert!(log_of(3 * MS as i64).notes.is_empty());
    let log = log_of(-1);
    assert_eq!(log.residences_ignored(), 1);
    assert!(
        matches!(log.notes.as_slice(), [note] if note.contains("of 1 answers")),
        "{:?}",
        log.notes
    );
}

#[test]
fn drops_of_our_own_socket_are_counted_once() {
    let clock = Virtual::new(|_| vec![]);
    let mut prober = Prober::new(&plan(3), clock.at(START));
    let drops = |full, corrupted| Drops { full, corrupted };
    for (ms, drops) in [(30, drops(2, 0)), (130, drops(2, 0)), (230, drops(5, 1))] {
        let at = clock.at(START + ms * MS);
        let answer = Answer {
            drops,
            ..Answer::at(at, 0)
        };
        prober.take(Event::Answered(answer), &ProgressHandle::default());
    }
    let log = prober.log(&plan(3), 7, START);
    assert_eq!(log.drops, [(0.03, drops(2, 0)), (0.23, drops(3, 1))]);
    assert_eq!(log.result(0.0, 1.0).dropped_here, 5);
}

#[test]
fn a_socket_that_only_fails_ends_it() {
    let mut net = Virtual::new(|_| vec![20 * MS]);
    net.receive_fails_from = START + 250 * MS;
    let log = net.run(&plan(100));
    assert!(net.sent.len() <= 4);
    assert!(
        log.notes.iter().any(|note| note.contains("ended early")),
        "{:?}",
        log.notes
    );
}

proptest::proptest! {
    #[test]
    fn whatever_comes_back_the_counts_hold(
        // What comes in the very nanosecond of the timeout is in time or not, as one looks first.
        delays in proptest::collection::vec(
            proptest::collection::vec((0u64..5_000).prop_filter("the timeout", |ms| *ms != 3_000), 0..4),
            1..30,
        ),
    ) {
        let mut net = Virtual::new(|n| delays[n as usize].iter().map(|ms| ms * MS).collect());
        let log = net.run(&plan(delays.len() as u64));
        let result = log.result(0.0, f64::INFINITY);
        let in_time = delays.iter().filter(|d| d.iter().min().is_some_and(|ms| *ms <= 3_000)).count() as u64;
        proptest::prop_assert_eq!((result.sent, result.received), (delays.len() as u64, in_time));
        proptest::prop_assert!(result.reordered < result.sent);
        // It ends within the timeout of the last probe.
        proptest::prop_assert!(log.duration_s <= 0.1 * (delays.len() - 1) as f64 + 3.0 + 1e-6);
    }
}

#[test]
fn who_sent_an_error_and_how_far_probes_were_to_go_are_told() {
    let mut net = Virtual::new(|_| vec![]);
    let at = net.at(START + 50 * MS);
    let expired = Failure {
        why: Unreachable::HopLimit,
        by: Reporter::Host([192, 0, 2, 7].into()),
    };
    net.put(at.monotonic_ns, Event::Failed(expired));
    let short = Plan {
        hop_limit: Some(2),
        ..plan(3)
    };
    let log = net.run(&short);
    let [error, hops] = log.notes.as_slice() else {
        panic!("{:?}", log.notes);
    };
    assert!(error.contains("from 192.0.2.7: hop limit"), "{error}");
    assert!(hops.contains("a hop limit of 2"), "{hops}");
}
