//! What may wait unsent in a connection that is probed: a request that waits behind it would measure the buffer
//! (TCP_NOTSENT_LOWAT, which draft-ietf-ippm-responsiveness recommends).

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_net::tcp;

/// How long a connection takes for what waits unsent in it: nothing beside a round trip.
const UNSENT_S: f64 = 0.001;

/// A full segment; a record of TLS (RFC 8446, section 5.1), and a frame of HTTP/2 unless more is agreed to (RFC 9113,
/// section 4.2).
const SEGMENT_BYTES: usize = 1400;
const RECORD_BYTES: usize = 1 << 14;

/// What a server hands over at once on fast connections: the limit must not make each write small.
const MUCH_BYTES: usize = 1 << 20;

/// How often it is looked how fast a connection is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A limit that follows the rate of the connection.
#[derive(Debug)]
pub struct UnsentLimit {
    looked: Option<Instant>,
    bytes: usize,
    least_bytes: usize,
    most_bytes: usize,
}

impl Default for UnsentLimit {
    /// As close as can be: from a segment to a record.
    fn default() -> Self {
        Self::between(SEGMENT_BYTES, RECORD_BYTES)
    }
}

impl UnsentLimit {
    fn between(least_bytes: usize, most_bytes: usize) -> Self {
        Self {
            looked: None,
            bytes: least_bytes,
            least_bytes,
            most_bytes,
        }
    }

    /// For a server whose clients may be after rates alone, which pieces smaller than a record would lower: up to what fast
    /// connections need.
    pub fn of_server() -> Self {
        Self::between(RECORD_BYTES, MUCH_BYTES)
    }

    /// As it was at the last look.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// As much as the connection carries in a millisecond; no more than that may wait unsent from now on.
    ///
    /// # Errors
    /// When the socket takes no limit.
    pub fn follow(&mut self, socket: &TcpStream) -> io::Result<usize> {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            let rate = tcp::tcp_info(&socket)?.delivery_bytes_per_s as f64;
            self.bytes = ((rate * UNSENT_S) as usize).clamp(self.least_bytes, self.most_bytes);
            tcp::set_unsent_limit(&socket, self.bytes as u32)?;
        }
        Ok(self.bytes)
    }
}
