//! How many files and sockets a responder may have open at once: all that its limits let in, so that no client
//! is refused for want of them.

use plumb_net::file;
use plumb_wire::native::spec::{MAX_GREETING, MAX_SILENT_IN_ALL, MAX_WAITING};

use crate::admission::loads::{FEW_STREAMS, MAX_FEW_STREAMS_IN_ALL, MAX_STREAMS_IN_ALL};
use crate::admission::visits::{MAX_VISITS, MAX_WEB};
use crate::error::ServeError;
use crate::registry::MAX_ANSWERED_IN_ALL;

/// What is open beside what is counted: listeners, the sockets of traces, and what is about to be closed.
const BESIDE: u64 = 256;

/// Raises this process's limit to what the responder needs, as far as it may, and gives how many silent
/// connections there is room for.
///
/// # Errors
/// When not even the rest fits.
pub(crate) fn allow(
    max_clients: usize,
    max_loads: u32,
    lends_disk: bool,
) -> Result<usize, ServeError> {
    let needed = needed(max_clients, max_loads, lends_disk);
    let wanted = needed + MAX_SILENT_IN_ALL as u64;
    if file::allow_descriptors(wanted).is_err()
        && let Some((_, hard)) = file::descriptor_limits()
    {
        // What was allowed before stays where this fails.
        let _ = file::allow_descriptors(wanted.min(hard));
    }
    let allowed = file::descriptor_limits().map_or(wanted, |(soft, _)| soft);
    room_for_silent(max_clients, needed, allowed)
}

fn needed(max_clients: usize, max_loads: u32, lends_disk: bool) -> u64 {
    // Beside as many loads another one of each address that yields.
    let of_few = max_loads
        .saturating_mul(2 * FEW_STREAMS)
        .min(MAX_FEW_STREAMS_IN_ALL);
    let streams = u64::from(MAX_STREAMS_IN_ALL + of_few);
    let files = if lends_disk { streams } else { 0 };
    let of_others = MAX_VISITS + MAX_WEB;
    let connections = max_clients + MAX_WAITING + MAX_GREETING + MAX_ANSWERED_IN_ALL + of_others;
    connections as u64 + streams + files + BESIDE
}

fn room_for_silent(max_clients: usize, needed: u64, allowed: u64) -> Result<usize, ServeError> {
    let room = allowed.checked_sub(needed).ok_or(ServeError::Descriptors {
        max_clients,
        needed,
        allowed,
    })?;
    Ok(usize::try_from(room).map_or(MAX_SILENT_IN_ALL, |room| room.min(MAX_SILENT_IN_ALL)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::policy::LOADS;
    use plumb_wire::native::spec::MAX_CLIENTS;

    #[test]
    fn silent_connections_get_what_is_left() {
        let needed = needed(MAX_CLIENTS, LOADS, false);
        let room = |allowed| room_for_silent(MAX_CLIENTS, needed, allowed);
        // What the kernel lets everybody have (INR_OPEN_MAX, include/uapi/linux/fs.h).
        assert_eq!(room(4096).unwrap(), MAX_SILENT_IN_ALL);
        assert_eq!(room(needed + 10).unwrap(), 10);
        assert_eq!(room(u64::MAX).unwrap(), MAX_SILENT_IN_ALL);
        let error = room(1024).unwrap_err().to_string();
        assert!(error.contains("may have 1024"), "{error}");
    }
}
