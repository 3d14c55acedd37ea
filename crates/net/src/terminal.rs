//! The terminal: its size, its keys, and which processes it listens to.

use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, cfmakeraw, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, setsid, tcgetpgrp, tcsetpgrp};

mod request {
    nix::ioctl_write_int_bad!(make_controlling, libc::TIOCSCTTY);

    nix::ioctl_read_bad!(window_size, libc::TIOCGWINSZ, libc::winsize);
}

/// Width of the one on standard output, in characters; `None` when standard output is no terminal.
pub fn columns() -> Option<usize> {
    of_row(window(&stdout())?)
}

/// The same of the one on standard error.
pub fn error_columns() -> Option<usize> {
    of_row(window(&stderr())?)
}

fn of_row(window: libc::winsize) -> Option<usize> {
    (window.ws_col > 0).then_some(window.ws_col.into())
}

/// Width and height of the one on standard output, in characters; `None` when standard output is no
/// terminal, or one that does not report its size.
pub fn size() -> Option<(usize, usize)> {
    let window = window(&stdout())?;
    let rows = window.ws_row;
    (rows > 0).then_some((of_row(window)?, rows.into()))
}

/// The size that the terminal reports; zero where it does not know.
fn window(output: &(impl IsTerminal + AsRawFd)) -> Option<libc::winsize> {
    if !output.is_terminal() {
        return None;
    }
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one winsize, which `size` is and outlives the call.
    unsafe { request::window_size(output.as_raw_fd(), &raw mut size) }.ok()?;
    Some(size)
}

/// Whether this process is in the group that the terminal on standard input listens to.
pub fn in_foreground() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Makes the terminal on standard input listen to this process's group again, after a shell that
/// took it has ended: a shell in another PID namespace cannot give it back.
pub fn take_foreground() {
    let stop = SigSet::from(Signal::SIGTTOU);
    // Asking from the background stops a process that does not block this signal (tty(4)).
    // Without a terminal there is nothing to take back.
    if sigprocmask(SigmaskHow::SIG_BLOCK, Some(&stop), None).is_ok() {
        let _ = tcsetpgrp(stdin(), getpgrp());
        let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&stop), None);
    }
}

/// A terminal that passes every byte unchanged in both directions. Dropping this restores the settings from before.
#[derive(Debug)]
pub struct Raw<T: AsFd> {
    terminal: T,
    before: Termios,
}

impl<T: AsFd> Raw<T> {
    /// # Errors
    /// Where it is no terminal (`ENOTTY`).
    pub fn set(terminal: T) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&terminal, SetArg::TCSANOW, &raw)?;
        Ok(Self { terminal, before })
    }
}

impl<T: AsFd> Drop for Raw<T> {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
    }
}

/// Makes `command` start on a new terminal of so many rows and columns, as the leader of a session that the terminal
/// controls; returns the side from which what it prints is read, and to which its input is written.
///
/// # Errors
/// Errors of the kernel.
pub fn start_on_new(command: &mut Command, (rows, columns): (u16, u16)) -> io::Result<OwnedFd> {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let OpenptyResult { master, slave } = openpty(&size, None)?;
    fcntl(&master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    command
        .stdin(Stdio::from(slave.try_clone()?))
        .stdout(Stdio::from(slave.try_clone()?))
        .stderr(Stdio::from(slave));
    // SAFETY: the closure runs in the forked child before exec and makes two system calls, of which the second takes a
    // descriptor that is open (standard input) and a number.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            request::make_controlling(libc::STDIN_FILENO, 0)?;
            Ok(())
        });
    }
    Ok(master)
}

/// The keys of the terminal on standard input, each read at once and not echoed. Ctrl-C still sends SIGINT. Dropping
/// this restores the settings from before.
#[derive(Debug)]
pub struct Keys {
    before: Termios,
}

impl Keys {
    /// Listens from now on.
    ///
    /// # Errors
    /// Where standard input is no terminal (`ENOTTY`).
    pub fn listen() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut now = before.clone();
        now.local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // Reading never waits (termios(3)).
        for index in [
            SpecialCharacterIndices::VMIN,
            SpecialCharacterIndices::VTIME,
        ] {
            if let Some(value) = now.control_chars.get_mut(index as usize) {
                *value = 0;
            }
        }
        tcsetattr(stdin(), SetArg::TCSANOW, &now)?;
        Ok(Self { before })
    }

    /// What was pressed since the last time, as the terminal sends it.
    pub fn read(&self) -> Vec<u8> {
        /// More keys than a user presses between two reads.
        const MOST: usize = 64;
        let mut buffer = [0; MOST];
        let read = nix::unistd::read(stdin(), &mut buffer).unwrap_or(0);
        buffer.get(..read).unwrap_or_default().to_vec()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &self.before);
    }
}
