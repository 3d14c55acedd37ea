//! The server's side of a control connection as a state machine: which message is allowed
//! when, and what follows from it. Time and admission are arguments.
//!
//! ```text
//! Greeting ──Hello──▸ Idle ──Start──▸ Attaching ──last stream──▸ Running
//!                      ▲ ╲             ▲ │ time, Stop               │ time, Stop
//!                      │  ──▸ Waiting ─╯ │                          │
//!                      └──────────┴──────┴──────────────────────────┘
//! ```
//! Any message that makes no sense closes the session.

use std::collections::BTreeSet;
use std::time::Duration;

use super::flow::{self, Flow, Flows};
use super::frame::Preamble;
use super::trace::TraceRequest;
use super::{ClientMessage, ErrorCode, Limits, Refusal, ServerMessage, Start};
use crate::native::spec::{ATTACH_TIMEOUT, QUEUED_INTERVAL, QUEUED_LOOK, STOP_GRACE, VERSION};
use plumb_model::direction::OneDirection;
use plumb_model::protocol::Transport;

/// What the owner of a session has to do, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Welcome,
    Send(ServerMessage),
    /// Drop the attached streams of an admitted phase; nothing ran.
    Abandon,
    /// Send Started, then run the load.
    Run(Start),
    /// End the load and send the report of the phase.
    Finish {
        phase: u32,
    },
    /// Trace towards the client, and report the end to the session.
    Trace(TraceRequest),
    /// Close the connection; the session is over, with any phase that is under way.
    Close,
}

/// A data connection that the session does not expect: close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a data connection that belongs to no phase that waits for it")]
pub struct Unexpected;

/// When a phase may take place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Admitted {
    Now,
    /// Now, with so many bytes of payload at most.
    Within(u64),
    /// When others have been served; to be asked again.
    Later {
        ahead: u32,
        /// In how much time, as far as that is known.
        after_s: Option<f64>,
    },
}

/// Asked for each phase that keeps the limits: whether it may take place.
pub type Admission<'a> = &'a mut dyn FnMut(&Start) -> Result<Admitted, (Refusal, String)>;

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
    Waiting {
        start: Start,
        look: Duration,
        tell: Duration,
    },
    Attaching {
        start: Start,
        missing: BTreeSet<(OneDirection, u32)>,
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

    /// Whether a phase or a trace is under way, or waited for.
    pub fn is_busy(&self) -> bool {
        self.tracing
            || match self.state {
                State::Waiting { .. } | State::Attaching { .. } | State::Running { .. } => true,
                State::Greeting | State::Idle | State::Closed => false,
            }
    }

    /// When [`Self::on_time`] is due.
    pub fn deadline(&self) -> Option<Duration> {
        match self.state {
            State::Waiting { look, .. } => Some(look),
            State::Attaching { until, .. } | State::Running { until, .. } => Some(until),
            State::Greeting | State::Idle | State::Closed => None,
        }
    }

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
            (_, ClientMessage::Proof { .. }) => self.fail(ErrorCode::Protocol, "nothing is to be proved".into()),
            (_, ClientMessage::Trace(request)) => vec![self.trace(request)],
            (_, ClientMessage::Ping { id }) => vec![Step::Send(ServerMessage::Pong { id })],
            (State::Idle, ClientMessage::Start(start)) => self.start(now, start, admit),
            (_, ClientMessage::Start(start)) => {
                vec![refused(start.phase, Refusal::Busy, "a phase of this session is under way".into())]
            }
            (_, ClientMessage::Stop { phase }) => self.stop(phase),
        }
    }

    /// A trace that a step asked for is done, or was not begun: the client gets the answer, and may ask for another.
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

    /// The stream of that name, if a phase waits for it to attach over that transport.
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
            State::Waiting { start, .. } | State::Attaching { start, .. } => start.phase,
            State::Running { phase, .. } => *phase,
            State::Greeting | State::Idle | State::Closed => return Vec::new(),
        };
        self.state = State::Idle;
        vec![Step::Abandon, refused(phase, Refusal::Failed, message)]
    }

    pub fn on_time(&mut self, now: Duration, admit: Admission<'_>) -> Vec<Step> {
        if self.deadline().is_none_or(|until| now < until) {
            return Vec::new();
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Waiting { start, tell, .. } => {
                let mut steps = self.admit(now, start, tell, admit);
                if matches!(self.state, State::Idle) {
                    steps.insert(0, Step::Abandon);
                }
                steps
            }
            state => {
                self.state = state;
                self.end_phase("not all data connections came in time")
            }
        }
    }

    fn start(&mut self, now: Duration, start: Start, admit: Admission<'_>) -> Vec<Step> {
        if let Err((reason, message)) = self.check(&start) {
            return vec![refused(start.phase, reason, message)];
        }
        self.admit(now, start, now, admit)
    }

    /// Grants the phase, or waits for its turn; a waiting client gets Queued when that is due.
    fn admit(
        &mut self,
        now: Duration,
        start: Start,
        tell: Duration,
        admit: Admission<'_>,
    ) -> Vec<Step> {
        let phase = start.phase;
        let mut start = start;
        let mut limited = None;
        match admit(&start) {
            Ok(Admitted::Now) => (),
            Ok(Admitted::Within(byte_limit)) => {
                start.byte_limit = Some(
                    start
                        .byte_limit
                        .map_or(byte_limit, |asked| asked.min(byte_limit)),
                );
                limited = Some(Step::Send(ServerMessage::Limited { phase, byte_limit }));
            }
            Ok(Admitted::Later { ahead, after_s }) => {
                let is_told = now >= tell;
                self.last_phase = Some(phase);
                self.state = State::Waiting {
                    start,
                    look: now + QUEUED_LOOK,
                    tell: if is_told { now + QUEUED_INTERVAL } else { tell },
                };
                let queued = Step::Send(ServerMessage::Queued { ahead, after_s });
                return is_told.then_some(queued).into_iter().collect();
            }
            Err((reason, message)) => return vec![refused(phase, reason, message)],
        }
        let of = |role| flow::streams(&start.flows, role).map(move |(stream, _)| (role, stream));
        self.last_phase = Some(phase);
        self.state = State::Attaching {
            missing: of(OneDirection::Down).chain(of(OneDirection::Up)).collect(),
            start,
            until: now + ATTACH_TIMEOUT,
        };
        let ready = Step::Send(ServerMessage::Ready { phase });
        limited.into_iter().chain([ready]).collect()
    }

    fn check(&self, start: &Start) -> Result<(), (Refusal, String)> {
        let Limits {
            max_duration_s,
            max_streams,
        } = self.limits;
        let streams = start.streams();
        if self.tracing {
            Err((
                Refusal::Busy,
                "a trace of the path is under way, which the load would slow".to_owned(),
            ))
        } else if !(1..=u64::from(max_streams)).contains(&streams) {
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
            State::Waiting { start, .. } | State::Attaching { start, .. }
                if start.phase == phase =>
            {
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
            State::Waiting { start, .. } => {
                let why = not_attached.to_owned();
                vec![
                    Step::Abandon,
                    refused(start.phase, Refusal::NotAttached, why),
                ]
            }
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
mod tests;
