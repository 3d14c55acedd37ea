//! The traffic of a scenario: programs that go on beside what is measured for as long as the
//! laboratory does. That one failed becomes a note of the laboratory, because the network is then not
//! what its scenario says.

use std::io::{self, ErrorKind};
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use crate::error::LabError;
use crate::instance::Instance;
use crate::program;
use crate::scenario::TrafficSpec;

/// A program that is over sooner than this would be started for ever, and take the processor from
/// the links.
const WORTH_REPEATING: Duration = Duration::from_secs(1);

/// A program that runs beside what is measured.
pub(crate) struct Traffic {
    pub(crate) pid: Pid,
    spec: TrafficSpec,
    started: Instant,
    last_words: Receiver<String>,
}

impl Traffic {
    pub(crate) fn start(instance: &Instance, spec: &TrafficSpec) -> Result<Self, LabError> {
        let mut command = program::quiet(instance, &spec.node, &spec.run)?;
        command.stderr(Stdio::piped());
        let mut start = || {
            let mut child = command.spawn()?;
            let errors = child.stderr.take();
            let errors = errors.ok_or_else(|| io::Error::from(ErrorKind::BrokenPipe))?;
            Ok((child, program::keep_last_words(errors)?))
        };
        let (child, last_words) = start().map_err(|e: io::Error| LabError::Service {
            what: "traffic",
            command: spec.run.join(" "),
            node: spec.node.clone(),
            problem: format!("did not start: {e}"),
        })?;
        Ok(Self {
            pid: Pid::from_raw(child.id() as i32),
            spec: spec.clone(),
            started: Instant::now(),
            last_words,
        })
    }

    /// Starts it again where it ended well and may; what else there is becomes a note.
    pub(crate) fn again(self, instance: &Instance, status: WaitStatus) -> Option<Self> {
        let lasted = self.started.elapsed();
        let note = match status {
            WaitStatus::Exited(_, 0) if self.spec.once => return None,
            WaitStatus::Exited(_, 0) if lasted >= WORTH_REPEATING => {
                match Self::start(instance, &self.spec) {
                    Ok(again) => return Some(again),
                    Err(e) => e.to_string(),
                }
            }
            WaitStatus::Exited(_, 0) => format!(
                "{} ended after {:.1} s and is not started again: let it last longer, or say once = true",
                name(&self.spec),
                lasted.as_secs_f64()
            ),
            status => {
                let problem = format!(
                    "{} ended after {:.1} s ({})",
                    name(&self.spec),
                    lasted.as_secs_f64(),
                    program::how(status)
                );
                program::with_last_words(&problem, Some(&self.last_words))
            }
        };
        instance.note(note);
        None
    }
}

/// What notes call it.
fn name(spec: &TrafficSpec) -> String {
    format!("the traffic '{}' on {}", spec.run.join(" "), spec.node)
}
