//! Where the time of a connection goes, from packet to packet.
//!
//! Between two packets the state that the first left decides. Some waits show what they were only when data comes
//! again: they are kept apart until then.

use plumb_model::results::capture::{CaptureLimit, LimitedBy};
use plumb_model::vocabulary::Vocabulary as _;

pub(crate) type Side = usize;
pub(crate) const CLIENT: Side = 0;
pub(crate) const SERVER: Side = 1;

/// What is known of a connection after a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) established: bool,
    /// Who sent payload last.
    pub(super) sender: Option<Side>,
    /// Whether that was all the sender had.
    pub(super) emptied: bool,
    /// Whether the receiver's window had no room for more.
    pub(super) window_full: bool,
    /// Whether the receiver allows nothing at all.
    pub(super) window_zero: bool,
    pub(super) in_flight: bool,
    /// From when on what was acknowledged could have been answered by the sender with more data.
    pub(super) reaction_ns: u64,
}

/// What comes after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// New payload, or the end of it, from a side.
    Data(Side),
    /// Payload that had been sent before.
    Repeated,
}

/// Time spent, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    by: [u64; 5],
    /// A wait of which it does not show yet what it was, and when it began.
    open: u64,
    open_since: u64,
}

impl Spent {
    fn add(&mut self, limit: CaptureLimit, ns: u64) {
        if let Some(sum) = self.by.get_mut(limit as usize) {
            *sum += ns;
        }
    }

    fn wait(&mut self, from: u64, ns: u64) {
        if ns > 0 && self.open == 0 {
            self.open_since = from;
        }
        self.open += ns;
    }

    /// Attributes the time between two packets.
    #[inline]
    pub(super) fn pass(&mut self, state: &State, from: u64, to: u64) {
        let ns = to.saturating_sub(from);
        if !state.established {
            return self.add(CaptureLimit::Handshake, ns);
        }
        if state.sender.is_none() {
            return self.wait(from, ns);
        }
        let done = state.emptied && !state.in_flight;
        if state.window_zero && !done {
            return self.add(CaptureLimit::ReceiveWindow, ns);
        }
        if state.emptied {
            return self.wait(from, ns);
        }
        let held = match state.window_full {
            true => CaptureLimit::ReceiveWindow,
            false => CaptureLimit::Path,
        };
        if state.in_flight {
            return self.add(held, ns);
        }
        // All is acknowledged, and the sender has more: it is the path's until that could have arrived here.
        let on_its_way = state.reaction_ns.clamp(from, to.max(from)) - from;
        self.add(held, on_its_way);
        self.wait(from + on_its_way, ns - on_its_way);
    }

    /// Payload came, which shows what the wait before it was: `answered_ns` is when an answer to the last payload could
    /// have come at the earliest. How long the server thought, where that was it.
    pub(super) fn resolve(&mut self, sender: Option<Side>, next: Next, answered_ns: u64) {
        let ns = std::mem::take(&mut self.open);
        if ns == 0 {
            return;
        }
        match next {
            Next::Repeated => self.add(CaptureLimit::Path, ns),
            Next::Data(side) => {
                let answer = sender.is_some_and(|sender| sender != side);
                let path = match answer {
                    true => answered_ns.saturating_sub(self.open_since).min(ns),
                    false => 0,
                };
                self.add(CaptureLimit::Path, path);
                let limit = match side == SERVER && (answer || sender.is_none()) {
                    true => CaptureLimit::Server,
                    false => CaptureLimit::Application,
                };
                self.add(limit, ns - path);
            }
        }
    }

    /// The shares, and the largest; a wait that nothing ended was the application's.
    pub(super) fn limited(mut self) -> (LimitedBy, Option<CaptureLimit>) {
        self.resolve(None, Next::Data(CLIENT), 0);
        let total = self.by.iter().sum::<u64>();
        if total == 0 {
            return (LimitedBy::default(), None);
        }
        let ratios = self.by.map(|ns| ns as f64 / total as f64);
        let [
            handshake_ratio,
            app_ratio,
            server_ratio,
            rwnd_ratio,
            path_ratio,
        ] = ratios;
        let limited = LimitedBy {
            handshake_ratio,
            app_ratio,
            server_ratio,
            rwnd_ratio,
            path_ratio,
        };
        let words = CaptureLimit::WORDS.iter().map(|(limit, _)| *limit);
        let most = words.zip(self.by).max_by_key(|(_, ns)| *ns);
        (limited, most.map(|(limit, _)| limit))
    }
}
