//! Running a command inside a laboratory, and leaving nothing behind.
//!
//! Two processes. The *outer* one is what the user started: it only waits and passes signals
//! on. The *inner* one is the first process of a new PID namespace and owns everything: links,
//! services, the command. When it ends, for whatever reason, the kernel ends every process in
//! the namespace, and with the last of them go the network namespaces and their devices. It is
//! killed when the outer one dies, so that even SIGKILL leaves nothing.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use plumb_model::printable;
use plumb_model::run::LabBackend;
use plumb_net::namespace::mount_kernel_fs;
use plumb_net::pid_one::{Forked, fork_first};
use plumb_net::process::{ENDING, block_signals};

use crate::control;
use crate::error::LabError;
use crate::instance::Instance;
use crate::observe::{Scribe, Sight};
use crate::program;
use crate::scenario::Scenario;
use crate::service::{Errors, Programs};
use crate::stats::LabStats;

/// Exit status for failures of the laboratory itself, as `env`, `timeout` and others use it.
pub const LAB_FAILED: i32 = 125;
/// Exit status when the command cannot be executed, as shells use it.
const NOT_EXECUTABLE: i32 = 126;
/// Exit status when the command does not exist, as shells use it.
const NOT_FOUND: i32 = 127;

/// How long the command may run after it was asked to end, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// What to run, and where.
pub struct Session {
    /// Node in which the command runs; the scenario's first when not given.
    pub node: Option<String>,
    /// What carries the links that have cells.
    pub backend: LabBackend,
    pub command: Vec<OsString>,
    /// What is to be written down meanwhile.
    pub records: Vec<Record>,
}

/// What is to be written down, and where to.
pub struct Record {
    pub sight: Sight,
    pub file: File,
    /// Name of the file, for messages.
    pub path: PathBuf,
    /// Called when all of it is in the file.
    pub keep: Box<dyn FnOnce() -> io::Result<()>>,
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
    session: Session,
    finished: impl FnOnce(&LabStats) -> io::Result<()>,
    problem: impl FnOnce(&LabError),
) -> Result<i32, LabError> {
    match fork_first()? {
        Forked::Parent(first) => Ok(match wait_outside(first, &outside_signals()?)? {
            WaitStatus::Exited(_, status) => status,
            // The inner process handles every signal but SIGKILL: this was a kill -9.
            _ => LAB_FAILED,
        }),
        Forked::First => {
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

/// Keeps the signals that end a program, and those about its children, for [`wait_outside`].
pub(crate) fn outside_signals() -> io::Result<SignalFd> {
    Ok(SignalFd::new(&block_ending()?)?)
}

fn block_ending() -> io::Result<SigSet> {
    let mut signals = ENDING.to_vec();
    signals.push(Signal::SIGCHLD);
    block_signals(&signals)
}

/// Waits for a child and passes signals on to it.
pub(crate) fn wait_outside(child: Pid, signals: &SignalFd) -> io::Result<WaitStatus> {
    loop {
        let status = waitpid(child, Some(WaitPidFlag::WNOHANG))?;
        if matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
            return Ok(status);
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
            let _ = kill(child, signal);
        }
    }
}

/// `SI_KERNEL` of `asm-generic/siginfo.h`: sent by the kernel, here by the terminal.
const fn libc_si_kernel() -> i32 {
    0x80
}

/// Makes the calling process what the first of a PID namespace must be: it hears of signals only
/// through the descriptor, and /proc shows its namespace.
pub(crate) fn settle_first() -> Result<SignalFd, LabError> {
    // Before any thread, so that they all have them blocked and only the descriptor sees them.
    let set = block_ending()?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK).map_err(io::Error::from)?;
    mount_kernel_fs("proc", Path::new("/proc"))?;
    Ok(signals)
}

/// The inner process: builds the network, runs the command, reaps whatever dies.
fn supervise(
    scenario: Scenario,
    session: Session,
    finished: impl FnOnce(&LabStats) -> io::Result<()>,
) -> Result<i32, LabError> {
    let signals = settle_first()?;
    let instance = Arc::new(Instance::build(scenario, session.backend)?);
    control::serve_inside(&instance)?;
    let scribes: Vec<Scribe> = session
        .records
        .iter()
        .map(|record| Scribe::begin(&instance, &record.sight, record.file.try_clone()?))
        .collect::<Result<_, _>>()?;
    let mut programs = Programs::start(&instance, Errors::Shown)?;
    let node = session
        .node
        .as_deref()
        .unwrap_or_else(|| instance.first_node());
    let mut command = program::prepare(instance.namespaces(node)?, &session.command)?;
    let child = match spawn(&mut command) {
        Ok(child) => child,
        Err(status) => return Ok(status),
    };
    let status = wait_inside(&signals, &child, &instance, &mut programs)?;
    instance.settle();
    // A service may go on to send: the log and the captures of both ends end with the same packets.
    instance.end_taps();
    for (scribe, record) in scribes.into_iter().zip(session.records) {
        if let Err(e) = scribe.end().and_then(|()| (record.keep)()) {
            let path = record.path.display();
            instance.note(format!("not all could be written to {path}: {e}"));
        }
    }
    finished(&instance.stats()).map_err(LabError::Output)?;
    Ok(status)
}

/// Starts the user's command, or says why not and gives the status for that.
pub(crate) fn spawn(command: &mut Command) -> Result<Child, i32> {
    command.spawn().map_err(|e| {
        let program = command.get_program().display().to_string();
        eprintln!("plumb lab: cannot run {}: {e}", printable::line(&program));
        if e.kind() == io::ErrorKind::NotFound {
            NOT_FOUND
        } else {
            NOT_EXECUTABLE
        }
    })
}

/// Waits for the command, reaping every orphan on the way: that is the first process's duty.
fn wait_inside(
    signals: &SignalFd,
    command: &Child,
    instance: &Instance,
    programs: &mut Programs,
) -> Result<i32, LabError> {
    let pid = Pid::from_raw(command.id() as i32);
    let mut kill_at: Option<Instant> = None;
    loop {
        for status in program::reap() {
            if status.pid() == Some(pid) {
                return Ok(exit_code(status));
            }
            programs.ended(instance, status)?;
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
pub(crate) fn exit_code(status: WaitStatus) -> i32 {
    match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        _ => LAB_FAILED,
    }
}
