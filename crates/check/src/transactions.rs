//! Transactions against a native responder, and the Run that comes of them.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::TransactionsOutcome;
use plumb_load::client::Client;
use plumb_load::phase::{EndedEarly, PhasePlan, Progress};
use plumb_model::results::Outcome;
use plumb_model::units::{ByteCount, si};
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::control::frame::Role;
use serde_json::{Map, Value};

use crate::assembly::{self, Assembly};
use crate::error::CheckError;
use crate::watcher::Watcher;
use crate::with_responder::Measured;

/// What to ask, and for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The far end as the user typed it.
    pub name: String,
    /// The verb and its arguments, for the Run.
    pub command: Vec<String>,
    /// What each stream asks.
    pub flow: TransactionFlow,
    /// Streams: transactions under way at once.
    pub streams: u32,
    /// How long.
    pub duration: Duration,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
}

/// Measures what the plan says. `cancel` ends it early; what was measured until then is kept, as
/// it is when the responder goes away.
///
/// # Errors
/// When the responder allows less than the plan asks for, or is gone before it began.
pub fn run(
    mut client: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    cancel: &AtomicBool,
) -> Result<Measured, CheckError> {
    let mut assembly = Assembly::begin(plan.command.clone(), &plan.name, client.address().ip());
    assembly.far_host(client.welcome().host.clone());
    let limits = client.welcome().limits;
    if plan.streams > limits.max_streams {
        return Err(CheckError::Streams {
            name: plan.name.clone(),
            wanted: plan.streams,
            allowed: limits.max_streams,
        });
    }
    if plan.duration.as_secs_f64() > limits.max_duration_s {
        return Err(CheckError::Duration {
            name: plan.name.clone(),
            allowed_s: limits.max_duration_s,
        });
    }
    let phase = PhasePlan {
        flows: vec![Flows {
            count: plan.streams,
            role: Role::Up,
            flow: Flow::Transactions(plan.flow.clone()),
        }],
        duration: plan.duration,
        byte_limit: Some(plan.budget.bytes()),
        until_steady: false,
        from: None,
        to: None,
    };
    watcher.step("asking and answering", plan.duration);
    let progress = |progress: Progress| {
        watcher.update(&format!("{:.0} transactions/s", progress.transactions_tps));
        watcher.carried(&progress);
    };
    let outcome = client.run_phase(&phase, &progress, cancel)?;
    for TransactionsOutcome { result, series, .. } in &outcome.transactions {
        assembly.add(assembly::Measured {
            started_ns: outcome.started_monotonic_ns,
            duration_s: outcome.duration_s,
            params: plan.params(),
            outcome: Outcome::Transactions(result.clone()),
            series: series.clone(),
        });
    }
    for note in &outcome.notes {
        assembly.note(note);
    }
    if let Some(why) = outcome.ended_early {
        assembly.note(plan.ended_early(why, outcome.duration_s));
    }
    Ok(Measured {
        run: assembly.finish(),
        lost: outcome.lost,
    })
}

impl Plan {
    /// How much it may transfer and how long it takes, for those who pay for it.
    pub fn announcement(&self) -> String {
        format!(
            "about {:.0} s against {}; it may transfer up to {} (--budget changes that)",
            self.duration.as_secs_f64(),
            self.name,
            si(self.budget.bytes() as f64, "B")
        )
    }

    fn params(&self) -> Map<String, Value> {
        let mut params = Map::new();
        params.insert("streams".to_owned(), self.streams.into());
        params.insert("duration_s".to_owned(), self.duration.as_secs_f64().into());
        params.insert("byte_limit_bytes".to_owned(), self.budget.bytes().into());
        if let Some(rate) = self.flow.rate_tps {
            params.insert("stream_rate_tps".to_owned(), rate.into());
        }
        params
    }

    fn ended_early(&self, why: EndedEarly, duration_s: f64) -> String {
        let budget = si(self.budget.bytes() as f64, "B");
        let why = match why {
            EndedEarly::Budget => format!("its budget ({budget}) was used; --budget allows more"),
            EndedEarly::Cancelled => "it was stopped".to_owned(),
            EndedEarly::StreamsFailed => "every stream had failed".to_owned(),
            EndedEarly::FarEndLost => "the responder went away".to_owned(),
            // What only a load has.
            EndedEarly::Steady | EndedEarly::SourceEnded => "there was no more to do".to_owned(),
        };
        format!("It ended after {duration_s:.1} s because {why}.")
    }
}
