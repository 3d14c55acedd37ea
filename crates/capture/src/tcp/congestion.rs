//! What the segments of a side show of its congestion window.
//!
//! A sender that has more to send, and whose receiver has room, stops because of its congestion window. What is on its
//! way right before an acknowledgement that lets it continue is that window. Such values are gathered by rounds, each
//! until all is acknowledged that had been sent when it began; how far they grow in a round shows the phase.

use plumb_model::results::capture::{CongestionPhase, CongestionResult};

use super::sequence::{at_most, before, later};

/// The window doubles within a round of slow start, and grows by half at most where CUBIC avoids congestion (RFC 9438,
/// section 4.4): from the middle of the two on it is slow start.
const SLOW_START_QUARTERS: u64 = 7;
/// A sender begins anew with a small window after so long without data (RFC 5681, section 4.1: the timeout, which Linux has
/// at 200 ms at least).
const IDLE_NS: u64 = 200_000_000;
const NS_PER_S: f64 = 1e9;

/// What held a sender back after it had sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    CongestionWindow,
    Receiver,
    Application,
}

/// What a sender knew when it sent something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    pub(super) ack: u32,
    /// When the first acknowledgement since it had sent something passed the place of the capture.
    pub(super) ns: u64,
}

/// New payload of a side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) now: u64,
    /// The sequence number behind it.
    pub(super) end: u32,
    /// What it knew, by the timestamp that it echoed.
    pub(super) heard: Heard,
    /// How long it sent nothing although acknowledgements came, with what queues between it and the capture took.
    pub(super) waited_ns: u64,
    /// Senders with something to send wait so long at most.
    pub(super) slack_ns: u64,
    /// What held it back after what it had sent before.
    pub(super) held: Held,
    /// Whether acknowledgements leave gaps, so that what is on its way is not known.
    pub(super) has_gaps: bool,
}

/// The congestion window of a side, from its first full segment on.
#[derive(Debug, Clone)]
pub(super) struct Congestion {
    began_ns: u64,
    last_ns: u64,
    end: u32,
    known: u32,
    /// When the first acknowledgement came since it sent something.
    unanswered_ns: Option<u64>,
    pub(super) heard: Heard,
    /// Where the round ends.
    mark: u32,
    /// Most bytes on their way before an acknowledgement, in this round and in the one before.
    most: [u32; 2],
    /// How long each held the sender back in this round, in nanoseconds.
    held_ns: [u64; 3],
    /// Whether something was missing in it.
    has_gaps: bool,
    /// Until what is acknowledged something was missing, so that what is on its way is not known.
    unclear: Option<u32>,
    /// Until what is acknowledged something was lost.
    recovery: Option<u32>,
    /// How the window grew in the latest round that showed it, or grows by the rules.
    growth: CongestionPhase,
    phase: (u64, CongestionPhase),
    spent: [u64; 5],
    largest: u32,
    is_first_slow_start: bool,
    slow_start_end: Option<(u64, u32)>,
    recoveries: u32,
}

impl Congestion {
    /// The record of a side which sends its first full segment.
    pub(super) fn new(sent: &Sent) -> Self {
        Self {
            began_ns: sent.now,
            last_ns: sent.now,
            end: sent.end,
            known: sent.heard.ack,
            unanswered_ns: None,
            heard: sent.heard,
            mark: sent.end,
            most: [0; 2],
            held_ns: [0; 3],
            has_gaps: false,
            unclear: None,
            recovery: None,
            growth: CongestionPhase::SlowStart,
            phase: (sent.now, CongestionPhase::SlowStart),
            spent: [0; 5],
            largest: 0,
            is_first_slow_start: true,
            slow_start_end: None,
            recoveries: 0,
        }
    }

    /// Takes note that the other side acknowledged something more.
    #[inline]
    pub(super) fn acknowledged(&mut self, now: u64) {
        self.unanswered_ns.get_or_insert(now);
    }

    /// When the first acknowledgement came since it sent something.
    pub(super) fn unanswered_ns(&self) -> Option<u64> {
        self.unanswered_ns
    }

    /// Takes in new payload.
    #[inline]
    pub(super) fn data(&mut self, sent: &Sent) {
        if let Some(until) = self.recovery {
            if at_most(until, sent.heard.ack) {
                self.settle(CongestionPhase::Recovery, sent.now);
                self.recovery = None;
                self.begin(sent.end, CongestionPhase::Avoidance);
            }
        } else if before(self.known, sent.heard.ack) {
            self.released(sent);
        }
        if sent.has_gaps {
            self.unclear = Some(sent.end);
        } else if self.unclear.is_some_and(|end| at_most(end, self.known)) {
            self.unclear = None;
        }
        self.known = later(self.known, sent.heard.ack);
        self.end = later(self.end, sent.end);
        self.last_ns = sent.now;
        self.unanswered_ns = None;
    }

