//! Which message is allowed when, one by one and in any order.

#![allow(clippy::unwrap_used)]

use super::super::Token;
use super::super::flow::TcpFlow;
use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    max_duration_s: 10.0,
    max_streams: 4,
};

fn hello() -> ClientMessage {
    ClientMessage::Hello {
        version: VERSION,
        plumb: String::new(),
        waits_s: None,
        unpacks: false,
    }
}

fn start(phase: u32, down_streams: u32, up_streams: u32) -> Start {
    Start {
        phase,
        flows: vec![
            tcp(down_streams, OneDirection::Down),
            tcp(up_streams, OneDirection::Up),
        ],
        duration_s: 2.0,
        byte_limit: None,
    }
}

fn tcp(count: u32, role: OneDirection) -> Flows {
    Flows::tcp(count, role, TcpFlow::default())
}

fn preamble(phase: u32, role: OneDirection, stream: u32) -> Preamble {
    Preamble {
        token: Token([0; 16]),
        phase,
        stream,
        role,
        tls: false,
    }
}

fn tell(session: &mut ServerSession, at_s: u64, message: ClientMessage) -> Vec<Step> {
    session.on_message(Duration::from_secs(at_s), message, &mut |_| {
        Ok(Admitted::Now)
    })
}

fn at(session: &mut ServerSession, at_s: u64) -> Vec<Step> {
    session.on_time(Duration::from_secs(at_s), &mut |_| Ok(Admitted::Now))
}

fn idle() -> ServerSession {
    let mut session = ServerSession::new(LIMITS);
    assert_eq!(tell(&mut session, 0, hello()), [Step::Welcome]);
    session
}

fn reason(steps: &[Step]) -> Option<Refusal> {
    steps.iter().find_map(|step| match step {
        Step::Send(ServerMessage::Refused { reason, .. }) => Some(*reason),
        _ => None,
    })
}

#[test]
fn a_phase_runs_when_all_streams_are_there() {
    let mut session = idle();
    let steps = tell(&mut session, 1, ClientMessage::Start(start(1, 1, 1)));
    assert_eq!(steps, [Step::Send(ServerMessage::Ready { phase: 1 })]);
    let now = Duration::from_secs(2);
    assert_eq!(
        session.on_attached(now, &preamble(1, OneDirection::Down, 0), Transport::Tcp),
        Ok(vec![])
    );
    assert_eq!(
        session.on_attached(now, &preamble(1, OneDirection::Down, 0), Transport::Tcp),
        Err(Unexpected)
    );
    assert_eq!(
        session.on_attached(now, &preamble(2, OneDirection::Up, 0), Transport::Tcp),
        Err(Unexpected)
    );
    assert_eq!(
        session.on_attached(now, &preamble(1, OneDirection::Up, 0), Transport::Tcp),
        Ok(vec![Step::Run(start(1, 1, 1))])
    );
    assert_eq!(session.deadline(), Some(Duration::from_secs(9)));
    assert_eq!(
        tell(&mut session, 4, ClientMessage::Stop { phase: 1 }),
        [Step::Finish { phase: 1 }]
    );
    assert_eq!(tell(&mut session, 5, ClientMessage::Stop { phase: 1 }), []);
}

#[test]
fn time_ends_what_the_client_does_not() {
    let mut session = idle();
    tell(&mut session, 0, ClientMessage::Start(start(1, 1, 0)));
    assert_eq!(at(&mut session, 7), []);
    let steps = at(&mut session, 8);
    assert_eq!(
        (steps.first(), reason(&steps)),
        (Some(&Step::Abandon), Some(Refusal::NotAttached))
    );
    tell(&mut session, 20, ClientMessage::Start(start(2, 1, 0)));
    session
        .on_attached(
            Duration::from_secs(20),
            &preamble(2, OneDirection::Down, 0),
            Transport::Tcp,
        )
        .unwrap();
    assert_eq!(at(&mut session, 26), []);
    assert_eq!(at(&mut session, 27), [Step::Finish { phase: 2 }]);
}

