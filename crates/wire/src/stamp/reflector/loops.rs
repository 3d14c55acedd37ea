//! What ends a loop: a packet with a forged source makes a reflector and the host with that address answer each other,
//! since requests and answers look alike. Pure; the time is an argument.
//!
//! A loop through another reflector, or through a service that returns what it gets, brings the number
//! and the time of one of our own answers back, and ends there. Padding at that place, random or not, is
//! of a sender: no one but us writes our times to the nanosecond. Any other loop ends by its
//! [`Allowance`].

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::super::{Layout, field};
use crate::share::Bucket;

/// For how long answers are remembered when as many as may be are given: above the round trip of any
/// path.
const REMEMBERED_S: f64 = 4.0;

/// How many answers are remembered: at the least enough for a slow reflector for long, at the most 20 MB of them.
const REMEMBERED: std::ops::RangeInclusive<usize> = 1024..=262_144;

/// Number and time of an answer, as they are on the wire.
type Head = ([u8; 4], [u8; 8]);

/// The answers of late.
#[derive(Debug)]
pub(super) struct OwnAnswers {
    most: usize,
    known: HashSet<Head>,
    order: VecDeque<Head>,
}

impl OwnAnswers {
    /// Of a reflector that gives at most so many a second.
    pub(super) fn new(rate_pps: f64) -> Self {
        let most = (rate_pps * REMEMBERED_S) as usize;
        Self {
            most: most.clamp(*REMEMBERED.start(), *REMEMBERED.end()),
            known: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Remembers an answer that leaves.
    pub(super) fn remember(&mut self, answer: &[u8], layout: Layout) {
        let Some(head) = head(answer, 0, layout.sent) else {
            return;
        };
        if !self.known.insert(head) {
            return;
        }
        self.order.push_back(head);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether a packet is one of them, or another reflector's answer to one.
    pub(super) fn come_back_in(&self, packet: &[u8], layout: Layout) -> bool {
        [
            (0, layout.sent),
            (layout.echoed_sequence, layout.echoed_sent),
        ]
        .into_iter()
        .filter_map(|(sequence, sent)| head(packet, sequence, sent))
        .any(|head| self.known.contains(&head))
    }
}

fn head(packet: &[u8], sequence: usize, sent: usize) -> Option<Head> {
    Some((field(packet, sequence)?, field(packet, sent)?))
}

/// Answers to one address and port before it is left without any for [`PAUSE`]: two minutes of a loop
/// over 40 ms of which a hundred packets go round, and as long as an hour of a hundred a second.
const MOST_IN_A_ROW: f64 = 300_000.0;

/// Answers a second that do not count towards it: a sender that asks no faster is answered for ever, and a loop that
/// slow does no harm.
const FOR_EVER_PPS: f64 = 20.0;

/// After this time no packet of a loop is still in flight.
const PAUSE: Duration = Duration::from_secs(5);

/// What one address and port may still draw.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    at_once: Bucket,
    in_a_row: Bucket,
    quiet_until: Duration,
}

impl Allowance {
    /// Whether there is an answer left, which is then taken: at most `rate_pps`, so many at once that
    /// come in `burst_s`; and in a row as many as a loop may have, where there may be `loops`.
    pub(super) fn take(&mut self, now: Duration, rate_pps: f64, burst_s: f64, loops: bool) -> bool {
        let most_at_once = (rate_pps * burst_s).max(1.0);
        if !self.at_once.draw(now, 1.0, rate_pps, most_at_once) {
            return false;
        }
        if !loops {
            return true;
        }
        if now < self.quiet_until {
            return false;
        }
        if self.in_a_row.draw(now, 1.0, FOR_EVER_PPS, MOST_IN_A_ROW) {
            return true;
        }
        // A packet after the pause is a new request, not part of the loop.
        self.in_a_row = Bucket::default();
        self.quiet_until = now + PAUSE;
        false
    }
}
