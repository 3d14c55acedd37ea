//! One phase of load with the native responder: asks for it, opens its streams, watches it,
//! ends it, and puts both ends' records together.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::results::{CpuUse, Direction, TlsResult};
use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::flow::Flows;
use plumb_wire::native::control::report::{Assembled, Report, ReportAssembler, SenderLog, clip};
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage, Start};
use plumb_wire::native::spec::{ATTACH_TIMEOUT, SAMPLE_INTERVAL};

use crate::client::{ANSWER_TIMEOUT, Client, ClientError};
use crate::streams::{self, Stream, Streams};
use crate::summary::{DirectionLogs, DirectionOutcome, summarise};
use crate::tls::TlsSession;
use crate::traffic::{Traffic, TrafficPlan};

/// How often the phase is looked at: twice in each interval of the sampler, so that a spent
/// budget is seen within one and a half.
const TICK: Duration = Duration::from_millis(50);

/// What a phase is to carry.
#[derive(Debug, Clone, PartialEq)]
pub struct PhasePlan {
    /// Its streams.
    pub flows: Vec<Flows>,
    /// How long it runs.
    pub duration: Duration,
    /// Payload, of both directions, after which it ends early.
    pub byte_limit: Option<u64>,
}

/// How a phase goes, told every 100 ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Payload received since the last time.
    pub down_bps: f64,
    /// Payload acknowledged by the far end since the last time.
    pub up_bps: f64,
}

/// Why a phase ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedEarly {
    /// It had carried its `byte_limit`.
    Budget,
    /// The caller cancelled it.
    Cancelled,
    /// All its streams had failed; each says why.
    StreamsFailed,
}

/// What a phase came to.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseOutcome {
    /// When the load began, CLOCK_MONOTONIC.
    pub started_monotonic_ns: u64,
    /// How long it ran.
    pub duration_s: f64,
    /// Set when it ended before its time.
    pub ended_early: Option<EndedEarly>,
    /// From the far end; absent without down streams.
    pub down: Option<DirectionOutcome>,
    /// To the far end; absent without up streams.
    pub up: Option<DirectionOutcome>,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

impl Client {
    /// Runs a phase: returns some tenths of a second after its end, or within a few seconds of
    /// the far end's disappearance. Once the load runs, `cancel` ends it within 100 ms, and
    /// what was measured until then is kept. At its end the data connections are aborted at both ends.
    ///
    /// # Errors
    /// When the responder refuses it, goes away, or the streams cannot be opened. After a
    /// refusal, or when streams could not be opened, the session can be used again.
    pub fn run_phase(
        &mut self,
        plan: &PhasePlan,
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
        self.wait_for(&ServerMessage::Ready { phase: start.phase }, ANSWER_TIMEOUT)?;

        let opened = streams::open(self.address(), self.welcome(), &start);
        let opened = opened.map_err(|error| ClientError::Stream {
            name: self.name.clone(),
            stream: error.stream,
            why: error.why,
        });
        let cancelled = cancel
            .load(Ordering::Relaxed)
            .then(|| ClientError::Cancelled {
                name: self.name.clone(),
            });
        let Streams { incoming, outgoing } = match (opened, cancelled) {
            (Ok(streams), None) => streams,
            (Err(error), _) | (_, Some(error)) => {
                self.give_up(start.phase);
                return Err(error);
            }
        };
        self.wait_for(
            &ServerMessage::Started { phase: start.phase },
            ATTACH_TIMEOUT + ANSWER_TIMEOUT,
        )?;

        let encrypted = [&incoming, &outgoing].map(|streams| encryption(streams));
        let started_monotonic_ns = monotonic_ns();
        let traffic = Traffic::start(TrafficPlan {
            outgoing,
            incoming,
            byte_limit: plan.byte_limit,
            longest: plan.duration,
        });
        let traffic = traffic.map_err(|error| {
            self.give_up(start.phase);
            ClientError::Local {
                name: self.name.clone(),
                why: error.to_string(),
            }
        })?;
        let ended_early = self.watch(&traffic, plan, progress, cancel)?;
        let duration_s = traffic
            .elapsed()
            .as_secs_f64()
            .min(plan.duration.as_secs_f64());
        // Stop first: it waits in the same queue as what the streams still hold.
        self.send(&ClientMessage::Stop { phase: start.phase })?;
        let local = traffic.finish();
        let remote = self.fetch_report(&start)?;
        Ok(PhaseOutcome {
            started_monotonic_ns,
            ..outcome(local, remote, duration_s, ended_early, &encrypted)
        })
    }

