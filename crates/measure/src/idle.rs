//! The path without load: before it, to have something to compare with, and after it, to see that the path has
//! recovered.

use std::time::Duration;

use plumb_model::context::Phase;
use plumb_model::protocol::Protocol;
use plumb_model::units::human_seconds;
use plumb_net::privilege;

use crate::background::{Background, Idle};
use crate::error::MeasureError;
use crate::near_hops;
use crate::one_way::OneWay;
use crate::probes::{Aim, Probes, unanswered};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How long the idle path is watched: 250 round trips, and longer than the second that Wi-Fi's
/// power saving takes to end.
pub(crate) const IDLE: Duration = Duration::from_secs(5);

/// The same after the load, to see that the path has recovered.
pub(crate) const AFTER: Duration = Duration::from_secs(2);

/// The same for comparing the clocks alone: 25 exchanges, of which the best counts.
const CLOCKS: Duration = Duration::from_millis(500);

/// Lateness of our own probes (p95, in seconds) from which on the machine was too busy to be trusted with
/// milliseconds.
const LATE_S: f64 = 0.005;

/// What the probes of a plan are for.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// Round trips, in best effort and in each further class, and of the first hops of the path.
    Latency(Aim),
    /// Comparing the clocks of both hosts, for one-way delay.
    Clocks(Aim),
    None,
}

/// Begins the probes and watches the path before any load.
pub struct IdlePath {
    purpose: Purpose,
    /// Whether the first hops are probed too.
    hops: bool,
    time: Duration,
}

impl IdlePath {
    /// For that purpose, with the first hops of the path.
    pub fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            hops: true,
            time: IDLE,
        }
    }

    /// The same for so long.
    #[must_use]
    pub fn lasting(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The far end alone.
    pub fn of_far_end(aim: Aim) -> Self {
        Self {
            purpose: Purpose::Latency(aim),
            hops: false,
            time: IDLE,
        }
    }
}

impl Step for IdlePath {
    fn name(&self) -> String {
        "the latency of the idle path".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut found = Yield::default();
        let (mut background, time) = match &self.purpose {
            Purpose::Latency(aim) => {
                let mut aim = aim.clone();
                if self.hops {
                    let (places, silent) = near_hops::find(aim.address.ip(), self.time);
                    found.notes(silent);
                    aim.places = places;
                }
                (Background::towards(&aim), self.time)
            }
            Purpose::Clocks(aim) => (
                Background::begin(|stop| {
                    Probes::for_clocks(&aim.name, aim.address, aim.echoes, stop)
                }),
                CLOCKS,
            ),
            Purpose::None => (Background::begin(|_| Probes::none()), Duration::ZERO),
        };
        found.notes(background.notes());
        let (window, p95) = background.watch(Phase::Idle, time, session.watcher, &session.stop);
        let mut idle = Idle {
            window,
            p95,
            main: None,
        };
        if let Purpose::Latency(aim) = &self.purpose {
            let logs = background.settled(window, session.time_left());
            let waits = logs
                .udp()
                .and_then(|log| OneWay::of(log)?.waits(log, window));
            logs.record_ping(&mut found, window, Phase::Idle, waits);
            let silent = background.unanswered_udp();
            if silent > 0 {
                let address = aim.address.ip();
                found.add(unanswered(Protocol::Udp, address, silent, window));
            }
            found.notes(logs.notes());
            idle.main = logs.main(window);
            let late = idle.main.as_ref().and_then(|main| main.lateness_s);
            if let Some(late) = late.filter(|late| late.p95 > LATE_S) {
                found.note(format!(
                    "This machine sent probes up to {} late (p95): it was busy.",
                    human_seconds(late.p95)
                ));
            }
            if idle.main.is_none() && aim.echoes {
                let port = aim.address.port();
                let what = match privilege::may_echo(aim.address.is_ipv4()) {
                    true => format!("neither ICMP nor UDP port {port} passes"),
                    false => {
                        format!("UDP port {port} does not pass, and this user may not send ICMP")
                    }
                };
                found.note(format!(
                    "No round trip came back: {what}. Latency was not measured; let one of them through the firewalls on the path."
                ));
            }
        }
        background.idle = Some(idle);
        session.background = Some(background);
        Ok(found)
    }
}

/// Watches the path after a load; nothing where no probes run.
pub struct RecoveredPath {
    /// How long it is watched.
    pub time: Duration,
}

impl Step for RecoveredPath {
    fn name(&self) -> String {
        "the path after the load".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut found = Yield::default();
        let Some(background) = &session.background else {
            return Ok(found);
        };
        let (window, _) = background.watch(Phase::After, self.time, session.watcher, &session.stop);
        let logs = background.settled(window, session.time_left());
        let waits = logs
            .udp()
            .and_then(|log| OneWay::of(log)?.waits(log, window));
        logs.record_ping(&mut found, window, Phase::After, waits);
        found.notes(logs.notes());
        Ok(found)
    }
}
