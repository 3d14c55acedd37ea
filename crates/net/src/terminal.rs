//! The terminal: its width, and which processes it listens to.

use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsRawFd;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{getpgrp, tcgetpgrp, tcsetpgrp};

mod request {
    #![allow(missing_docs)]
    nix::ioctl_read_bad!(window_size, libc::TIOCGWINSZ, libc::winsize);
}

/// Width of the one on standard output, in characters; `None` when standard output is no terminal.
pub fn columns() -> Option<usize> {
    let stdout = stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one winsize, which `size` is and outlives the call.
    unsafe { request::window_size(stdout.as_raw_fd(), &raw mut size) }.ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
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
