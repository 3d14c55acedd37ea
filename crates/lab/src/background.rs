//! A laboratory that keeps running after the process that started it has ended.
//!
//! The starter forks the first process of a new PID namespace. That process leaves the terminal, builds the network and
//! reports over a pipe whether it runs; until then it dies with the starter. Afterwards it is controlled over its
//! socket ([`crate::control`]). It ends on request or by a signal; in either case the kernel ends everything in it.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::waitpid;
use plumb_model::run::LabBackend;
use plumb_net::pid_one::{Background, end_with_parent, fork_background};

use crate::control;
use crate::error::LabError;
use crate::instance::Instance;
use crate::program;
use crate::scenario::Scenario;
use crate::service::{Errors, Programs};
use crate::supervise::{LAB_FAILED, settle_first};

/// What the starter receives: the notes on the laboratory, or why there is none.
type Outcome = Result<Vec<String>, String>;

/// Starts a laboratory under a name and returns when it is ready, with what must be known of it.
///
/// Must be called while the process has a single thread.
///
/// # Errors
/// When it could not begin, and when there is one of that name already.
pub fn start(scenario: Scenario, backend: LabBackend, name: &str) -> Result<Vec<String>, LabError> {
    control::check_name(name)?;
    match fork_background()? {
        Background::Parent(first, mut reader) => {
            let mut outcome = String::new();
            reader.read_to_string(&mut outcome)?;
            let outcome = serde_json::from_str::<Outcome>(&outcome)
                .unwrap_or_else(|_| Err("the lab was killed before it was ready".to_owned()));
            outcome.map_err(|why| {
                // It is about to end: then nothing is left of it.
                let _ = waitpid(first, None);
                LabError::Control(why)
            })
        }
        Background::First(mut starter) => {
            let status = match begin(scenario, backend, name) {
                Ok(mut running) => {
                    let told = end_with_parent(false)
                        .and_then(|()| tell(&mut starter, &Ok(running.instance.notes())));
                    drop(starter);
                    // A starter that is gone will not want it.
                    told.and_then(|()| running.go_on())
                        .map_or(LAB_FAILED, |()| 0)
                }
                Err(e) => {
                    // If this fails, the starter is gone and no process is left to report to.
                    let _ = tell(&mut starter, &Err(e.to_string()));
                    LAB_FAILED
                }
            };
            std::process::exit(status)
        }
    }
}

fn tell(starter: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    starter.write_all(&serde_json::to_vec(outcome)?)
}

struct Running {
    instance: Arc<Instance>,
    programs: Programs,
    signals: SignalFd,
}

fn begin(scenario: Scenario, backend: LabBackend, name: &str) -> Result<Running, LabError> {
    let signals = settle_first()?;
    // Before the work: the name may be taken.
    let socket = control::take_name(name)?;
    let instance = Arc::new(Instance::build(scenario, backend)?);
    control::serve_inside(&instance)?;
    let programs = Programs::start(&instance, Errors::Kept)?;
    control::serve_outside(socket, &instance)?;
    Ok(Running {
        instance,
        programs,
        signals,
    })
}

impl Running {
    /// Reaps children until the laboratory is asked to end.
    fn go_on(&mut self) -> io::Result<()> {
        loop {
            for status in program::reap() {
                if let Err(e) = self.programs.ended(&self.instance, status) {
                    self.instance.note(e.to_string());
                }
            }
            let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
            while let Some(info) = self.signals.read_signal()? {
                if info.ssi_signo != Signal::SIGCHLD as u32 {
                    return Ok(());
                }
            }
        }
    }
}
