//! The services of a scenario: programs that run in a laboratory from its start. Its traffic starts
//! when they are ready.

use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use crate::error::LabError;
use crate::instance::Instance;
use crate::program::{describe, how, keep_last_words, quiet, with_last_words};
use crate::scenario::ServiceSpec;
use crate::traffic::Traffic;

/// A service only has to bind a socket; longer than this and it never will.
const READY_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A service that runs.
struct Service {
    pid: Pid,
    node: String,
    command: String,
    last_words: Option<Receiver<String>>,
}

impl Service {
    /// That it ended, although it should have gone on.
    fn ended(&self, status: WaitStatus) -> LabError {
        self.error(&format!(
            "ended while the lab was running ({})",
            how(status)
        ))
    }

    fn error(&self, problem: &str) -> LabError {
        LabError::Service {
            what: "service",
            command: self.command.clone(),
            node: self.node.clone(),
            problem: with_last_words(problem, self.last_words.as_ref()),
        }
    }
}

/// Where the errors of services go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// Where the laboratory's own go.
    Shown,
    /// No reader sees them: the last are kept for when the service ends.
    Kept,
}

/// The programs of a scenario.
pub(crate) struct Programs {
    services: Vec<Service>,
    traffic: Vec<Traffic>,
}

impl Programs {
    /// Starts the scenario's services, waits until each listens, and starts its traffic.
    pub(crate) fn start(instance: &Instance, errors: Errors) -> Result<Self, LabError> {
        let scenario = instance.scenario();
        let services = scenario.services.iter();
        let services = services
            .map(|spec| start(instance, spec, errors))
            .collect::<Result<_, _>>()?;
        let traffic = scenario.traffic.iter();
        let traffic = traffic.map(|spec| Traffic::start(instance, spec));
        Ok(Self {
            services,
            traffic: traffic.collect::<Result<_, _>>()?,
        })
    }

    /// Takes note of a process that ended.
    ///
    /// # Errors
    /// When it was a service, which should have gone on.
    pub(crate) fn ended(
        &mut self,
        instance: &Instance,
        status: WaitStatus,
    ) -> Result<(), LabError> {
        if let Some(service) = self.services.iter().find(|s| Some(s.pid) == status.pid()) {
            return Err(service.ended(status));
        }
        // The number of a process that has ended may be another's from now on.
        let mut traffic = self.traffic.iter();
        if let Some(at) = traffic.position(|t| Some(t.pid) == status.pid()) {
            let ended = self.traffic.swap_remove(at);
            self.traffic.extend(ended.again(instance, status));
        }
        Ok(())
    }
}

fn start(instance: &Instance, spec: &ServiceSpec, errors: Errors) -> Result<Service, LabError> {
    let mut command = quiet(instance, &spec.node, &spec.run)?;
    if errors == Errors::Kept {
        command.stderr(Stdio::piped());
    }
    let mut service = Service {
        pid: Pid::from_raw(0),
        node: spec.node.clone(),
        command: spec.run.join(" "),
        last_words: None,
    };
    let mut child = command
        .spawn()
        .map_err(|e| service.error(&format!("did not start: {e}")))?;
    service.pid = Pid::from_raw(child.id() as i32);
    service.last_words = child.stderr.take().map(keep_last_words).transpose()?;
    let started = Instant::now();
    while !instance.listens(&spec.node, spec.port)? {
        if let Some(status) = child.try_wait()? {
            return Err(service.error(&format!("ended at once ({})", describe(status))));
        }
        if started.elapsed() > READY_WITHIN {
            return Err(service.error(&format!(
                "did not listen on TCP port {} within {} s",
                spec.port,
                READY_WITHIN.as_secs()
            )));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(service)
}
