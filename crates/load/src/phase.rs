//! One phase of load with the native responder: asks for it, opens its streams, watches it,
//! ends it, and puts both ends' records together.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::results::TlsResult;
use plumb_model::units::si;
use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::flow::{self, Flows};
use plumb_wire::native::control::report::{Assembled, Report, ReportAssembler, clip};
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage, Start};
use plumb_wire::native::spec::{ATTACH_INTERVAL, ATTACH_TIMEOUT};

use crate::control_client::{ANSWER_TIMEOUT, Client, ClientError, Wait};
use crate::file::StreamFile;
use crate::outcome::{EndedEarly, PhaseOutcome, has_carried, outcome};
use crate::phase_controller::{Conduct, Conductor, Seen};
use crate::quic::QuicSide;
use crate::steady::Steadiness;
use crate::streams::{self, FarEnd, Stream, Streams};
use crate::tls::TlsSession;
use crate::traffic::{Looked, Traffic, TrafficPlan};

/// How often the phase is looked at: twice in each interval of the sampler, so that a spent
/// budget is seen within one and a half.
const TICK: Duration = Duration::from_millis(50);

/// What a phase is to carry.
#[derive(Debug, Clone)]
pub struct PhasePlan {
    pub flows: Vec<Flows>,
    /// How long it runs.
    pub duration: Duration,
    /// Payload, of both directions, after which it ends early.
    pub byte_limit: Option<u64>,
    /// Whether it ends when the rate of each direction has become steady.
    pub until_steady: bool,
    /// What the streams up send, in place of bytes from memory.
    pub from: Option<StreamFile>,
    /// Where what the streams down bring goes to, in place of nowhere.
    pub to: Option<StreamFile>,
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
    /// Transactions completed since the last time, a second.
    pub transactions_tps: f64,
}

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
        self.run_conducted_phase(plan, &mut Unconducted, progress, cancel)
    }

    /// The same with somebody who decides, while it runs, how densely it is probed and when it is
    /// over; at the latest it ends as the plan says.
    ///
    /// # Errors
    /// Likewise.
    pub fn run_conducted_phase(
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

    /// Waits until the far end has all streams, and asks for those of UDP until then.
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
        let mut pace = Pace::default();
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
            let (elapsed, looked) = (traffic.elapsed(), traffic.looked());
            let (down, up) = (traffic.received_bytes(), looked.acked_bytes);
            self.carried(down.saturating_add(up));
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
            if all_ended && traffic.has_source_ended() {
                return Ok(Some(EndedEarly::SourceEnded));
            }
            if all_ended && traffic.budget_is_spent() {
                return Ok(Some(EndedEarly::Budget));
            }
            if all_ended {
                return Ok(Some(EndedEarly::StreamsFailed));
            }
            let seen = Seen {
                elapsed,
                looked,
                probes: traffic.take_probes(),
            };
            match conductor.look(seen) {
                Conduct::Probe { pairs_per_s } => traffic.probe(pairs_per_s),
                Conduct::End => return Ok(Some(EndedEarly::Steady)),
            }
            let transactions = traffic.transactions();
            if let Some((down_bps, up_bps, transactions_tps)) = pace.look(looked, transactions) {
                progress(Progress {
                    elapsed,
                    down_bps,
                    up_bps,
                    transactions_tps,
                });
                if pace.ends(plan) {
                    return Ok(Some(EndedEarly::Steady));
                }
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

/// Nobody: the plan alone decides, and nothing is probed.
struct Unconducted;

impl Conductor for Unconducted {
    fn look(&mut self, _: Seen) -> Conduct {
        Conduct::Probe { pairs_per_s: 0.0 }
    }
}

/// How both directions go, from one sample to the next.
#[derive(Debug, Default)]
struct Pace {
    before: Looked,
    transactions_before: u64,
    down: Steadiness,
    up: Steadiness,
}

impl Pace {
    /// The rates down and up, and that of transactions, since the sample before; nothing when there
    /// is no later one.
    fn look(&mut self, now: Looked, transactions: u64) -> Option<(f64, f64, f64)> {
        /// Half the interval between samples: the first comes at the very beginning.
        const SHORTEST_S: f64 = 0.05;
        let since_s = now.t_s - self.before.t_s;
        if since_s < SHORTEST_S {
            return None;
        }
        let bps = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 / since_s;
        let down_bps = bps(now.received_bytes, self.before.received_bytes);
        let up_bps = bps(now.acked_bytes, self.before.acked_bytes);
        let tps = transactions.saturating_sub(self.transactions_before) as f64 / since_s;
        (self.before, self.transactions_before) = (now, transactions);
        self.down.push(down_bps);
        self.up.push(up_bps);
        Some((down_bps, up_bps, tps))
    }

    /// Whether the plan ends with a steady rate, and every direction that it loads has one.
    fn ends(&self, plan: &PhasePlan) -> bool {
        let of =
            |role, watched: &Steadiness| flow::count(&plan.flows, role) == 0 || watched.is_steady();
        plan.until_steady && of(OneDirection::Down, &self.down) && of(OneDirection::Up, &self.up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_wire::native::control::flow::TcpFlow;

    /// When a plan ends whose directions have carried so many bytes at each time in seconds, as far as 20 s.
    fn ends_after(
        (down, up): (u32, u32),
        until_steady: bool,
        late_s: impl Fn(u32) -> f64,
        received: impl Fn(f64) -> f64,
        acked: impl Fn(f64) -> f64,
    ) -> Option<f64> {
        let plan = PhasePlan {
            flows: [(down, OneDirection::Down), (up, OneDirection::Up)]
                .map(|(count, role)| Flows::tcp(count, role, TcpFlow::default()))
                .to_vec(),
            duration: Duration::from_secs(20),
            byte_limit: None,
            until_steady,
            from: None,
            to: None,
        };
        let mut pace = Pace::default();
        (0..200).find_map(|sample| {
            let t_s = f64::from(sample) / 10.0 + late_s(sample);
            let looked = Looked {
                t_s,
                received_bytes: received(t_s) as u64,
                acked_bytes: acked(t_s) as u64,
            };
            pace.look(looked, 0)?;
            pace.ends(&plan).then_some(t_s)
        })
    }

    /// 50 Mbit/s.
    fn paced(t_s: f64) -> f64 {
        t_s * 6.25e6
    }

    #[test]
    fn a_phase_ends_when_every_direction_that_it_loads_is_steady() {
        let on_time = |_| 0.0;
        let growing = |t_s: f64| t_s * t_s * 1e6;
        assert_eq!(ends_after((1, 1), true, on_time, paced, paced), Some(2.0));
        assert_eq!(ends_after((1, 1), false, on_time, paced, paced), None);
        assert_eq!(ends_after((1, 1), true, on_time, paced, growing), None);
        assert_eq!(ends_after((1, 0), true, on_time, paced, growing), Some(2.0));
    }

    #[test]
    fn late_samples_are_no_unsteady_rate_and_a_stall_holds_the_end_up_for_two_seconds() {
        // Up to 40 ms late, no two alike.
        let late = |sample: u32| f64::from(sample * 7 % 5) / 100.0;
        let ended = ends_after((1, 1), true, late, paced, paced);
        assert!(
            ended.is_some_and(|t_s| (2.0..2.1).contains(&t_s)),
            "{ended:?}"
        );
        // Nothing is read from 0.95 s to 1.05 s, and then all that has come.
        let stalled = |t_s: f64| {
            paced(if (0.95..1.05).contains(&t_s) {
                0.95
            } else {
                t_s
            })
        };
        let ended = ends_after((1, 1), true, |_| 0.0, stalled, paced);
        assert!(
            ended.is_some_and(|t_s| (2.9..3.2).contains(&t_s)),
            "{ended:?}"
        );
    }
}
