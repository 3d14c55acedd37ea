//! The server's side of a control connection as a state machine: which message is allowed
//! when, and what follows from it. Time and admission are arguments.
//!
//! ```text
//! Greeting ──Hello──▸ Idle ──Start──▸ Attaching ──last stream──▸ Running
//!                      ▲                 │ time, Stop               │ time, Stop
//!                      └─────────────────┴──────────────────────────┘
//! ```
//! Any message that makes no sense closes the session.

use std::collections::BTreeSet;
use std::time::Duration;

use super::flow::{self, Flow, Flows, Transport};
use super::frame::{Preamble, Role};
use super::trace::TraceRequest;
use super::{ClientMessage, ErrorCode, Limits, Refusal, ServerMessage, Start};
use crate::native::spec::{ATTACH_TIMEOUT, STOP_GRACE, VERSION};

/// What the owner of a session has to do, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Answer the Hello.
    Welcome,
    /// Send this.
    Send(ServerMessage),
    /// Give the attached streams of an admitted phase up; nothing ran.
    Abandon,
    /// Send Started, then run the load.
    Run(Start),
    /// End the load and send the report of the phase.
    Finish {
        /// The phase.
        phase: u32,
    },
    /// Trace towards the client, and tell the session when it is done.
    Trace(TraceRequest),
    /// Close the connection; the session is over, with any phase that is under way.
    Close,
}

/// A data connection that the session does not expect: close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a data connection that belongs to no phase that waits for it")]
pub struct Unexpected;

/// Asked for each phase that keeps the limits: whether it may take place.
pub type Admission<'a> = &'a mut dyn FnMut(&Start) -> Result<(), (Refusal, String)>;

/// The state of one session. Times count from its start.
#[derive(Debug)]
pub struct ServerSession {
    limits: Limits,
    last_phase: Option<u32>,
    /// Whether a trace is under way.
    tracing: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Greeting,
    Idle,
    Attaching {
        start: Start,
        missing: BTreeSet<(Role, u32)>,
        until: Duration,
    },
    Running {
        phase: u32,
        until: Duration,
    },
    Closed,
}