    /// Waits for one message of the phase.
    fn wait_for(&self, wanted: &ServerMessage, timeout: Duration) -> Result<(), ClientError> {
        match self.next_message(timeout)? {
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
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<Option<EndedEarly>, ClientError> {
        let mut told = (Duration::ZERO, 0, 0);
        loop {
            let left = plan.duration.saturating_sub(traffic.elapsed());
            match self.next_message(TICK.min(left))? {
                None => (),
                Some(ServerMessage::Refused {
                    reason, message, ..
                }) => return Err(self.refused(reason, message)),
                Some(_) => return Err(self.protocol_error("it spoke out of turn")),
            }
            // Before the counters: streams end when they have what they were to have.
            let all_ended = traffic.has_ended();
            let (elapsed, down, up) = (
                traffic.elapsed(),
                traffic.received_bytes(),
                traffic.acked_bytes(),
            );
            if elapsed >= plan.duration {
                return Ok(None);
            }
            if cancel.load(Ordering::Relaxed) {
                return Ok(Some(EndedEarly::Cancelled));
            }
            if plan
                .byte_limit
                .is_some_and(|limit| down.saturating_add(up) >= limit)
            {
                return Ok(Some(EndedEarly::Budget));
            }
            if all_ended {
                return Ok(Some(EndedEarly::StreamsFailed));
            }
            if elapsed >= told.0 + SAMPLE_INTERVAL {
                let since_s = (elapsed - told.0).as_secs_f64();
                let bps = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 / since_s;
                progress(Progress {
                    elapsed,
                    down_bps: bps(down, told.1),
                    up_bps: bps(up, told.2),
                });
                told = (elapsed, down, up);
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
    let sessions = || streams.iter().filter_map(|stream| stream.tls.as_ref());
    let suites: BTreeSet<_> = sessions().map(TlsSession::cipher_suite).collect();
    let handshakes = sessions().map(|session| session.handshake().as_secs_f64());
    Some(TlsResult {
        handshake_s: Distribution::of(handshakes)?,
        cipher_suite: suites.into_iter().collect::<Vec<_>>().join(", "),
    })
}

/// Both ends' records as the results of both directions.
fn outcome(
    local: Report,
    remote: Report,
    duration_s: f64,
    ended_early: Option<EndedEarly>,
    [down_tls, up_tls]: &[Option<TlsResult>; 2],
) -> PhaseOutcome {
    let ratio = |report: &Report| {
        if report.elapsed_s > 0.0 {
            (report.cpu_s / report.elapsed_s).max(0.0)
        } else {
            0.0
        }
    };
    let cpu = CpuUse {
        local_ratio: ratio(&local),
        remote_ratio: Some(ratio(&remote)),
    };
    let result = |direction, senders: &[SenderLog], receivers, receiver_shift_s, tls| {
        (!senders.is_empty()).then(|| {
            summarise(&DirectionLogs {
                direction,
                senders,
                receivers,
                duration_s,
                receiver_shift_s,
                all_arrived: ended_early == Some(EndedEarly::Budget),
                cpu,
                tls,
            })
        })
    };
    let here = local
        .notes
        .into_iter()
        .map(|note| format!("on this host: {note}"));
    let there = remote
        .notes
        .into_iter()
        .map(|note| format!("on the far host: {note}"));
    PhaseOutcome {
        started_monotonic_ns: 0,
        duration_s,
        ended_early,
        down: result(
            Direction::Down,
            &remote.senders,
            &local.receivers,
            0.0,
            down_tls.as_ref(),
        ),
        up: result(
            Direction::Up,
            &local.senders,
            &remote.receivers,
            idle_round_trip(&local.senders),
            up_tls.as_ref(),
        ),
        notes: here.chain(there).collect(),
    }
}

/// The round trip before the load filled any queue: what the client sends at its instant t the
/// server counts at t and one round trip, on a clock that started as it said "started".
fn idle_round_trip(senders: &[SenderLog]) -> f64 {
    let all = senders
        .iter()
        .flat_map(|log| &log.samples)
        .filter_map(|sample| sample.min_rtt_us);
    all.min().map_or(0.0, |us| us as f64 / 1e6)
}
