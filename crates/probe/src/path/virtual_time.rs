//! A network of hops in virtual time, for the tests of what explores paths: time passes only during a wait for an
//! answer.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::results::TimestampSource;

use super::{Answer, Answered, HopNetwork, Probe, ProbeId};

/// Who stands on the way.
pub(crate) trait Hops {
    /// What answers a probe that is sent at that time, and how long after; `None` without an answer. Probes have
    /// numbers, from 0.
    fn answer(&mut self, probe: &Probe, number: u64, now_ns: u64) -> Option<(Duration, Answer)>;
}

/// The network of these hops.
#[derive(Debug)]
pub(crate) struct VirtualNetwork<H> {
    pub(crate) hops: H,
    pub(crate) now_ns: u64,
    pub(crate) sent: u64,
    /// Is set at that time.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) stop_at_ns: u64,
    /// Answers by the time at which they arrive.
    on_the_way: BTreeMap<(u64, ProbeId), Answered>,
}

impl<H> VirtualNetwork<H> {
    /// At time 0, and never stopped.
    pub(crate) fn of(hops: H) -> Self {
        Self {
            hops,
            now_ns: 0,
            sent: 0,
            stop: Arc::new(AtomicBool::new(false)),
            stop_at_ns: u64::MAX,
            on_the_way: BTreeMap::new(),
        }
    }
}

impl<H: Hops> HopNetwork for VirtualNetwork<H> {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        let id = ProbeId(self.sent);
        self.sent += 1;
        if let Some((rtt, answer)) = self.hops.answer(probe, id.0, self.now_ns) {
            let answered = Answered {
                id,
                probe: *probe,
                rtt,
                timestamps: TimestampSource::Kernel,
                answer,
            };
            let at_ns = self.now_ns + rtt.as_nanos() as u64;
            self.on_the_way.insert((at_ns, id), answered);
        }
        Ok(id)
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        let arrived = match self.on_the_way.first_key_value() {
            Some(((at_ns, _), _)) if *at_ns <= until_ns => self.on_the_way.pop_first(),
            _ => None,
        };
        let until_ns = arrived.as_ref().map_or(until_ns, |((at_ns, _), _)| *at_ns);
        self.now_ns = self.now_ns.max(until_ns);
        if self.now_ns >= self.stop_at_ns {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(arrived.map(|(_, answered)| answered))
    }
}
