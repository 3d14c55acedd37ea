//! Running a command inside a laboratory, and leaving nothing behind.
//!
//! Two processes. The *outer* one is what the user started: it only waits and passes signals
//! on. The *inner* one is the first process of a new PID namespace and owns everything: links,
//! services, the command. When it ends, for whatever reason, the kernel ends every process in
//! the namespace, and with the last of them go the network namespaces and their devices. It is
//! killed when the outer one dies, so that even SIGKILL leaves nothing.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use plumb_net::namespace::mount_kernel_fs;
use plumb_net::process::{Forked, block_signals, fork_init, start_in};

use crate::control;
use crate::error::LabError;
use crate::instance::Instance;
use crate::scenario::Scenario;
use crate::stats::LabStats;

/// Exit status for failures of the laboratory itself, as `env`, `timeout` and others use it.
pub const LAB_FAILED: i32 = 125;
/// Exit status when the command cannot be executed, as shells use it.
const NOT_EXECUTABLE: i32 = 126;
/// Exit status when the command does not exist, as shells use it.
const NOT_FOUND: i32 = 127;

/// How long the command may go on after it was told to end, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Signals that end the laboratory, after the command had its chance.
const ENDING: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// What to run, and where.
#[derive(Debug)]
pub struct Session {
    /// Node in which the command runs; the scenario's first when not given.
    pub node: Option<String>,
    /// Program and arguments.
    pub command: Vec<OsString>,
}

/// Runs a command inside a laboratory and returns its exit status.
///
/// `finished` gets the statistics when the command has ended, before the network is taken
/// down; `problem` gets errors of the laboratory. Must be called while the process has a
/// single thread.
///
/// # Errors
/// When the laboratory could not begin; later failures go to `problem` and exit status
/// [`LAB_FAILED`].
pub fn run(
    scenario: Scenario,
    session: &Session,
    finished: impl FnOnce(LabStats) -> io::Result<()>,
    problem: impl FnOnce(&LabError),
) -> Result<i32, LabError> {
    match fork_init().map_err(LabError::Privilege)? {
        Forked::Parent(init) => Ok(wait_outside(init)?),
        Forked::Init => {
            let status = match supervise(scenario, session, finished) {
                Ok(status) => status,
                Err(e) => {
                    problem(&e);
                    LAB_FAILED
                }
            };
            std::process::exit(status)
        }
    }
}

/// The outer process: passes signals on and waits for the inner one.
fn wait_outside(init: Pid) -> io::Result<i32> {
    let mut signals = ENDING.to_vec();
    signals.push(Signal::SIGCHLD);
    let set = block_signals(&signals)?;
    let signals = SignalFd::new(&set)?;
    loop {
        match waitpid(init, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::Exited(_, status) => return Ok(status),
            // The inner process handles every signal but SIGKILL: this was somebody's kill -9.
            WaitStatus::Signaled(..) => return Ok(LAB_FAILED),
            _ => {}
        }
        let Some(info) = signals.read_signal()? else {
            continue;
        };
        // A key on the terminal reached the whole foreground group already.
        let typed = info.ssi_code == libc_si_kernel();
        if let Ok(signal) = Signal::try_from(info.ssi_signo as i32)
            && signal != Signal::SIGCHLD
            && !typed
        {
            // It may have ended in the meantime; the next turn sees that.
            let _ = kill(init, signal);
        }
    }
}

/// `SI_KERNEL` of `asm-generic/siginfo.h`: sent by the kernel, here by the terminal.
const fn libc_si_kernel() -> i32 {
    0x80
}

/// The inner process: builds the network, runs the command, reaps whatever dies.
fn supervise(
    scenario: Scenario,
    session: &Session,
    finished: impl FnOnce(LabStats) -> io::Result<()>,
) -> Result<i32, LabError> {
    let mut signals = ENDING.to_vec();
    signals.push(Signal::SIGCHLD);
    // Before any thread, so that they all have them blocked and only the descriptor sees them.
    let set = block_signals(&signals)?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK).map_err(io::Error::from)?;
    mount_kernel_fs("proc", Path::new("/proc"))?;

    let instance = Arc::new(Instance::build(scenario)?);
    control::serve(&instance)?;
    let services = start_services(&instance)?;
    let node = session
        .node
        .as_deref()
        .unwrap_or_else(|| instance.first_node());
    let mut command = prepare(&instance, node, &session.command)?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let name = session.command.first().cloned().unwrap_or_default();
            eprintln!("plumb lab: cannot run {}: {e}", name.display());
            return Ok(if e.kind() == io::ErrorKind::NotFound {
                NOT_FOUND
            } else {
                NOT_EXECUTABLE
            });
        }
    };
    let status = wait_inside(&signals, &child, &services)?;
    finished(instance.stats())?;
    Ok(status)
}

