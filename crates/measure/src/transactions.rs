//! Transactions against a native responder, and the Run that comes of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::Client;
use plumb_load::EndedEarly;
use plumb_load::TransactionsOutcome;
use plumb_load::{PhasePlan, Progress};
use plumb_model::context::{Context, Load};
use plumb_model::direction::OneDirection;
use plumb_model::results::Outcome;
use plumb_model::units::{ByteCount, si};
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::{Flow, Flows};

use crate::conductor::{Conducted, Conductor};
use crate::error::MeasureError;
use crate::far_end::FarEnd;
use crate::phase::{asked, ended};
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

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
    pub duration: Duration,
    /// The most payload that may be transferred.
    pub budget: ByteCount,
}

/// Asks and answers as the plan says.
///
/// # Errors
/// When the responder allows less than the plan asks for, or goes away before anything was answered.
pub fn run(
    responder: Client,
    plan: &Plan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let command = plan.command.clone();
    let conductor = Conductor::with_responder(command, &plan.name, responder, watcher, stop);
    let mut conductor = conductor.within(plan.budget);
    conductor.step(&mut Transactions { plan }, 0);
    conductor.finish(Judgement::AsAudited)
}

/// Requests and their responses for a while.
pub struct Transactions<'a> {
    pub plan: &'a Plan,
}

impl Step for Transactions<'_> {
    fn name(&self) -> String {
        "what transactions take".to_owned()
    }

    fn needs_responder(&self) -> bool {
        true
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let plan = self.plan;
        let far_end = session.far_end.as_mut();
        let Some(responder) = far_end.and_then(FarEnd::responder_mut) else {
            return Err(MeasureError::Cancelled);
        };
        let limits = responder.welcome().limits;
        if plan.streams > limits.max_streams {
            return Err(MeasureError::Streams {
                name: plan.name.clone(),
                wanted: plan.streams,
                allowed: limits.max_streams,
            });
        }
        if plan.duration.as_secs_f64() > limits.max_duration_s {
            return Err(MeasureError::Duration {
                name: plan.name.clone(),
                allowed_s: limits.max_duration_s,
            });
        }
        let phase = PhasePlan {
            flows: vec![Flows {
                count: plan.streams,
                role: OneDirection::Up,
                flow: Flow::Transactions(plan.flow.clone()),
            }],
            duration: plan.duration,
            byte_limit: Some(plan.budget.bytes()),
            until_steady: false,
            from: None,
            to: None,
        };
        let watcher = session.watcher;
        watcher.step("asking and answering", plan.duration);
        let progress = |progress: Progress| {
            watcher.update(&format!("{:.0} transactions/s", progress.transactions_tps));
            watcher.carried(&progress);
        };
        let outcome = responder.run_phase(&phase, &progress, &session.stop)?;
        let mut found = Yield::default();
        let (started_ns, duration_s) = (outcome.started_monotonic_ns, outcome.duration_s);
        for TransactionsOutcome { result, series, .. } in &outcome.transactions {
            found.bytes += result.completed * (result.request_bytes + result.response_bytes);
            let result = Outcome::Transactions(result.clone());
            let measured = Measured::of(started_ns, duration_s, result)
                .within(plan.context())
                .with_series(series.clone());
            found.add(Measured {
                ended: ended(outcome.ended_early),
                ..measured
            });
        }
        found.notes(&outcome.notes);
        if let Some(why) = outcome.ended_early {
            found.note(plan.ended_early(why, outcome.duration_s));
        }
        found.shortfall = outcome.lost.map(|why| MeasureError::InPart { why });
        Ok(found)
    }
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

    fn context(&self) -> Context {
        Context {
            load: Some(Load {
                streams: self.streams,
                duration_s: self.duration.as_secs_f64(),
                byte_limit_bytes: Some(self.budget.bytes()),
                flows: vec![asked(self.streams, &Flow::Transactions(self.flow.clone()))],
                ..Load::default()
            }),
            ..Context::default()
        }
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
