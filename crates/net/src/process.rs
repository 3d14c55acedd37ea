//! Processes that start inside other namespaces, and the signals around them.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

pub use nix::sys::signal::Signal;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{User, chdir, initgroups, setgid, setuid};

use crate::namespace::Namespaces;

/// What a user or a terminal ends a program by.
pub const ENDING: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// Makes `command` start inside a node, in the directory that this process is in (the root where
/// the node does not have it), with no signal blocked.
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
            chdir(directory.as_c_str()).or_else(|_| chdir(c"/"))?;
            // What this process blocks to wait for it would make the program deaf.
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            Ok(())
        });
    }
    Ok(())
}

/// Becomes another user for good, with its groups and without any capability: the whole process, all of its threads
/// (setuid(2), "C library/kernel differences"). The open sockets become that user's, too: the kernel shares a port only among
/// sockets of one user (SO_REUSEPORT, socket(7)).
///
/// # Errors
/// When there is no such user, or this one may not become another.
pub fn become_user(name: &str) -> io::Result<()> {
    let user = User::from_name(name)?;
    let user =
        user.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such user"))?;
    let c_name = CString::new(name)?;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        // The directory itself is among them, and closed with the loop.
        let is_socket = std::fs::metadata(&path).is_ok_and(|data| data.file_type().is_socket());
        if is_socket {
            std::os::unix::fs::chown(&path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        }
    }
    initgroups(&c_name, user.gid)?;
    setgid(user.gid)?;
    Ok(setuid(user.uid)?)
}

/// Makes `command` end when the thread that starts it does, however that comes about.
pub fn end_with_starter(command: &mut Command) {
    // SAFETY: the closure runs in the forked child before exec and makes one system call.
    unsafe {
        command.pre_exec(|| crate::pid_one::end_with_parent(true));
    }
}

/// Ends all of the process group that a child leads, at once. That none is left is no error.
pub fn kill_group(child: &Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// Blocks signals for the calling thread and those that it starts from now on, so that they can
/// be waited for. Programs started inherit that; [`start_in`] takes it back.
///
/// # Errors
/// Errors of the kernel.
pub fn block_signals(signals: &[Signal]) -> io::Result<SigSet> {
    let set: SigSet = signals.iter().copied().collect();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
    Ok(set)
}

/// Makes the calling process outlive its terminal: it gets a session of its own, and is ended by no
/// signal that a user or a terminal sends, only by SIGKILL.
///
/// # Errors
/// Errors of the kernel; a process that leads a group cannot get a session.
pub fn detach() -> io::Result<()> {
    block_signals(&ENDING)?;
    nix::unistd::setsid()?;
    Ok(())
}

/// Points standard output at /dev/null: its reader sees the end, and what is printed later is lost.
///
/// # Errors
/// Errors of the kernel.
pub fn close_stdout() -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    nix::unistd::dup2_stdout(&nowhere)?;
    Ok(())
}

/// Sets `flag` when the user or the system asks the program to end (SIGINT, SIGTERM), with the number of the signal in
/// `asked_by`, and ends it at the second time. To be called before other threads start, so that none of them is hit.
///
/// The thread that waits for the signals ends with the process.
///
/// # Errors
/// Errors of the kernel.
pub fn on_interrupt(flag: Arc<AtomicBool>, asked_by: &'static AtomicI32) -> io::Result<()> {
    let signals = [Signal::SIGINT, Signal::SIGTERM];
    wait_for("interrupt", &signals, move |signal| {
        // Before the flag: a thread that sees the flag reads this.
        asked_by.store(signal as i32, Ordering::Relaxed);
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(128 + signal as i32);
        }
    })
}

/// Calls `then` at each SIGHUP. To be called before other threads start, so that none of them is hit.
///
/// The thread that waits for the signal ends with the process.
///
/// # Errors
/// Errors of the kernel.
pub fn on_hangup(mut then: impl FnMut() + Send + 'static) -> io::Result<()> {
    wait_for("hangup", &[Signal::SIGHUP], move |_| then())
}

/// Blocks signals for the calling thread and those that it starts from now on, and starts one that waits for them. That one
/// blocks all of [`ENDING`]: the kernel gives a signal to any thread that does not, and another may wait for it.
fn wait_for(
    name: &str,
    signals: &[Signal],
    mut then: impl FnMut(Signal) + Send + 'static,
) -> io::Result<()> {
    let set: SigSet = signals.iter().copied().collect();
    let all: SigSet = ENDING.iter().copied().collect();
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&all), Some(&mut before))?;
    let thread = std::thread::Builder::new().name(name.into());
    let started = thread.spawn(move || {
        while let Ok(signal) = set.wait() {
            then(signal);
        }
    });
    before.extend(signals.iter().copied());
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    started.map(drop)
}

/// A descriptor of this process that others can wait on: it is readable when the process and, if
/// it is the first of a PID namespace, every process in that namespace has ended (pidfd_open(2)).
///
/// # Errors
/// Errors of the kernel.
pub fn own_pidfd() -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    match RawFd::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor for this process alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