#[test]
fn a_phase_waits_for_its_turn_and_the_client_is_told() {
    let ms = Duration::from_millis;
    let later = |ahead| {
        move |_: &Start| {
            Ok(Admitted::Later {
                ahead,
                after_s: Some(9.0),
            })
        }
    };
    let queued = |ahead| {
        Step::Send(ServerMessage::Queued {
            ahead,
            after_s: Some(9.0),
        })
    };
    let ask = || ClientMessage::Start(start(1, 1, 0));
    let mut session = idle();
    assert_eq!(session.on_message(ms(0), ask(), &mut later(2)), [queued(2)]);
    assert_eq!(session.on_time(ms(10), &mut |_| unreachable!()), []);
    assert_eq!(session.on_time(ms(500), &mut later(1)), []);
    assert_eq!(session.on_time(ms(1000), &mut later(1)), [queued(1)]);
    // Heartbeats are answered, another phase is not begun.
    let steps = tell(&mut session, 1, ClientMessage::Start(start(2, 1, 0)));
    assert_eq!(reason(&steps), Some(Refusal::Busy));
    let ready = Step::Send(ServerMessage::Ready { phase: 1 });
    assert_eq!(at(&mut session, 2), [ready]);
    // The streams have their time from then on.
    assert_eq!(session.deadline(), Some(ms(2000) + ATTACH_TIMEOUT));

    let mut session = idle();
    session.on_message(ms(0), ask(), &mut later(1));
    let stopped = tell(&mut session, 1, ClientMessage::Stop { phase: 1 });
    assert_eq!(stopped.first(), Some(&Step::Abandon));

    let mut session = idle();
    session.on_message(ms(0), ask(), &mut later(1));
    let never = session.on_time(ms(500), &mut |_| Err((Refusal::Busy, "in 7 s".to_owned())));
    assert_eq!(
        (never.first(), reason(&never)),
        (Some(&Step::Abandon), Some(Refusal::Busy))
    );
    assert_eq!(session.deadline(), None);
}

#[test]
fn what_exceeds_the_limits_is_refused_and_the_session_goes_on() {
    let mut session = idle();
    let mut asked = |change: &dyn Fn(&mut Start)| {
        let mut start = start(5, 1, 0);
        change(&mut start);
        reason(&tell(&mut session, 0, ClientMessage::Start(start)))
    };
    assert_eq!(
        asked(&|s| s.flows.push(tcp(4, OneDirection::Up))),
        Some(Refusal::Streams)
    );
    assert_eq!(
        asked(&|s| s.flows = vec![tcp(u32::MAX, OneDirection::Up); 3]),
        Some(Refusal::Streams)
    );
    assert_eq!(asked(&|s| s.flows.clear()), Some(Refusal::Streams));
    for duration_s in [0.0, -1.0, 10.1, f64::NAN, f64::INFINITY] {
        assert_eq!(
            asked(&|s| s.duration_s = duration_s),
            Some(Refusal::Duration)
        );
    }
    assert_eq!(
        asked(&|s| {
            let cc = Some("../../bbr".into());
            s.flows = vec![Flows::tcp(
                1,
                OneDirection::Up,
                TcpFlow {
                    cc,
                    ..TcpFlow::default()
                },
            )];
        }),
        Some(Refusal::Malformed)
    );
    assert_eq!(asked(&|_| ()), None);
    assert_eq!(asked(&|s| s.phase = 6), Some(Refusal::Busy));
}

#[test]
fn what_makes_no_sense_closes() {
    for messages in [
        vec![ClientMessage::Ping { id: 1 }],
        vec![hello(), hello()],
        vec![hello(), ClientMessage::Stop { phase: 3 }],
        vec![ClientMessage::Hello {
            version: VERSION + 1,
            plumb: String::new(),
            waits_s: None,
            unpacks: false,
        }],
    ] {
        let mut session = ServerSession::new(LIMITS);
        let steps: Vec<_> = messages
            .into_iter()
            .flat_map(|m| tell(&mut session, 0, m))
            .collect();
        assert_eq!(steps.last(), Some(&Step::Close));
        assert_eq!(tell(&mut session, 1, hello()), []);
    }
}

#[test]
fn one_trace_at_a_time_and_none_under_load() {
    let request = |id| TraceRequest {
        id,
        protocol: None,
        max_hops: 30,
        cycles: 3,
    };
    let refused = |steps: &[Step]| {
        steps.iter().find_map(|step| match step {
            Step::Send(ServerMessage::TraceRefused { id, reason, .. }) => Some((*id, *reason)),
            _ => None,
        })
    };
    let mut session = idle();
    let ask = |session: &mut ServerSession, id| tell(session, 0, ClientMessage::Trace(request(id)));
    assert_eq!(ask(&mut session, 1), [Step::Trace(request(1))]);
    assert_eq!(refused(&ask(&mut session, 2)), Some((2, Refusal::Busy)));
    // Nor a load beside a trace.
    let steps = tell(&mut session, 0, ClientMessage::Start(start(1, 1, 0)));
    assert!(matches!(
        steps.as_slice(),
        [Step::Send(ServerMessage::Refused {
            reason: Refusal::Busy,
            ..
        })]
    ));
    let done = ServerMessage::Pong { id: 1 };
    assert_eq!(session.on_traced(done.clone()), [Step::Send(done)]);
    let endless = ClientMessage::Trace(TraceRequest {
        max_hops: 255,
        ..request(3)
    });
    assert_eq!(
        refused(&tell(&mut session, 0, endless)),
        Some((3, Refusal::Malformed))
    );
    tell(&mut session, 0, ClientMessage::Start(start(1, 1, 0)));
    assert_eq!(refused(&ask(&mut session, 4)), Some((4, Refusal::Busy)));
    let mut greeting = ServerSession::new(LIMITS);
    assert_eq!(ask(&mut greeting, 5).last(), Some(&Step::Close));
    assert_eq!(greeting.on_traced(ServerMessage::Pong { id: 1 }), []);
}