impl ServerSession {
    /// A session that has heard nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            last_phase: None,
            tracing: false,
            state: State::Greeting,
        }
    }

    /// When [`Self::on_time`] is due.
    pub fn deadline(&self) -> Option<Duration> {
        match self.state {
            State::Attaching { until, .. } | State::Running { until, .. } => Some(until),
            State::Greeting | State::Idle | State::Closed => None,
        }
    }

    /// A message came.
    pub fn on_message(
        &mut self,
        now: Duration,
        message: ClientMessage,
        admit: Admission<'_>,
    ) -> Vec<Step> {
        match (&self.state, message) {
            (State::Closed, _) => Vec::new(),
            (State::Greeting, ClientMessage::Hello { version: VERSION, .. }) => {
                self.state = State::Idle;
                vec![Step::Welcome]
            }
            (State::Greeting, ClientMessage::Hello { version, .. }) => self.fail(
                ErrorCode::Version,
                format!("this responder speaks version {VERSION} of the protocol, not {version}: use the same plumb at both ends"),
            ),
            (State::Greeting, _) => self.fail(ErrorCode::Protocol, "the first message must be hello".into()),
            (_, ClientMessage::Hello { .. }) => self.fail(ErrorCode::Protocol, "hello came twice".into()),
            (_, ClientMessage::Trace(request)) => vec![self.trace(request)],
            (_, ClientMessage::Ping { id }) => vec![Step::Send(ServerMessage::Pong { id })],
            (State::Idle, ClientMessage::Start(start)) => self.start(now, start, admit),
            (_, ClientMessage::Start(start)) => {
                vec![refused(start.phase, Refusal::Busy, "a phase of this session is under way".into())]
            }
            (_, ClientMessage::Stop { phase }) => self.stop(phase),
        }
    }

    /// What a step Trace asked for is done, or was not begun: the client is told, and may ask for another.
    pub fn on_traced(&mut self, answer: ServerMessage) -> Vec<Step> {
        self.tracing = false;
        match self.state {
            State::Closed => Vec::new(),
            _ => vec![Step::Send(answer)],
        }
    }

    /// Under load a trace would show the load, and add to it.
    fn trace(&mut self, request: TraceRequest) -> Step {
        let admitted = request.check().and_then(|()| match self.state {
            State::Idle if !self.tracing => Ok(()),
            State::Idle => Err((Refusal::Busy, "a trace of this session is under way".into())),
            _ => Err((Refusal::Busy, "a phase of this session is under way".into())),
        });
        match admitted {
            Ok(()) => {
                self.tracing = true;
                Step::Trace(request)
            }
            Err((reason, message)) => Step::Send(ServerMessage::TraceRefused {
                id: request.id,
                reason,
                message,
            }),
        }
    }

    /// The stream of that name, if a phase waits for it to come in that way.
    pub fn expects(&self, preamble: &Preamble, transport: Transport) -> Option<&Flow> {
        let State::Attaching { start, missing, .. } = &self.state else {
            return None;
        };
        let waits =
            preamble.phase == start.phase && missing.contains(&(preamble.role, preamble.stream));
        flow::stream(&start.flows, preamble.role, preamble.stream)
            .filter(|_| waits)
            .filter(|flow| flow.transport() == transport && flow.is_tls() == preamble.tls)
    }

    /// A stream said what it belongs to. On success the owner keeps it.
    ///
    /// # Errors
    /// When nothing waits for it.
    pub fn on_attached(
        &mut self,
        now: Duration,
        preamble: &Preamble,
        transport: Transport,
    ) -> Result<Vec<Step>, Unexpected> {
        self.expects(preamble, transport).ok_or(Unexpected)?;
        let State::Attaching { start, missing, .. } = &mut self.state else {
            return Err(Unexpected);
        };
        missing.remove(&(preamble.role, preamble.stream));
        if !missing.is_empty() {
            return Ok(Vec::new());
        }
        let start = start.clone();
        let until = now + Duration::from_secs_f64(start.duration_s) + STOP_GRACE;
        self.state = State::Running {
            phase: start.phase,
            until,
        };
        Ok(vec![Step::Run(start)])
    }

    /// A stream could not be taken, or the load of a step Run not be started.
    pub fn on_failed(&mut self, message: String) -> Vec<Step> {
        let phase = match &self.state {
            State::Attaching { start, .. } => start.phase,
            State::Running { phase, .. } => *phase,
            State::Greeting | State::Idle | State::Closed => return Vec::new(),
        };
        self.state = State::Idle;
        vec![Step::Abandon, refused(phase, Refusal::Failed, message)]
    }

    /// Time passed.
    pub fn on_time(&mut self, now: Duration) -> Vec<Step> {
        if self.deadline().is_none_or(|until| now < until) {
            return Vec::new();
        }
        self.end_phase("not all data connections came in time")
    }

    fn start(&mut self, now: Duration, start: Start, admit: Admission<'_>) -> Vec<Step> {
        let phase = start.phase;
        let admitted = self.check(&start).and_then(|()| admit(&start));
        if let Err((reason, message)) = admitted {
            return vec![refused(phase, reason, message)];
        }
        let of = |role| flow::streams(&start.flows, role).map(move |(stream, _)| (role, stream));
        self.last_phase = Some(phase);
        self.state = State::Attaching {
            missing: of(Role::Down).chain(of(Role::Up)).collect(),
            start,
            until: now + ATTACH_TIMEOUT,
        };
        vec![Step::Send(ServerMessage::Ready { phase })]
    }

    fn check(&self, start: &Start) -> Result<(), (Refusal, String)> {
        let Limits {
            max_duration_s,
            max_streams,
        } = self.limits;
        let streams = start.streams();
        if !(1..=u64::from(max_streams)).contains(&streams) {
            Err((
                Refusal::Streams,
                format!("{streams} streams, where 1 to {max_streams} are allowed"),
            ))
        } else if !(start.duration_s > 0.0 && start.duration_s <= max_duration_s) {
            let asked = start.duration_s;
            Err((
                Refusal::Duration,
                format!("a phase of {asked} s, where up to {max_duration_s} s are allowed"),
            ))
        } else if self.last_phase.is_some_and(|last| start.phase <= last) {
            Err((
                Refusal::Malformed,
                format!("the number {} of the phase was used before", start.phase),
            ))
        } else {
            start.flows.iter().try_for_each(Flows::check)
        }
    }

    fn stop(&mut self, phase: u32) -> Vec<Step> {
        match &self.state {
            State::Attaching { start, .. } if start.phase == phase => {
                self.end_phase("stopped before it ran")
            }
            State::Running { phase: running, .. } if *running == phase => self.end_phase(""),
            // It crossed the report of a phase that this end had ended by itself.
            _ if self.last_phase.is_some_and(|last| phase <= last) => Vec::new(),
            _ => self.fail(
                ErrorCode::Protocol,
                format!("phase {phase} was never started"),
            ),
        }
    }

    fn end_phase(&mut self, not_attached: &str) -> Vec<Step> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Attaching { start, missing, .. } => {
                let udp = missing.iter().any(|(role, stream)| {
                    flow::stream(&start.flows, *role, *stream)
                        .is_some_and(|flow| flow.transport() == Transport::Udp)
                });
                let hint = if udp { NO_DATAGRAM } else { "" };
                vec![
                    Step::Abandon,
                    refused(
                        start.phase,
                        Refusal::NotAttached,
                        format!("{not_attached}{hint}"),
                    ),
                ]
            }
            State::Running { phase, .. } => vec![Step::Finish { phase }],
            other => {
                self.state = other;
                Vec::new()
            }
        }
    }

    fn fail(&mut self, code: ErrorCode, message: String) -> Vec<Step> {
        self.state = State::Closed;
        vec![
            Step::Send(ServerMessage::Error { code, message }),
            Step::Close,
        ]
    }
}

