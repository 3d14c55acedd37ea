//! `plumb rate`: what the path carries, without probes beside it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_load::client::Client;
use plumb_model::results::Direction;
use plumb_model::run::Run;
use plumb_model::units::ByteCount;

use crate::assembly::Assembly;
use crate::budget::Budget;
use crate::error::CheckError;
use crate::phase::{Phase, PhaseSpec};
use crate::watcher::Watcher;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The address used for it.
    pub address: IpAddr,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    /// Directions, one after the other.
    pub directions: Vec<Direction>,
    /// How long each lasts.
    pub duration: Duration,
    /// Streams each way.
    pub streams: u32,
    /// Congestion control; CUBIC when absent.
    pub cc: Option<String>,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
}

/// Measures the rates, one direction after the other.
///
/// # Errors
/// When the responder refuses or goes away.
pub fn run(
    mut client: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    cancel: &AtomicBool,
) -> Result<Run, CheckError> {
    let mut assembly = Assembly::begin(plan.command.clone(), &plan.name, plan.address);
    assembly.far_host(client.welcome().host.clone());
    let mut budget = Budget::new(plan.budget);
    for (number, direction) in plan.directions.iter().enumerate() {
        let later = plan.directions.len().saturating_sub(number + 1) as u64;
        let spec = PhaseSpec {
            direction: *direction,
            streams: plan.streams,
            duration: plan.duration,
            byte_limit: Some(budget.share(1, later)),
            cc: plan.cc.clone(),
        };
        let phase = Phase::run(&mut client, spec, watcher, cancel)?;
        budget.spend(phase.bytes());
        phase.record_rates(&mut assembly);
        if cancel.load(Ordering::Relaxed) {
            assembly.note("The measurement was stopped before its end.");
            break;
        }
    }
    Ok(assembly.finish())
}
