//! The small-packet experiment as a step of a plan: floods of datagrams of several sizes, one after the other.

use std::sync::Arc;
use std::time::Duration;

use plumb_load::{Client, EndedEarly, PhaseOutcome, PhasePlan};
use plumb_model::direction::OneDirection;
use plumb_model::results::Outcome;
use plumb_model::results::shaping::{FramingFlood, FramingResult};
use plumb_net::clock::monotonic_ns;
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::datagram::HEADER_BYTES;

use super::overhead::{Experiment, Flood};
use crate::error::MeasureError;
use crate::far_end::FarEnd;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// A flood lasts so long: as many packets as 0.4 % of noise needs pass a line of 1 Mbit/s in it.
const FLOOD: Duration = Duration::from_secs(2);

/// A flood is so much faster than the line carries its packets without any framing.
const MORE: f64 = 1.3;

/// The first flood, which only finds out how fast the line is, sends this much, in bit/s, and four times as much for as long
/// as all of it arrives.
const FIRST_BPS: f64 = 20e6;
const FASTER: f64 = 4.0;
const MOST_BPS: f64 = 4e9;
const FILLS_RATIO: f64 = 0.95;

/// Bytes of the headers of IP and UDP (RFC 791, RFC 8200, RFC 768).
const HEADERS_V4_BYTES: u32 = 28;
const HEADERS_V6_BYTES: u32 = 48;

/// The size of the packets that find out how fast the line is, in bytes of IP.
const LARGE_BYTES: u32 = 1400;

/// The experiment in one direction.
pub struct LineFraming {
    pub direction: OneDirection,
}

impl Step for LineFraming {
    fn name(&self) -> String {
        format!(
            "what the line adds to packets of the {}load",
            self.direction.name()
        )
    }

    fn needs_responder(&self) -> bool {
        true
    }

    fn weight(&self) -> u64 {
        1
    }

    /// Lasts at most as long as the most floods do.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let started_ns = monotonic_ns();
        let (watcher, stop) = (session.watcher, Arc::clone(&session.stop));
        let far_end = session.far_end.as_mut();
        let Some(client) = far_end.and_then(FarEnd::responder_mut) else {
            return Err(MeasureError::Cancelled);
        };
        let headers_bytes = match client.address().is_ipv4() {
            true => HEADERS_V4_BYTES,
            false => HEADERS_V6_BYTES,
        };
        let mut floods = Floods {
            client,
            direction: self.direction,
            headers_bytes,
            left_bytes: session.share,
            sent_bytes: 0,
        };
        let mut out = Yield::default();
        let mut flood = |ip_bytes: u32, bps: f64| {
            watcher.step(&format!("packets of {ip_bytes} bytes"), FLOOD);
            floods.flood(ip_bytes, bps, &stop)
        };
        let mut asked_bps = FIRST_BPS;
        let line_bps = loop {
            let seen = flood(LARGE_BYTES, asked_bps)?;
            let arrived = seen.arrived_pps / seen.sent_pps.max(1.0);
            if arrived < FILLS_RATIO || asked_bps >= MOST_BPS {
                break seen.arrived_pps * f64::from(LARGE_BYTES) * 8.0;
            }
            asked_bps *= FASTER;
        };
        let smallest_bytes = headers_bytes + HEADER_BYTES as u32;
        let mut experiment = Experiment::new(smallest_bytes);
        while let Some(ip_bytes) = experiment.next_bytes() {
            // Framing only makes the line slower than that.
            experiment.record(flood(ip_bytes, line_bps * MORE)?);
        }
        let found = experiment.finish();
        if let Err(why) = &found {
            out.note(format!(
                "The framing of the {}load is not known: {why}.",
                self.direction.name()
            ));
        }
        let known = found.as_ref().ok();
        let result = FramingResult {
            direction: self.direction.into(),
            framing: known.map(|found| found.framing.to_string()),
            or: known.and_then(|found| Some(found.or?.to_string())),
            rate_bps: known.map(|found| found.rate_bps),
            packets_per_s: known.and_then(|found| found.packets_per_s),
            error_ratio: known.map(|found| found.error_ratio),
            floods: experiment.floods().iter().map(shown).collect(),
        };
        out.bytes = floods.sent_bytes;
        out.add(Measured::until_now(
            started_ns,
            Outcome::Framing(Box::new(result)),
        ));
        Ok(out)
    }
}

fn shown(flood: &Flood) -> FramingFlood {
    FramingFlood {
        ip_bytes: flood.ip_bytes,
        sent_pps: flood.sent_pps,
        received_pps: flood.arrived_pps,
    }
}

/// What sends floods and counts them.
struct Floods<'a> {
    client: &'a mut Client,
    direction: OneDirection,
    headers_bytes: u32,
    left_bytes: u64,
    sent_bytes: u64,
}

impl Floods<'_> {
    /// A flood of so many bits of IP packets a second.
    fn flood(
        &mut self,
        ip_bytes: u32,
        bps: f64,
        stop: &std::sync::atomic::AtomicBool,
    ) -> Result<Flood, MeasureError> {
        let bytes = (bps / 8.0 * FLOOD.as_secs_f64()) as u64;
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or_else(|| {
            MeasureError::Tuning(
                "the floods would transfer more than they may: --budget allows more".into(),
            )
        })?;
        self.sent_bytes += bytes;
        let payload = ip_bytes.saturating_sub(self.headers_bytes);
        let payload = u16::try_from(payload).unwrap_or(u16::MAX);
        let pps = bps / 8.0 / f64::from(ip_bytes);
        let plan = PhasePlan {
            flows: vec![Flows {
                count: 1,
                role: self.direction,
                flow: Flow::Udp(UdpFlow::new(payload, Pattern::Constant { pps })),
            }],
            duration: FLOOD,
            byte_limit: None,
            until_steady: false,
            from: None,
            to: None,
        };
        let outcome = self.client.run_phase(&plan, &|_| (), stop)?;
        if outcome.ended_early == Some(EndedEarly::Cancelled) {
            return Err(MeasureError::Cancelled);
        }
        counted((ip_bytes, payload, pps), &outcome).ok_or_else(|| {
            let error = outcome.udp.first().and_then(|udp| udp.result.error.clone());
            MeasureError::InPart {
                why: error.unwrap_or_else(|| "the record of one end is missing".to_owned()),
            }
        })
    }
}

/// What a flood showed; none where an end lost its record of it.
fn counted(
    (ip_bytes, payload, asked_pps): (u32, u16, f64),
    outcome: &PhaseOutcome,
) -> Option<Flood> {
    let result = &outcome.udp.first()?.result;
    let sender = result.sender.as_ref()?;
    let bits = f64::from(payload.max(1)) * 8.0;
    let sent_bps = sender.sent_bytes as f64 * 8.0 / outcome.duration_s.max(f64::MIN_POSITIVE);
    Some(Flood {
        ip_bytes,
        asked_pps,
        sent_pps: sent_bps / bits,
        // Over the time in which it arrived, which a queue makes longer.
        arrived_pps: result.bps? / bits,
    })
}
