//! A sender that yields to all others: LEDBAT++ above the kernel's TCP. What it decides is in [`super::ledbat`]; here
//! the connection is asked how it fares, and held to what came of it.
//!
//! The window is kept by pacing: what leaves in a round trip is one window. The kernel's own congestion control below
//! stays in force; the one that allows less decides.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_net::tcp;
use plumb_wire::native::control::flow::TcpFlow;

use super::ledbat::{Ledbat, Look};

/// What a Run calls it, before the congestion control below it.
const NAME: &str = "ledbat++ over";

/// How often the connection is looked at: a few times in the round trips of most paths, and for less
/// than a thousandth of a processor.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What holds a stream back.
#[derive(Debug)]
pub(super) struct Background {
    ledbat: Ledbat,
    /// The most that may leave whatever the path has room for.
    most_bytes_per_s: u64,
    started: Instant,
    looked: Option<Instant>,
}

impl Background {
    /// For a stream that is to yield; none for any other.
    pub(super) fn of(flow: &TcpFlow) -> Option<Self> {
        flow.background.then(|| Self {
            ledbat: Ledbat::new(),
            most_bytes_per_s: flow.pacing_bps.map_or(u64::MAX, |bps| bps / 8),
            started: Instant::now(),
            looked: None,
        })
    }

    /// Looks at the connection where it is time to, and paces it accordingly. Before the first round trip is known, and
    /// where the kernel does not report, it is left unchanged.
    pub(super) fn look(&mut self, stream: &TcpStream) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now < looked + LOOK_EVERY) {
            return;
        }
        self.looked = Some(now);
        let Ok(info) = tcp::tcp_info(&stream) else {
            return;
        };
        let Some(smallest_us) = info.min_rtt_us else {
            return;
        };
        let rate = self.ledbat.look(&Look {
            at: now - self.started,
            round_trip: Duration::from_micros(info.srtt_us.into()),
            smallest: Duration::from_micros(smallest_us.into()),
            retransmits: info.total_retransmits.into(),
            segment_bytes: info.snd_mss_bytes,
        });
        let _ = tcp::set_pacing_rate(&stream, rate.min(self.most_bytes_per_s));
    }
}

/// What a Run says that a stream ran.
pub(super) fn name(flow: &TcpFlow, cc: String) -> String {
    if flow.background {
        format!("{NAME} {cc}")
    } else {
        cc
    }
}