#[derive(Debug, Clone)]
enum Event {
    Traced,
    Message(ClientMessage),
    Attached(Preamble),
    Time(u64),
    Failed,
}

fn events() -> impl Strategy<Value = Event> {
    let starts =
        (0..6_u32, 0..4_u32, 0..4_u32, -1.0..12.0_f64).prop_map(|(phase, down, up, duration_s)| {
            Event::Message(ClientMessage::Start(Start {
                duration_s,
                ..start(phase, down, up)
            }))
        });
    prop_oneof![
        1 => Just(Event::Message(hello())),
        3 => starts,
        2 => (0..6_u32).prop_map(|phase| Event::Message(ClientMessage::Stop { phase })),
        1 => any::<u64>().prop_map(|id| Event::Message(ClientMessage::Ping { id })),
        2 => (any::<u32>(), any::<u8>(), 0..8_u8).prop_map(|(id, max_hops, cycles)| {
            Event::Message(ClientMessage::Trace(TraceRequest { id, protocol: None, max_hops, cycles }))
        }),
        1 => Just(Event::Traced),
        8 => (0..6_u32, 0..3_u32, any::<bool>()).prop_map(|(phase, stream, up)| {
            Event::Attached(preamble(phase, if up { OneDirection::Up } else { OneDirection::Down }, stream))
        }),
        1 => (0..20_u64).prop_map(Event::Time),
        1 => Just(Event::Failed),
    ]
}

proptest! {
    /// An admitted phase, or one that waits for its turn, ends exactly once, by Finish or Abandon, before the next is
    /// admitted; a phase that finishes ran before; after Close there is nothing.
    #[test]
    fn every_phase_ends_once(first in any::<bool>(), rest in proptest::collection::vec(events(), 0..60),
                             answers in any::<u64>()) {
        let mut session = ServerSession::new(LIMITS);
        let mut now = Duration::ZERO;
        let (mut admitted, mut running, mut closed, mut tracing) = (false, false, false, false);
        let opening = first.then(|| Event::Message(hello()));
        let answer = |number: u32| match answers.rotate_right(2 * number) & 3 {
            0 => Err((Refusal::Busy, String::new())),
            1 => Ok(Admitted::Later { ahead: 1, after_s: None }),
            _ => Ok(Admitted::Now),
        };
        for (number, event) in opening.into_iter().chain(rest).enumerate() {
            let (mut asked, answer) = (0, answer(number as u32));
            let steps = match event {
                Event::Message(message) => session.on_message(now, message, &mut |_| {
                    asked += 1;
                    answer.clone()
                }),
                Event::Attached(preamble) => session.on_attached(now, &preamble, Transport::Tcp).unwrap_or_default(),
                Event::Time(seconds) => {
                    now += Duration::from_secs(seconds);
                    session.on_time(now, &mut |_| answer.clone())
                }
                Event::Failed => session.on_failed(String::new()),
                Event::Traced => {
                    tracing = false;
                    session.on_traced(ServerMessage::Pong { id: 0 })
                }
            };
            prop_assert!(!closed || steps.is_empty());
            prop_assert!(asked == 0 || !admitted);
            admitted |= asked > 0 && answer.is_ok();
            for step in steps {
                match step {
                    Step::Run(_) => { prop_assert!(admitted && !running); running = true; }
                    Step::Finish { .. } => { prop_assert!(running); running = false; admitted = false; }
                    Step::Abandon => { prop_assert!(admitted); running = false; admitted = false; }
                    Step::Trace(_) => { prop_assert!(!tracing && !admitted); tracing = true; }
                    Step::Close => closed = true,
                    Step::Welcome | Step::Send(_) => (),
                }
            }
            prop_assert!(session.deadline().is_some() == admitted || closed);
            prop_assert!(session.is_busy() == (admitted || tracing) || closed);
        }
    }
}
