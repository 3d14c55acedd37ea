//! Waiting for several sockets at once.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::monotonic_ns;

/// Waits until one of the sockets may have something, in its error queue too, or CLOCK_MONOTONIC
/// reaches `deadline_ns`. Returns early when a signal was handled.
///
/// # Errors
/// Errors of ppoll(2).
pub fn until(sockets: &[BorrowedFd<'_>], deadline_ns: u64) -> io::Result<()> {
    // POLLERR, which reports the error queue, is always waited for.
    let fds = sockets.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
    poll_until(fds.collect(), deadline_ns)
}

/// The same for sockets of which some, those with `true`, have something to send as well.
///
/// # Errors
/// Errors of ppoll(2).
pub fn until_ready(sockets: &[(BorrowedFd<'_>, bool)], deadline_ns: u64) -> io::Result<()> {
    let events = |sends| match sends {
        true => PollFlags::POLLIN | PollFlags::POLLOUT,
        false => PollFlags::POLLIN,
    };
    let fds = sockets
        .iter()
        .map(|(fd, sends)| PollFd::new(*fd, events(*sends)));
    poll_until(fds.collect(), deadline_ns)
}

fn poll_until(mut fds: Vec<PollFd<'_>>, deadline_ns: u64) -> io::Result<()> {
    let left = deadline_ns.saturating_sub(monotonic_ns());
    let timeout = TimeSpec::from_duration(Duration::from_nanos(left));
    match ppoll(&mut fds, Some(timeout), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
