//! The network of many targets that are connected to: a thread for each connection under way, of which
//! there is a bound.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use plumb_net::clock::monotonic_ns;

use super::network::{Lower, ManyEvent, ManyNetwork, Sending};
use super::plan::ManyPlan;
use crate::exchange::Talk;
use crate::ping::connections::{event, hold};
use crate::ping::plan::Plan;
use crate::ping::sample::Moment;
use crate::ping::strategy::Event;

/// Connections under way at most: as many threads, at some 20 kB of memory each. Where targets are
/// silent each is held for the timeout, and the rate falls to this over it.
pub(super) const MOST_UNDER_WAY: usize = 512;

/// Connections to many targets.
pub(super) struct ManyConnections {
    targets: Vec<SocketAddr>,
    /// What is said, but for the name.
    talk: Talk,
    hosts: Vec<String>,
    timeout: Duration,
    under_way: usize,
    sender: mpsc::Sender<(u64, Event)>,
    events: mpsc::Receiver<(u64, Event)>,
    pending: Option<(u64, Event)>,
}

impl ManyConnections {
    pub(super) fn open(plan: &ManyPlan, common: &Plan) -> Self {
        let (sender, events) = mpsc::channel();
        Self {
            targets: plan.targets.clone(),
            talk: Talk::of(common),
            hosts: plan.hosts.clone(),
            timeout: plan.timeout,
            under_way: 0,
            sender,
            events,
            pending: None,
        }
    }

    fn begin(&mut self, number: u64, target: u32) -> io::Result<()> {
        let place = target as usize;
        let Some(to) = self.targets.get(place) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut talk = self.talk.clone();
        if let Some(host) = self.hosts.get(place) {
            talk.host.clone_from(host);
        }
        let (sender, asks) = (self.sender.clone(), talk.asks());
        hold(*to, talk, self.timeout, move |outcome| {
            // That nothing waits for it any more is no error.
            let _ = sender.send((number, event(number as u32, asks, outcome)));
        })
    }

    fn take(&self, (number, event): (u64, Event)) -> Option<ManyEvent> {
        match event {
            Event::Answered(answer) => {
                let targets = self.targets.len().max(1) as u64;
                let to = self.targets.get((number % targets) as usize)?;
                Some(ManyEvent::Answered {
                    number: Lower::of_32(number as u32),
                    from: to.ip(),
                    size_bytes: 0,
                    answer,
                })
            }
            Event::Told(why) => Some(ManyEvent::Told { number, why }),
            _ => None,
        }
    }
}

impl ManyNetwork for ManyConnections {
    fn stamps_departures(&self) -> bool {
        false
    }

    fn send(&mut self, probes: &[(u64, u32)]) -> Sending {
        let before = Moment::now();
        let (mut sent, mut error) = (0, None);
        for (number, target) in probes {
            let begun = if self.under_way < MOST_UNDER_WAY {
                self.begin(*number, *target)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            };
            match begun {
                Ok(()) => (self.under_way, sent) = (self.under_way + 1, sent + 1),
                Err(why) => {
                    error = (sent == 0).then_some(why);
                    break;
                }
            }
        }
        Sending {
            sent,
            before,
            after: Moment::now(),
            error,
        }
    }

    fn receive(&mut self, events: &mut Vec<ManyEvent>) -> io::Result<()> {
        while let Some(told) = self.pending.take().or_else(|| self.events.try_recv().ok()) {
            self.under_way = self.under_way.saturating_sub(1);
            events.extend(self.take(told));
        }
        Ok(())
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        match self.events.recv_timeout(left) {
            Ok(told) => self.pending = Some(told),
            // The other end is ours, and stays.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        Ok(())
    }
}
