//! Searching the rate of a shaper as a step of a plan: one load in a direction, probes beside it, and the shaper set from
//! block to block.

use std::time::{Duration, Instant};

use plumb_host::facts::{Source, processors};
use plumb_load::PhasePlan;
use plumb_load::phase_controller::{Conduct, Conductor, Seen};
use plumb_model::direction::OneDirection;
use plumb_model::framing::Framing;
use plumb_model::results::Outcome;
use plumb_model::results::shaping::{ShapedBlock, ShapedEnd, ShapedRateResult, ShapedTrade};
use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};

use super::auto::{Auto, Look, MOST_S, Order};
use super::search::{self, End};
use crate::background::Background;
use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// As many connections fill a line whatever one of them does.
const STREAMS: u32 = 4;

/// A full packet and its TCP payload with timestamps over IPv4 (RFC 7323), in bytes.
const PACKET_BYTES: u32 = 1500;
const PAYLOAD_BYTES: u32 = 1448;

/// Who sets the rates of a shaper.
pub trait Shaper {
    /// Gives a direction that rate, in bits a second; none is as good as no shaper.
    ///
    /// # Errors
    /// When it cannot be set.
    fn set(
        &mut self,
        direction: OneDirection,
        rate_bps: Option<f64>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// The search in one direction. The path has to be watched without load before it.
pub struct ShapedRate<'a> {
    pub shaper: &'a mut dyn Shaper,
    pub direction: OneDirection,
    /// What the shaper counts on each packet.
    pub framing: Framing,
}

impl Step for ShapedRate<'_> {
    fn name(&self) -> String {
        format!("the rate of a shaper for the {}load", self.direction.name())
    }

    fn needs_responder(&self) -> bool {
        true
    }

    fn weight(&self) -> u64 {
        1
    }

    /// Lasts at most as long as a search does, and what the far end takes to begin and end a load.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let started_ns = monotonic_ns();
        let (Some(far_end), Some(background)) = (&mut session.far_end, &session.background) else {
            return Err(MeasureError::Cancelled);
        };
        let idle = background.idle.as_ref().and_then(|idle| idle.main.as_ref());
        let Some(idle) = idle else {
            return Err(MeasureError::Tuning(
                "no probe came back from the idle path, so that added latency cannot be measured: let the far end answer \
                 UDP or ICMP echo requests"
                    .into(),
            ));
        };
        let idle_rtt_s = idle.rtt_s.p50;
        let plan = PhasePlan {
            flows: vec![Flows {
                count: STREAMS,
                role: self.direction,
                flow: Flow::Tcp(TcpFlow::default()),
            }],
            duration: Duration::from_secs_f64(MOST_S + 2.0),
            byte_limit: Some(session.share),
            until_steady: false,
            from: None,
            to: None,
        };
        let mut conducting = Conducting {
            auto: Auto::default(),
            shaper: self.shaper,
            direction: self.direction,
            wire_ratio: f64::from(self.framing.wire_bytes(PACKET_BYTES)) / f64::from(PAYLOAD_BYTES),
            background,
            idle_rtt_s,
            answered: background.answered(),
            began: Instant::now(),
            failed: None,
        };
        session.watcher.step("searching", plan.duration);
        let watcher = session.watcher;
        let progress = |p: plumb_load::Progress| watcher.carried(&p);
        let peer = far_end.peer();
        let ran = peer.run_phase(&plan, &mut conducting, &progress, &session.stop);
        let Conducting { auto, failed, .. } = conducting;
        let outcome = ran?;
        if let Some(why) = failed {
            return Err(MeasureError::Tuning(why));
        }
        let found = auto.finish();
        let mut out = Yield::default();
        out.notes(&outcome.notes);
        let carried = [&outcome.down, &outcome.up].into_iter().flatten();
        out.bytes = carried.map(|direction| direction.result.bytes).sum();
        out.shortfall = outcome.lost.map(|why| MeasureError::InPart { why });
        let result = result(self.direction, idle_rtt_s, found);
        let outcome = Outcome::ShapedRate(Box::new(result));
        out.add(Measured::until_now(started_ns, outcome));
        Ok(out)
    }
}

/// Looks at the load for the search, and does what it says.
struct Conducting<'a> {
    auto: Auto,
    shaper: &'a mut dyn Shaper,
    direction: OneDirection,
    /// Bytes on the line for each byte of payload.
    wire_ratio: f64,
    background: &'a Background,
    idle_rtt_s: f64,
    answered: u64,
    began: Instant,
    failed: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Conductor for Conducting<'_> {
    fn look(&mut self, seen: Seen) -> Conduct {
        // Of the answers since the last look the latest is known. Where none came, whatever was sent waits at least as
        // long as nothing has come; that the next answer says.
        let answered = self.background.answered();
        let latest = self
            .background
            .last_rtt()
            .filter(|_| answered > self.answered);
        self.answered = answered;
        let added = latest.map(|rtt| Some(rtt.as_secs_f64() - self.idle_rtt_s));
        let added: Vec<Option<f64>> = added.into_iter().collect();
        let bytes = match self.direction {
            OneDirection::Up => seen.looked.acked_bytes,
            OneDirection::Down => seen.looked.received_bytes,
        };
        let order = self.auto.look(&Look {
            elapsed_s: self.began.elapsed().as_secs_f64(),
            carried_bits: bytes as f64 * 8.0 * self.wire_ratio,
            added_s: &added,
            processors: &processors(&mut Source::system()),
        });
        let set = match order {
            Order::Keep => Ok(()),
            Order::Off => self.shaper.set(self.direction, None),
            Order::Rate(rate_bps) => self.shaper.set(self.direction, Some(rate_bps)),
            Order::End => return Conduct::End,
        };
        match set {
            Ok(()) => Conduct::Probe { pairs_per_s: 0.0 },
            Err(why) => {
                self.failed = Some(why);
                Conduct::End
            }
        }
    }
}

fn result(direction: OneDirection, idle_rtt_s: f64, found: search::Outcome) -> ShapedRateResult {
    let block = |block: &search::Block| ShapedBlock {
        rate_bps: block.rate_bps,
        carried_bps: block.carried_bps,
        added_p95_s: Some(block.added_p95_s).filter(|s| s.is_finite()),
        busiest_processor_ratio: block.busiest_ratio,
    };
    ShapedRateResult {
        direction: direction.into(),
        ended: match found.end {
            End::Found => ShapedEnd::Found,
            End::NotNeeded => ShapedEnd::NotNeeded,
            End::LateAtAnyRate => ShapedEnd::LateAtAnyRate,
            End::ProcessorFull => ShapedEnd::ProcessorFull,
            End::OutOfTime => ShapedEnd::OutOfTime,
        },
        rate_bps: found.rate_bps,
        trade: found.trade.map(|trade| ShapedTrade {
            off_bps: trade.off_bps,
            on_bps: trade.on_bps,
            off_added_s: trade.off_added_s,
            on_added_s: trade.on_added_s,
        }),
        processor_bps: found.processor_bps,
        idle_rtt_s,
        blocks: found.blocks.iter().map(block).collect(),
    }
}
