//! A load phase as a step of a plan.

use std::time::Duration;

use plumb_model::formula::clocks::Incomparable;
use plumb_wire::native::control::flow::Flow;

use super::{Phase, PhaseSpec};
use crate::background::Background;
use crate::clocks::by_log;
use crate::cut_short::CutShort;
use crate::error::MeasureError;
use crate::one_way::OneWay;
use crate::probes::ProbeLogs;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// A load phase as a step of a plan.
pub struct LoadPhase {
    spec: PhaseSpec,
    /// Its weight for the budget, and its part of the whole of it.
    weight: u64,
    part: f64,
    /// How short it was, where its share of the budget ended it.
    cut_short: Option<CutShort>,
}

impl LoadPhase {
    /// With a weight of so much, which is `part` of the whole budget.
    pub(crate) fn new(spec: PhaseSpec, weight: u64, part: f64) -> Self {
        Self {
            spec,
            weight,
            part,
            cut_short: None,
        }
    }

    /// Lasts so long; nothing is measured where that is no time at all.
    pub(crate) fn lasts(&mut self, time: Duration) {
        self.spec.duration = time;
    }

    /// Has TCP send no segments with more payload than that, in bytes, unless it was asked for fewer.
    pub(crate) fn limit_segments(&mut self, bytes: u16) {
        for group in &mut self.spec.groups {
            if let Flow::Tcp(tcp) = &mut group.flow {
                tcp.mss_bytes = Some(tcp.mss_bytes.map_or(bytes, |asked| asked.min(bytes)));
            }
        }
    }

    /// How short it was, where its share of the budget ended it.
    pub(crate) fn cut_short(&self) -> Option<CutShort> {
        self.cut_short
    }
}

impl Step for LoadPhase {
    fn name(&self) -> String {
        format!("the phase '{}'", self.spec.name())
    }

    /// Its part of the budget of bytes, as the plan set it.
    fn weight(&self) -> u64 {
        self.weight
    }

    /// Lasts as long as the phase, the time that its queue takes to empty, and at most 15 s for a far end that is
    /// silent.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        if self.spec.duration.is_zero() {
            let mut found = Yield::default();
            found.note(format!(
                "The phase '{}' was not measured, because the time for it was over.",
                self.spec.name()
            ));
            return Ok(found);
        }
        let mut spec = self.spec.clone();
        if !spec.bytes_are_the_goal {
            spec.byte_limit = Some(session.share);
        }
        if let Some(left) = session.time_left() {
            spec.duration = spec.duration.min(left);
        }
        let Some(far_end) = &mut session.far_end else {
            return Err(MeasureError::Cancelled);
        };
        let background = session.background.as_ref();
        let idle = background.and_then(|background| background.idle.as_ref());
        let idle = idle.and_then(|idle| Some((idle.window, idle.main.as_ref()?)));
        let phase = match Phase::run(
            far_end.peer(),
            spec,
            session.watcher,
            &|| background.and_then(Background::last_rtt),
            &session.stop,
        ) {
            // Where the path was seen before, that is what it does under load.
            Err(why) if why.is_without_connections() && idle.is_some() => {
                let mut found = Yield::default();
                found.note(format!(
                    "The phase '{}' could not begin, because its connections did not come about: {why}.",
                    self.spec.name()
                ));
                return Ok(found);
            }
            phase => phase?,
        };
        self.cut_short = phase.cut_short(self.part);
        let drained = background
            .filter(|_| phase.lost().is_none())
            .and_then(|background| {
                background.drain(session.time_left(), session.watcher, &session.stop)
            });
        let logs = background.map_or_else(ProbeLogs::none, |b| {
            b.settled(phase.window(), session.time_left())
        });
        let clocks = match logs.udp() {
            Some(log) => by_log(log),
            None => Err(Incomparable::Silence),
        };
        let mut found = Yield {
            bytes: phase.bytes(),
            ..Yield::default()
        };
        phase.record_rates(&mut found, &session.local, session.far.as_ref());
        phase.record_asked(&mut found);
        phase.record_quic(&mut found);
        phase.record_responsiveness(&mut found);
        let probe_wait_s = idle.and_then(|(_, main)| phase.probe_wait_s(&logs, main));
        let one_way = logs.udp().and_then(OneWay::of);
        phase.record_udp(&mut found, clocks, one_way, probe_wait_s);
        // Beside datagrams that heed no loss there is no latency of interest.
        let beside = phase.has_load() && self.spec.experiment.is_none();
        if let Some((window, main)) = idle.filter(|_| beside) {
            phase.note_gentle_loads(&mut found);
            phase.record_latency(&mut found, &logs, window, main, drained);
        }
        if let Some(why) = phase.lost() {
            found.shortfall = Some(MeasureError::InPart {
                why: why.to_owned(),
            });
        }
        Ok(found)
    }
}
