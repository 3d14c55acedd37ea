//! Single probes with seconds of silence before each: a radio that sleeps meanwhile answers the first packet late.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::context::{Context, Phase};
use plumb_model::protocol::Protocol;
use plumb_probe::Plan;

use crate::error::MeasureError;
use crate::ping::probe;
use crate::progress::Watcher;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// The silence before each. Mobile networks release a silent terminal after some 10 s (Huang et al., A Close Examination of
/// Performance and Power Characteristics of 4G LTE Networks, MobiSys 2012: 11.6 s).
const SILENCE: Duration = Duration::from_secs(12);

/// The first follows whatever was sent before; one of the other two may be late by chance.
const PROBES: u64 = 3;

/// A radio that takes longer to wake up is not waited for.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Probes of a far end by ICMP while nothing else is sent to it. They are over before a plan begins: the heartbeats of a
/// responder's connection keep any radio awake.
pub struct AfterSilence {
    name: String,
    /// What came of them, until it is recorded.
    found: Option<Result<Yield, MeasureError>>,
}

impl AfterSilence {
    /// Sends them now, which takes 24 s and a round trip, at most 26 s.
    pub fn probe(
        name: &str,
        address: SocketAddr,
        watcher: &dyn Watcher,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let mut plan = Plan::new(Protocol::Icmp, name, address);
        plan.count = Some(PROBES);
        plan.interval = SILENCE;
        plan.timeout = TIMEOUT;
        Self {
            name: name.to_owned(),
            found: Some(probe(plan, watcher, stop)),
        }
    }
}

impl Step for AfterSilence {
    fn name(&self) -> String {
        format!(
            "what the first packet to {} takes after a silence",
            self.name
        )
    }

    /// Returns what was measured before the plan began.
    fn measure(&mut self, _: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut found = self.found.take().unwrap_or_else(|| Ok(Yield::default()))?;
        // A far end that answers no ICMP is no failure of the check.
        if found.shortfall.take().is_some() {
            found.measured.clear();
        }
        for measured in &mut found.measured {
            measured.context = Context {
                phase: Some(Phase::Silence),
                ..std::mem::take(&mut measured.context)
            };
        }
        Ok(found)
    }
}
