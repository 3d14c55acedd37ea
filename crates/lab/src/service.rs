//! The programs that run in a laboratory from its start, and how any program starts in a node.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use plumb_net::namespace::Namespaces;
use plumb_net::process::start_in;

use crate::control;
use crate::error::LabError;
use crate::instance::Instance;
use crate::scenario::ServiceSpec;
use crate::traffic::Traffic;

/// A service only has to bind a socket; longer than this and it never will.
const READY_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How much of a service's last words is told.
const LAST_WORDS_BYTES: usize = 1024;
/// How long to wait for them once it has ended: they are in the pipe already, unless a child of
/// the service still holds it.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(200);

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

/// A problem, and what the program said last where it said something.
pub(crate) fn with_last_words(problem: &str, words: Option<&Receiver<String>>) -> String {
    let said = words.and_then(|words| words.recv_timeout(LAST_WORDS_WITHIN).ok());
    let said = said.unwrap_or_default();
    let said: Vec<&str> = said.split_whitespace().collect();
    match said.join(" ").trim_end_matches('.') {
        "" => problem.to_owned(),
        said => format!("{problem}: {said}"),
    }
}

/// Where the errors of services go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// Where the laboratory's own go.
    Shown,
    /// There is nobody to read them: the last are kept for when the service ends.
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

/// A program in a node that neither reads nor writes a terminal.
pub(crate) fn quiet(instance: &Instance, node: &str, run: &[String]) -> Result<Command, LabError> {
    let arguments: Vec<OsString> = run.iter().map(OsString::from).collect();
    let mut command = prepare(instance.namespaces(node)?, &arguments)?;
    // Not the terminal's foreground group: Ctrl-C is for the command.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    Ok(command)
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

/// Reads what a service says, so that it never has to wait, and passes the end of it on.
///
/// The thread ends when the service and its children have ended.
pub(crate) fn keep_last_words(
    mut errors: impl Read + Send + 'static,
) -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("service-errors".into())
        .spawn(move || {
            let mut last = Vec::new();
            let mut buffer = [0; LAST_WORDS_BYTES];
            while let Ok(length @ 1..) = errors.read(&mut buffer) {
                last.extend_from_slice(buffer.get(..length).unwrap_or_default());
                last.drain(..last.len().saturating_sub(LAST_WORDS_BYTES));
            }
            let _ = sender.send(String::from_utf8_lossy(&last).trim().to_owned());
        })?;
    Ok(receiver)
}

/// How a process ended.
pub(crate) fn how(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("exit status {code}"),
        WaitStatus::Signaled(_, signal, _) => signal.to_string(),
        other => format!("{other:?}"),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "no status".to_owned(),
    }
}

/// A command that will start inside a node and find this plumb by its name.
pub(crate) fn prepare(node: &Arc<Namespaces>, arguments: &[OsString]) -> Result<Command, LabError> {
    let plumb = std::env::current_exe()?;
    let Some((program, rest)) = arguments.split_first() else {
        return Err(LabError::Control("there is no command to run".into()));
    };
    let mut path = OsString::from(plumb.parent().unwrap_or(Path::new("/")));
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let program = if program == OsStr::new("plumb") {
        plumb.as_os_str()
    } else {
        program
    };
    let mut command = Command::new(program);
    command
        .args(rest)
        .env("PATH", path)
        .env(control::VARIABLE, format!("@{}", control::SOCKET_NAME));
    start_in(&mut command, node)?;
    Ok(command)
}

/// Takes note of every process that has ended, among them orphans that the first process of a
/// PID namespace inherits.
pub(crate) fn reap() -> impl Iterator<Item = WaitStatus> {
    std::iter::from_fn(|| match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) | Err(_) => None,
        Ok(status) => Some(status),
    })
}
