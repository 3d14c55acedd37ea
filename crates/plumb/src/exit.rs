//! How the program ends: the exit statuses, and the signals that ask it to.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::Context as _;
use plumb_measure::error::MeasureError;
use plumb_net::process::on_interrupt;
use plumb_probe::ProbeError;

use crate::output::message;
use crate::stderr::fail;
use crate::usage::UsageError;

/// Something could not be measured or done.
const FAILED: u8 = 1;
/// What was typed is not what the verb takes.
pub(crate) const USAGE: u8 = 2;
/// A finding reaches `--fail-on`.
pub(crate) const FOUND: u8 = 3;
/// A signal ended it: this and the signal's number, as shells have it.
const BY_SIGNAL: i32 = 128;
/// The signal of Ctrl-C, which every Unix numbers so (POSIX `kill`).
const SIGINT: i32 = 2;

/// The signal that asked the program to end; 0 while none has.
static ASKED_BY: AtomicI32 = AtomicI32::new(0);
/// Whether a signal is how it is meant to end.
static ENDLESS: AtomicBool = AtomicBool::new(false);

/// How what runs comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Of itself: a signal cuts it short.
    ByItself,
    /// By a signal alone: nothing is missing then.
    BySignal,
}

impl Ends {
    /// By a signal alone where nothing else ends it.
    pub(crate) fn by_signal_if(endless: bool) -> Self {
        match endless {
            true => Self::BySignal,
            false => Self::ByItself,
        }
    }
}

/// A flag that Ctrl-C and SIGTERM set; at the second of them the program ends at once. To be called before other
/// threads start, so that none of them is hit.
pub(crate) fn stop_flag(ends: Ends) -> anyhow::Result<Arc<AtomicBool>> {
    ENDLESS.store(ends == Ends::BySignal, Ordering::Relaxed);
    let flag = Arc::new(AtomicBool::new(false));
    on_interrupt(Arc::clone(&flag), &ASKED_BY).context("cannot wait for signals")?;
    Ok(flag)
}

/// The status of a verb that came to this. An error is printed, and so is that a signal cut it short.
pub(crate) fn status(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => unless_cut_short(code, "the result holds what was measured until then"),
        Err(error) => {
            fail(message(&error));
            unless_cut_short(
                ExitCode::from(status_of(&error)),
                "nothing more was measured",
            )
        }
    }
}

/// The status with which an error ends the program.
pub(crate) fn status_of(error: &anyhow::Error) -> u8 {
    let probes = error.downcast_ref().and_then(|error| match error {
        MeasureError::Probe(error) => Some(error),
        _ => None,
    });
    let asked_wrong = probes.or(error.downcast_ref::<ProbeError>());
    match error.is::<UsageError>() || asked_wrong.is_some_and(ProbeError::is_of_what_was_asked) {
        true => USAGE,
        false => FAILED,
    }
}

/// This status, or the status of the signal that cut short what should have ended of itself. A message then says so,
/// and what is `kept`.
pub(crate) fn unless_cut_short(code: ExitCode, kept: &str) -> ExitCode {
    let signal = ASKED_BY.load(Ordering::Relaxed);
    if signal == 0 || ENDLESS.load(Ordering::Relaxed) {
        return code;
    }
    let by = match signal {
        SIGINT => "Ctrl-C",
        _ => "SIGTERM",
    };
    fail(format_args!("cut short by {by}: {kept}"));
    u8::try_from(BY_SIGNAL + signal).map_or(code, ExitCode::from)
}
