//! Accepts connections and gives each to a handler.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, scope, sleep};
use std::time::{Duration, Instant};

use plumb_net::tcp;

use crate::handshake;
use crate::shared::{STOP_INTERVAL, Shared};

/// How long sessions have to say that the responder stops: several times what they take to see it.
const FAREWELL: Duration = Duration::from_millis(300);

/// Accepts until the responder stops, which it sees within [`STOP_INTERVAL`], ends all connections
/// that are left [`FAREWELL`] after that, and waits for their threads.
pub(crate) fn run(shared: &Shared, listener: &TcpListener) {
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
            let socket = Arc::new(socket);
            let place = shared.registry.greet(peer, &socket);
            let thread = Builder::new().name("plumb-session".to_owned());
            // Without a thread the connection is closed.
            let _ = thread.spawn_scoped(scope, move || handshake::run(shared, socket, peer, place));
        }
        let stopped = Instant::now();
        while !shared.registry.is_empty() && stopped.elapsed() < FAREWELL {
            sleep(FAREWELL / 30);
        }
        shared.registry.end_all();
    });
}
