//! `plumb page`: loads of a web page, object by object.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_model::context::Context;
use plumb_model::results::Outcome;
use plumb_model::run::Ended;
use plumb_net::clock::monotonic_ns;
use plumb_probe::page::{PageError, PagePlan, load};

use crate::conductor::{Conducted, Conductor, Went};
use crate::error::MeasureError;
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Loads the page as often as asked; a page that does not come is a result, too.
///
/// # Errors
/// When it was stopped before it was loaded once, or this host could not begin.
pub fn run(
    command: Vec<String>,
    plan: &PagePlan,
    repetitions: u32,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let name = plan.url.origin.authority();
    let mut conductor = Conductor::towards(command, &name, None, watcher, stop);
    for repetition in 1..=repetitions {
        let repetition = (repetitions > 1).then_some(repetition);
        if conductor.step(&mut PageLoad { plan, repetition }, 0) == Went::Not {
            conductor.note("Stopped before the page was loaded as often as asked.");
            break;
        }
    }
    conductor.finish(Judgement::AsAudited)
}

/// One load of a page; it ends within the plan's time.
pub struct PageLoad<'a> {
    pub plan: &'a PagePlan,
    /// Which of several it is, from 1.
    pub repetition: Option<u32>,
}

impl Step for PageLoad<'_> {
    fn name(&self) -> String {
        format!("the page {}", self.plan.url)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let plan = self.plan;
        let what = format!("loading {}", plan.url);
        session.watcher.step(&what, plan.limits.time);
        let started_ns = monotonic_ns();
        let result = load(plan, &session.stop)
            .map_err(|PageError::Local { what, why }| MeasureError::Local { what, source: why })?;
        let bytes = result.bytes;
        let measured = Measured::until_now(started_ns, Outcome::PageLoad(Box::new(result)));
        let measured = Measured {
            ended: match session.is_stopped() {
                true => Ended::Cancelled,
                false => Ended::Complete,
            },
            ..measured
        };
        let measured = measured
            .within(Context {
                repetition: self.repetition,
                ..Context::default()
            })
            .set("version", plan.version.map(|version| version.name()))
            .set("time_s", plan.limits.time.as_secs_f64());
        Ok(Yield {
            bytes,
            ..Yield::of(measured)
        })
    }
}
