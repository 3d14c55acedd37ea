//! The terminal on standard output.

use std::io::{IsTerminal, stdout};
use std::os::fd::AsRawFd;

mod request {
    #![allow(missing_docs)]
    nix::ioctl_read_bad!(window_size, libc::TIOCGWINSZ, libc::winsize);
}

/// Its width in characters; `None` when standard output is no terminal.
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