    /// Takes note that an acknowledgement came between the latest payload and this one.
    fn released(&mut self, sent: &Sent) {
        let idle = sent.heard.ack == self.end && sent.now.saturating_sub(self.last_ns) >= IDLE_NS;
        if idle {
            self.settle(self.unfinished(), self.last_ns);
            self.settle(CongestionPhase::Application, sent.now);
            self.is_first_slow_start = false;
            return self.begin(sent.end, CongestionPhase::SlowStart);
        }
        // Who pauses although acknowledgements come was not held back by a window before them either; a segment that was late
        // because of a queue comes right behind others.
        let since_ns = sent.now.saturating_sub(self.last_ns);
        let held = match sent.held {
            Held::CongestionWindow if since_ns.min(sent.waited_ns) > sent.slack_ns => {
                Held::Application
            }
            held => held,
        };
        if let Some(sum) = self.held_ns.get_mut(held as usize) {
            *sum += since_ns;
        }
        let is_clear = !sent.has_gaps && self.unclear.is_none_or(|end| at_most(end, self.known));
        self.has_gaps |= !is_clear;
        if held == Held::CongestionWindow && is_clear {
            let [most, _] = &mut self.most;
            *most = (*most).max(self.end.wrapping_sub(self.known));
        }
        if at_most(self.mark, sent.heard.ack) {
            let phase = match self.has_gaps {
                true => self.unfinished(),
                false => self.verdict(),
            };
            self.settle(phase, sent.now);
            let [most, _] = self.most;
            self.most = [0, most];
            self.held_ns = [0; 3];
            self.has_gaps = false;
            self.mark = sent.end;
        }
    }

    /// Takes note that a side repeated payload, when it had sent up to `end`.
    pub(super) fn repeated(&mut self, now: u64, end: u32, known: u32) {
        self.unclear = Some(end);
        if self.recovery.is_some_and(|until| before(known, until)) {
            return;
        }
        match self.recovery {
            Some(_) => self.settle(CongestionPhase::Recovery, now),
            None => self.settle(self.unfinished(), now),
        }
        if self.is_first_slow_start {
            let [most, earlier] = self.most;
            self.slow_start_end.get_or_insert((now, most.max(earlier)));
            self.is_first_slow_start = false;
        }
        self.recoveries += 1;
        self.recovery = Some(end);
        self.last_ns = now;
        self.unanswered_ns = None;
        self.enter(CongestionPhase::Recovery, now);
    }

    /// The window known so far, in bytes.
    pub(super) fn estimate(&self) -> Option<u32> {
        let [most, earlier] = self.most;
        let bytes = most.max(earlier);
        let (_, phase) = self.phase;
        (shows_window(phase) && bytes > 0).then_some(bytes)
    }

    /// The latest phase, and when it began.
    pub(super) fn phase(&self) -> (u64, CongestionPhase) {
        self.phase
    }

    /// All that there is to say; times count from `began_ns`.
    pub(super) fn result(&self, began_ns: u64) -> Option<CongestionResult> {
        let mut all = self.clone();
        let last = match self.recovery {
            Some(_) => CongestionPhase::Recovery,
            None => self.unfinished(),
        };
        all.settle(last, self.last_ns);
        let total: u64 = all.spent.iter().sum();
        if total == 0 {
            return None;
        }
        let [
            slow_start_ratio,
            avoidance_ratio,
            recovery_ratio,
            rwnd_ratio,
            app_ratio,
        ] = all.spent.map(|ns| ns as f64 / total as f64);
        let known = |bytes: u32| (bytes > 0).then_some(u64::from(bytes));
        let seconds = |ns: u64| ns.saturating_sub(began_ns) as f64 / NS_PER_S;
        Some(CongestionResult {
            max_bytes: known(all.largest),
            slow_start_end_s: all.slow_start_end.map(|(ns, _)| seconds(ns)),
            slow_start_end_bytes: all.slow_start_end.and_then(|(_, bytes)| known(bytes)),
            recoveries: u64::from(all.recoveries),
            slow_start_ratio,
            avoidance_ratio,
            recovery_ratio,
            rwnd_ratio,
            app_ratio,
        })
    }

    fn begin(&mut self, mark: u32, growth: CongestionPhase) {
        self.mark = mark;
        self.growth = growth;
        self.most = [0; 2];
        self.held_ns = [0; 3];
        self.has_gaps = false;
    }

    /// The phase of a round in which it does not show how the window grows: one that is cut off, or lacks something.
    fn unfinished(&self) -> CongestionPhase {
        match self.verdict() {
            CongestionPhase::Avoidance => self.growth,
            other => other,
        }
    }

    /// The phase of a round.
    fn verdict(&self) -> CongestionPhase {
        let [window, receiver, application] = self.held_ns;
        let [most, earlier] = self.most.map(u64::from);
        if receiver > window && receiver >= application {
            CongestionPhase::ReceiveWindow
        } else if application > window {
            CongestionPhase::Application
        } else if most == 0 || earlier == 0 {
            self.growth
        } else if most * 4 >= earlier * SLOW_START_QUARTERS {
            CongestionPhase::SlowStart
        } else {
            CongestionPhase::Avoidance
        }
    }

    /// Gives the time since the latest call to a phase.
    fn settle(&mut self, phase: CongestionPhase, until: u64) {
        self.enter(phase, self.began_ns);
        if let Some(sum) = self.spent.get_mut(phase as usize) {
            *sum += until.saturating_sub(self.began_ns);
        }
        let [most, earlier] = self.most;
        if shows_window(phase) {
            self.growth = phase;
            self.largest = self.largest.max(most);
        }
        match phase {
            CongestionPhase::SlowStart if self.is_first_slow_start => self.slow_start_end = None,
            CongestionPhase::Avoidance if self.is_first_slow_start => {
                self.slow_start_end.get_or_insert((self.began_ns, earlier));
            }
            _ => {}
        }
        self.began_ns = until;
    }

    fn enter(&mut self, phase: CongestionPhase, since: u64) {
        let (_, before) = self.phase;
        if before != phase {
            self.phase = (since, phase);
        }
    }
}

/// Whether the congestion window is what holds the sender back.
fn shows_window(phase: CongestionPhase) -> bool {
    matches!(
        phase,
        CongestionPhase::SlowStart | CongestionPhase::Avoidance
    )
}

#[cfg(test)]
#[path = "congestion/tests.rs"]
mod tests;
