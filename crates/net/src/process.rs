//! Processes that start inside other namespaces, and one that is the first of its own.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{ForkResult, Pid, chdir, fork};

use crate::namespace::{Namespaces, make_mounts_private};

/// Makes `command` start inside a node, in the directory that this process is in, with no signal
/// blocked.
///
/// # Errors
/// When this process has no directory.
pub fn start_in(command: &mut Command, node: &Arc<Namespaces>) -> io::Result<()> {
    let node = Arc::clone(node);
    let directory = CString::new(std::env::current_dir()?.into_os_string().into_vec())?;
    // SAFETY: the closure runs in the forked child before exec and only makes system calls on
    // descriptors and a path that already exist: it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(move || {
            node.enter()?;
            // A new mount namespace begins at its root.
            chdir(directory.as_c_str())?;
            // What this process blocks to wait for it would make the program deaf.
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            Ok(())
        });
    }
    Ok(())
}

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Forked {
    /// The caller; the other side is this process.
    Parent(Pid),
    /// The first process of a new PID namespace: when it ends, the kernel ends all the others.
    Init,
}

/// Forks a process that is the first of a new PID namespace, with mounts of its own that no
/// longer follow or reach those of the machine. It is killed when the thread that called this
/// ends, however that comes about.
///
/// # Errors
/// Without the privilege to make namespaces, or when the caller has several threads (the child
/// would have only one of them, and every lock that the others held).
pub fn fork_init() -> io::Result<Forked> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other(
            "a process with several threads cannot be split",
        ));
    }
    unshare(CloneFlags::CLONE_NEWPID)?;
    // SAFETY: this process has a single thread, as checked above, so the child's memory is
    // whole and no lock in it is held by a thread that the child lacks.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Forked::Parent(child)),
        ForkResult::Child => {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // In this order: a mount made before it is private would appear on the real machine.
            unshare(CloneFlags::CLONE_NEWNS)?;
            make_mounts_private()?;
            Ok(Forked::Init)
        }
    }
}

/// Blocks signals for the calling thread and those that it starts from now on, so that they can
/// be waited for. Programs started inherit that; [`start_in`] takes it back.
///
/// # Errors
/// Those of the kernel.
pub fn block_signals(signals: &[Signal]) -> io::Result<SigSet> {
    let set: SigSet = signals.iter().copied().collect();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
    Ok(set)
}

/// Sets `flag` when the user or the system asks the program to end (SIGINT, SIGTERM), and ends it
/// at the second time. To be called before other threads start, so that none of them is hit.
///
/// The thread that waits for the signals ends with the process.
///
/// # Errors
/// Those of the kernel.
pub fn on_interrupt(flag: Arc<AtomicBool>) -> io::Result<()> {
    let set = block_signals(&[Signal::SIGINT, Signal::SIGTERM])?;
    std::thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            while let Ok(signal) = set.wait() {
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(128 + signal as i32);
                }
            }
        })?;
    Ok(())
}
