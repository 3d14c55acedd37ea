//! Accepts connections.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

use plumb_net::tcp;

use crate::{Shared, greeting};

/// How often a thread that waits looks whether it is to stop.
pub(crate) const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Accepts until the responder stops, which it sees within [`STOP_INTERVAL`], and then waits
/// for the connections' threads.
pub(crate) fn run(shared: &Shared<'_>, listener: &TcpListener) {
    scope(|scope| {
        while !shared.stop.load(Ordering::Relaxed) {
            let (socket, peer) = match tcp::accept(listener, STOP_INTERVAL) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                // No descriptors left, or a connection that was reset while it waited.
                Err(_) => {
                    sleep(STOP_INTERVAL);
                    continue;
                }
            };
            let peer = peer.ip().to_canonical();
            let Some(place) = shared.registry.greet(peer) else {
                // A reset leaves nothing behind in this kernel, not even TIME_WAIT.
                let _ = tcp::abort_on_close(&socket);
                continue;
            };
            let thread = Builder::new().name("plumb-session".to_owned());
            // Without a thread the connection is closed, as above the limit.
            let _ = thread.spawn_scoped(scope, move || greeting::run(shared, socket, peer, place));
        }
    });
}