/// Why a stream over UDP is missing, while the control connection over TCP is there.
const NO_DATAGRAM: &str = " (no datagram came over UDP, or from another address than the control \
                           connection has: a firewall or a proxy may be on the way)";

fn refused(phase: u32, reason: Refusal, message: String) -> Step {
    Step::Send(ServerMessage::Refused {
        phase,
        reason,
        message,
    })
}

#[cfg(test)]
mod tests {
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
        }
    }

    fn start(phase: u32, down_streams: u32, up_streams: u32) -> Start {
        Start {
            phase,
            flows: vec![tcp(down_streams, Role::Down), tcp(up_streams, Role::Up)],
            duration_s: 2.0,
            byte_limit: None,
        }
    }

    fn tcp(count: u32, role: Role) -> Flows {
        Flows::tcp(count, role, TcpFlow::default())
    }

    fn preamble(phase: u32, role: Role, stream: u32) -> Preamble {
        Preamble {
            token: Token([0; 16]),
            phase,
            stream,
            role,
            tls: false,
        }
    }

    fn tell(session: &mut ServerSession, at_s: u64, message: ClientMessage) -> Vec<Step> {
        session.on_message(Duration::from_secs(at_s), message, &mut |_| Ok(()))
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
            session.on_attached(now, &preamble(1, Role::Down, 0), Transport::Tcp),
            Ok(vec![])
        );
        assert_eq!(
            session.on_attached(now, &preamble(1, Role::Down, 0), Transport::Tcp),
            Err(Unexpected)
        );
        assert_eq!(
            session.on_attached(now, &preamble(2, Role::Up, 0), Transport::Tcp),
            Err(Unexpected)
        );
        assert_eq!(
            session.on_attached(now, &preamble(1, Role::Up, 0), Transport::Tcp),
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
        assert_eq!(session.on_time(Duration::from_secs(7)), []);
        let steps = session.on_time(Duration::from_secs(8));
        assert_eq!(
            (steps.first(), reason(&steps)),
            (Some(&Step::Abandon), Some(Refusal::NotAttached))
        );
        tell(&mut session, 20, ClientMessage::Start(start(2, 1, 0)));
        session
            .on_attached(
                Duration::from_secs(20),
                &preamble(2, Role::Down, 0),
                Transport::Tcp,
            )
            .unwrap();
        assert_eq!(session.on_time(Duration::from_secs(26)), []);
        assert_eq!(
            session.on_time(Duration::from_secs(27)),
            [Step::Finish { phase: 2 }]
        );
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
            asked(&|s| s.flows.push(tcp(4, Role::Up))),
            Some(Refusal::Streams)
        );
        assert_eq!(
            asked(&|s| s.flows = vec![tcp(u32::MAX, Role::Up); 3]),
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
                    Role::Up,
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
        let ask =
            |session: &mut ServerSession, id| tell(session, 0, ClientMessage::Trace(request(id)));
        assert_eq!(ask(&mut session, 1), [Step::Trace(request(1))]);
        assert_eq!(refused(&ask(&mut session, 2)), Some((2, Refusal::Busy)));
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
        let starts = (0..6_u32, 0..4_u32, 0..4_u32, -1.0..12.0_f64).prop_map(
            |(phase, down, up, duration_s)| {
                Event::Message(ClientMessage::Start(Start {
                    duration_s,
                    ..start(phase, down, up)
                }))
            },
        );
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
                Event::Attached(preamble(phase, if up { Role::Up } else { Role::Down }, stream))
            }),
            1 => (0..20_u64).prop_map(Event::Time),
            1 => Just(Event::Failed),
        ]
    }

    proptest! {
        /// An admitted phase ends exactly once, by Finish or Abandon, before the next is
        /// admitted; a phase that finishes ran before; after Close there is nothing.
        #[test]
        fn every_phase_ends_once(first in any::<bool>(), rest in proptest::collection::vec(events(), 0..60),
                                 busy in any::<bool>()) {
            let mut session = ServerSession::new(LIMITS);
            let mut now = Duration::ZERO;
            let (mut admitted, mut running, mut closed, mut tracing) = (false, false, false, false);
            let opening = first.then(|| Event::Message(hello()));
            for event in opening.into_iter().chain(rest) {
                let mut asked = 0;
                let steps = match event {
                    Event::Message(message) => session.on_message(now, message, &mut |_| {
                        asked += 1;
                        if busy { Err((Refusal::Busy, String::new())) } else { Ok(()) }
                    }),
                    Event::Attached(preamble) => session.on_attached(now, &preamble, Transport::Tcp).unwrap_or_default(),
                    Event::Time(seconds) => {
                        now += Duration::from_secs(seconds);
                        session.on_time(now)
                    }
                    Event::Failed => session.on_failed(String::new()),
                    Event::Traced => {
                        tracing = false;
                        session.on_traced(ServerMessage::Pong { id: 0 })
                    }
                };
                prop_assert!(!closed || steps.is_empty());
                prop_assert!(asked == 0 || !admitted);
                admitted |= asked > 0 && !busy;
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
            }
        }
    }
}