/// Waits for the command, reaping every orphan on the way: that is the first process's duty.
fn wait_inside(signals: &SignalFd, command: &Child, services: &[Service]) -> Result<i32, LabError> {
    let pid = Pid::from_raw(command.id() as i32);
    let mut kill_at: Option<Instant> = None;
    loop {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(_) => break,
                Ok(status) if status.pid() == Some(pid) => return Ok(exit_code(status)),
                Ok(status) => {
                    if let Some(service) = services.iter().find(|s| Some(s.pid) == status.pid()) {
                        return Err(
                            service.error(format!("ended while the lab was running ({status:?})"))
                        );
                    }
                }
            }
        }
        let wait = match kill_at {
            None => PollTimeout::NONE,
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let _ = kill(pid, Signal::SIGKILL);
                    kill_at = None;
                    continue;
                }
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
        };
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, wait) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(io::Error::from(e).into()),
        }
        while let Ok(Some(info)) = signals.read_signal() {
            match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => {
                    let typed = info.ssi_code == libc_si_kernel();
                    // A key on the terminal reached the command too, which may live through it.
                    if typed && matches!(signal, Signal::SIGINT | Signal::SIGQUIT) {
                        continue;
                    }
                    if !typed {
                        let _ = kill(pid, signal);
                    }
                    kill_at.get_or_insert_with(|| Instant::now() + GRACE);
                }
            }
        }
    }
}

/// The status a shell would show.
fn exit_code(status: WaitStatus) -> i32 {
    match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        _ => LAB_FAILED,
    }
}

struct Service {
    pid: Pid,
    node: String,
    command: String,
}

impl Service {
    fn error(&self, problem: String) -> LabError {
        LabError::Service {
            command: self.command.clone(),
            node: self.node.clone(),
            problem,
        }
    }
}

/// Starts the scenario's services and waits until each listens.
fn start_services(instance: &Arc<Instance>) -> Result<Vec<Service>, LabError> {
    /// A service only has to bind a socket; longer than this and it never will.
    const READY_WITHIN: Duration = Duration::from_secs(10);
    const LOOK_EVERY: Duration = Duration::from_millis(10);

    let mut services = Vec::new();
    for spec in &instance.scenario().services {
        let arguments: Vec<OsString> = spec.run.iter().map(OsString::from).collect();
        let mut command = prepare(instance, &spec.node, &arguments)?;
        // Not the terminal's foreground group: Ctrl-C is for the command.
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .process_group(0);
        let child = command.spawn();
        let mut service = Service {
            pid: Pid::from_raw(0),
            node: spec.node.clone(),
            command: spec.run.join(" "),
        };
        let mut child = child.map_err(|e| service.error(format!("did not start: {e}")))?;
        service.pid = Pid::from_raw(child.id() as i32);
        let started = Instant::now();
        while !instance.listens(&spec.node, spec.port)? {
            if let Some(status) = child.try_wait()? {
                return Err(service.error(format!("ended at once ({})", describe(status))));
            }
            if started.elapsed() > READY_WITHIN {
                return Err(service.error(format!(
                    "did not listen on TCP port {} within {} s",
                    spec.port,
                    READY_WITHIN.as_secs()
                )));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        services.push(service);
    }
    Ok(services)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "no status".to_owned(),
    }
}

/// A command that will start inside a node and find this plumb by its name.
fn prepare(instance: &Instance, node: &str, arguments: &[OsString]) -> Result<Command, LabError> {
    let plumb = std::env::current_exe()?;
    let Some((program, rest)) = arguments.split_first() else {
        return Err(LabError::Control("there is no command to run".into()));
    };
    let mut path = OsString::from(plumb.parent().unwrap_or(Path::new("/")));
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let mut command = if program == "plumb" {
        Command::new(plumb)
    } else {
        Command::new(program)
    };
    command
        .args(rest)
        .env("PATH", path)
        .env(control::VARIABLE, format!("@{}", control::SOCKET_NAME));
    start_in(&mut command, instance.namespaces(node)?)?;
    Ok(command)
}
