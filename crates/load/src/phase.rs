//! One phase of load with the native responder: asks for it, opens its streams, watches it,
//! ends it, and puts both ends' records together.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plumb_model::distribution::Distribution;
use plumb_model::results::TlsResult;
use plumb_model::units::si;
use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::report::{Assembled, Report, ReportAssembler, clip};
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage, Start};
use plumb_wire::native::spec::{ATTACH_INTERVAL, ATTACH_TIMEOUT};

use crate::control_client::{ANSWER_TIMEOUT, Client, ClientError, Wait};
use crate::outcome::{EndedEarly, PhaseOutcome, has_carried, outcome};
use crate::peer::Peer;
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_watch::{Progress, Unconducted, Watch};
use crate::quic::QuicSide;
use crate::streams::{self, FarEnd, Stream, Streams};
use crate::tls::TlsSession;
use crate::traffic::{Traffic, TrafficPlan};

impl Client {
    /// Runs a phase: returns some tenths of a second after its end, or within a few seconds of
    /// the far end's disappearance. Once the load runs, `cancel` ends it within 100 ms, and
    /// what was measured until then is kept. At its end the data connections are aborted at both ends.
    ///
    /// # Errors
    /// When the responder refuses it, goes away before the load runs, or the streams cannot be opened. After a refusal, or when streams could not be opened, the session can be used
    /// again.
    pub fn run_phase(
        &mut self,
        plan: &PhasePlan,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError> {
        Peer::run_phase(self, plan, &mut Unconducted, progress, cancel)
    }
}

impl Peer for Client {
    fn run_phase(
        &mut self,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError> {
        let start = Start {
            phase: self.next_phase,
            flows: plan.flows.clone(),
            duration_s: plan.duration.as_secs_f64(),
            byte_limit: plan.byte_limit,
        };
        self.next_phase += 1;
        self.send(&ClientMessage::Start(start.clone()))?;
        let granted = self.wait_for_turn(start.phase, cancel)?;
        let byte_limit = [plan.byte_limit, granted].into_iter().flatten().min();
        let plan = &PhasePlan {
            byte_limit,
            ..plan.clone()
        };

        let far = FarEnd::of(self.address(), self.welcome(), start.phase);
        let far = far.map_err(|error| ClientError::Local {
            name: self.name.clone(),
            why: error.to_string(),
        });
        let opened = far.and_then(|far| {
            let opened = streams::open(&far, &start).map_err(|error| ClientError::Stream {
                name: self.name.clone(),
                stream: error.stream,
                why: error.why,
                is_silence: error.is_silence,
            });
            opened.map(|streams| (far, streams))
        });
        let cancelled = cancel
            .load(Ordering::Relaxed)
            .then(|| ClientError::Cancelled {
                name: self.name.clone(),
            });
        let (far, streams) = match (opened, cancelled) {
            (Ok(opened), None) => opened,
            (Err(error), _) | (_, Some(error)) => {
                self.give_up(start.phase);
                return Err(error);
            }
        };
        self.wait_for_start(start.phase, &streams)?;
        let Streams {
            mut incoming,
            mut outgoing,
        } = streams;

        let encrypted = [&incoming, &outgoing].map(|streams| encryption(streams));
        for stream in &mut outgoing {
            stream.set_file(plan.from.clone());
        }
        for stream in &mut incoming {
            stream.set_file(plan.to.clone());
        }
        if let Some(to) = plan.to.as_ref().filter(|_| !incoming.is_empty()) {
            // What was in it is lost only now that more is on its way; a device has no length.
            let _ = to.file.set_len(0);
        }
        let started_monotonic_ns = monotonic_ns();
        let traffic = Traffic::start(TrafficPlan {
            outgoing,
            incoming,
            quic: Some(QuicSide::Client(far.trust.clone())),
            far: Some(far),
            byte_limit: plan.byte_limit,
            duration: plan.duration,
            longest: plan.duration,
        });
        let traffic = traffic.map_err(|error| {
            self.give_up(start.phase);
            ClientError::Local {
                name: self.name.clone(),
                why: error.to_string(),
            }
        })?;
        let mut watched = self.watch(&traffic, plan, conductor, progress, cancel);
        let duration_s = traffic
            .elapsed()
            .as_secs_f64()
            .min(plan.duration.as_secs_f64());
        // Stop first: it waits in the same queue as what the streams still hold.
        if let Ok(early) = watched {
            let stop = ClientMessage::Stop { phase: start.phase };
            watched = self.send(&stop).map(|()| early);
        }
        if watched.is_err() {
            traffic.abandon();
        }
        let local = traffic.finish();
        let fetched = watched.and_then(|early| Ok((early, self.fetch_report(&start)?)));
        let (remote, early, lost) = match fetched {
            Ok((early, remote)) => (Some(remote), early, None),
            // That nothing was carried until the far end went silent is a result, too.
            Err(error) if matches!(error, ClientError::Lost { .. }) || has_carried(&local) => {
                (None, Some(EndedEarly::FarEndLost), Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let mut outcome = outcome(local, remote, &start, duration_s, early, &encrypted);
        if let Some(bytes) = granted.filter(|_| early == Some(EndedEarly::Budget)) {
            let limit = si(bytes as f64, "B");
            outcome.notes.push(format!(
                "The responder let this host transfer {limit} in the phase: its limit for clients on the Internet."
            ));
        }
        Ok(PhaseOutcome {
            started_monotonic_ns,
            lost,
            ..outcome
        })
    }
}

impl Client {
    /// Waits until the far end has all streams, and asks for the UDP streams until then.
    fn wait_for_start(&self, phase: u32, streams: &Streams) -> Result<(), ClientError> {
        let until = Instant::now() + ATTACH_TIMEOUT + ANSWER_TIMEOUT;
        let started = ServerMessage::Started { phase };
        loop {
            streams.attach().map_err(|error| {
                self.give_up(phase);
                ClientError::Stream {
                    name: self.name.clone(),
                    stream: error.stream,
                    why: error.why,
                    is_silence: error.is_silence,
                }
            })?;
            match self.next_message(ATTACH_INTERVAL)? {
                None if Instant::now() < until => (),
                other => return self.expect(&started, other),
            }
        }
    }

    /// Waits until the phase is granted; others may be served first. The most payload that it may carry, where the responder limits
    /// it.
    fn wait_for_turn(&self, phase: u32, cancel: &AtomicBool) -> Result<Option<u64>, ClientError> {
        let mut limited = None;
        let mut wait = Wait::begin(&self.name, &self.caller, ANSWER_TIMEOUT);
        let mut until = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next_message(left)? {
                Some(ServerMessage::Queued { ahead, after_s }) => {
                    until = wait.goes_on(ahead, after_s, ANSWER_TIMEOUT);
                }
                Some(ServerMessage::Limited { byte_limit, .. }) => limited = Some(byte_limit),
                message => {
                    let ready = self.expect(&ServerMessage::Ready { phase }, message);
                    return ready.map(|()| limited);
                }
            }
            if cancel.load(Ordering::Relaxed) {
                self.give_up(phase);
                return Err(ClientError::Cancelled {
                    name: self.name.clone(),
                });
            }
        }
    }

    fn expect(
        &self,
        wanted: &ServerMessage,
        message: Option<ServerMessage>,
    ) -> Result<(), ClientError> {
        match message {
            Some(message) if message == *wanted => Ok(()),
            Some(ServerMessage::Refused {
                reason, message, ..
            }) => Err(self.refused(reason, message)),
            Some(_) => Err(self.protocol_error("it answered out of turn")),
            None => Err(self.protocol_error("it answers heartbeats, but not what it was asked")),
        }
    }

    fn refused(&self, reason: Refusal, message: String) -> ClientError {
        ClientError::PhaseRefused {
            name: self.name.clone(),
            reason,
            message: clip(message),
        }
    }

    /// Takes a granted phase back before it runs, so that the session can go on.
    fn give_up(&self, phase: u32) {
        if self.send(&ClientMessage::Stop { phase }).is_err() {
            return;
        }
        // The Refused that answers it, or, when it had started already, its report.
        while let Ok(Some(message)) = self.next_message(ANSWER_TIMEOUT) {
            if matches!(
                message,
                ServerMessage::Refused { .. } | ServerMessage::Result { .. }
            ) {
                return;
            }
        }
    }

    /// Looks after the running phase until it is over.
    fn watch(
        &self,
        traffic: &Traffic,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<Option<EndedEarly>, ClientError> {
        let mut watch = Watch::begin(traffic, plan, conductor, progress, cancel);
        loop {
            match self.next_message(watch.until_next())? {
                None => (),
                Some(ServerMessage::Refused {
                    reason, message, ..
                }) => return Err(self.refused(reason, message)),
                Some(_) => return Err(self.protocol_error("it spoke out of turn")),
            }
            let ended = watch.look();
            self.carried(watch.carried_bytes());
            if let ControlFlow::Break(early) = ended {
                return Ok(early);
            }
        }
    }

    fn fetch_report(&self, start: &Start) -> Result<Report, ClientError> {
        let mut assembler = ReportAssembler::new(start);
        loop {
            let Some(message) = self.next_message(ANSWER_TIMEOUT)? else {
                return Err(self.protocol_error(
                    "it answers heartbeats, but does not send its record of the load",
                ));
            };
            match assembler
                .add(message)
                .map_err(|error| self.protocol_error(&error.to_string()))?
            {
                Assembled::Part => (),
                Assembled::Whole(report) => return Ok(*report),
                Assembled::Other(ServerMessage::Refused {
                    reason, message, ..
                }) => {
                    return Err(self.refused(reason, message));
                }
                Assembled::Other(_) => return Err(self.protocol_error("it answered out of turn")),
            }
        }
    }
}

/// How the streams are encrypted, if they are.
fn encryption(streams: &[Stream]) -> Option<TlsResult> {
    let sessions = || streams.iter().filter_map(Stream::tls);
    let suites: BTreeSet<_> = sessions().map(TlsSession::cipher_suite).collect();
    let handshakes = sessions().map(|session| session.handshake().as_secs_f64());
    Some(TlsResult {
        handshake_s: Distribution::of(handshakes)?,
        cipher_suite: suites.into_iter().collect::<Vec<_>>().join(", "),
    })
}
