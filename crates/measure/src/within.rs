//! A step that is stopped when its time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::scope;
use std::time::{Duration, Instant};

use plumb_model::units::human_seconds;

use crate::error::MeasureError;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// How often it is looked whether the user wants all to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A step that is stopped when its time, or the time of the plan, is over. A step that keeps partial results when
/// stopped keeps what it has measured; for any other a note says that it is missing. That is no shortfall of the plan.
pub struct Within<'a> {
    pub step: &'a mut dyn Step,
    /// How long it may take.
    pub time: Duration,
}

impl Step for Within<'_> {
    fn name(&self) -> String {
        self.step.name()
    }

    fn needs_responder(&self) -> bool {
        self.step.needs_responder()
    }

    fn weight(&self) -> u64 {
        self.step.weight()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let time = session
            .time_left()
            .map_or(self.time, |left| left.min(self.time));
        let name = self.step.name();
        let own = Arc::new(AtomicBool::new(false));
        let users = std::mem::replace(&mut session.stop, Arc::clone(&own));
        let measured = scope(|threads| {
            let (done, ended) = mpsc::channel::<()>();
            let (own, users) = (&*own, &*users);
            threads.spawn(move || stop_after(time, own, users, &ended));
            let measured = self.step.measure(session);
            drop(done);
            measured
        });
        let by_user = users.load(Ordering::Relaxed);
        session.stop = users;
        let why = match measured {
            Err(MeasureError::Cancelled) if by_user => return Err(MeasureError::Cancelled),
            Err(MeasureError::Cancelled) => {
                format!("it takes longer than {}", human_seconds(time.as_secs_f64()))
            }
            Err(why) => why.to_string(),
            Ok(mut found) => match found.shortfall.take() {
                Some(why) => {
                    found.note(format!("Not measured: {name}, because {why}."));
                    return Ok(found);
                }
                None => return Ok(found),
            },
        };
        let mut found = Yield::default();
        found.note(format!("Not measured: {name}, because {why}."));
        Ok(found)
    }
}

/// Stops the step when its time is over or the user wants it; ends with the step at the latest.
fn stop_after(time: Duration, own: &AtomicBool, users: &AtomicBool, ended: &mpsc::Receiver<()>) {
    let until = Instant::now().checked_add(time);
    loop {
        let left = until.map_or(Duration::MAX, |until| {
            until.saturating_duration_since(Instant::now())
        });
        match ended.recv_timeout(left.min(LOOK_EVERY)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        if left.is_zero() || users.load(Ordering::Relaxed) {
            own.store(true, Ordering::Relaxed);
            return;
        }
    }
}
