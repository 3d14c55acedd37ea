//! The first process of a new PID namespace (pid_namespaces(7)): when it ends, the kernel ends
//! every other process in there.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};

use crate::namespace::make_mounts_private;
use crate::user_namespace::{self, Obstacle};

/// Why there is no such process.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The caller may not make namespaces.
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
    /// Something else in the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Forked {
    /// The caller; the other side is this process.
    Parent(Pid),
    /// The first process of a new PID namespace, with its own mounts. Changes no longer propagate between them and the
    /// mounts of the machine.
    First,
}

/// Forks a process that is the first of a new PID namespace; for users that are not root, also in a
/// new user namespace. It is killed when the thread that called this ends, however that comes
/// about.
///
/// # Errors
/// Where namespaces are refused, or when the caller has several threads (the child would have
/// only one of them, and every lock that the others held).
pub fn fork_first() -> Result<Forked, ForkError> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be split").into());
    }
    match unshare(CloneFlags::CLONE_NEWPID) {
        Ok(()) => {}
        Err(Errno::EPERM) => {
            user_namespace::enter_own()?;
            unshare(CloneFlags::CLONE_NEWPID).map_err(|e| user_namespace::obstacle(e.into()))?;
        }
        Err(e) => return Err(io::Error::from(e).into()),
    }
    // SAFETY: this process has a single thread, as checked above, so the child's memory is
    // whole and no lock in it is held by a thread that the child lacks.
    match unsafe { fork() }.map_err(io::Error::from)? {
        ForkResult::Parent { child } => Ok(Forked::Parent(child)),
        ForkResult::Child => {
            end_with_parent(true)?;
            // In this order: a mount made before it is private would appear on the real machine.
            unshare(CloneFlags::CLONE_NEWNS).map_err(io::Error::from)?;
            make_mounts_private()?;
            Ok(Forked::First)
        }
    }
}

/// Which side of a fork into the background this is, with its end of a pipe between the two.
#[derive(Debug)]
pub enum Background {
    /// The caller; the other side is this process.
    Parent(Pid, PipeReader),
    /// The first process of a new PID namespace, without a terminal and with nothing open that
    /// the caller had. It still ends with the caller: see [`end_with_parent`].
    First(PipeWriter),
}

/// As [`fork_first`], for a process that can go on without the caller.
///
/// # Errors
/// Errors of [`fork_first`].
pub fn fork_background() -> Result<Background, ForkError> {
    let (reader, writer) = io::pipe()?;
    match fork_first()? {
        Forked::Parent(child) => Ok(Background::Parent(child, reader)),
        Forked::First => {
            // Closed with all the others.
            let _ = reader.into_raw_fd();
            setsid().map_err(io::Error::from)?;
            leave_descriptors(writer.as_raw_fd())?;
            Ok(Background::First(writer))
        }
    }
}

/// Whether the calling process is killed when the thread that forked it ends.
///
/// # Errors
/// Errors of the kernel.
pub fn end_with_parent(ends: bool) -> io::Result<()> {
    Ok(nix::sys::prctl::set_pdeathsig(
        ends.then_some(Signal::SIGKILL),
    )?)
}

/// Closes every descriptor but `kept` and points the standard ones at /dev/null, so that a process that waits for their
/// end does not wait for this process.
fn leave_descriptors(kept: RawFd) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    drop(null);
    // Listed first: reading the directory needs a descriptor itself.
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open {
        if fd > libc::STDERR_FILENO && fd != kept {
            // SAFETY: the process has just been forked and has opened nothing since: what is
            // open here belongs to values of the caller's, which this process never uses again,
            // or is the directory that was listed, already closed.
            unsafe { libc::close(fd) };
        }
    }
    Ok(())
}
