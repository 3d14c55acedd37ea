//! The traces that run towards clients, and who waits for one: one at a time towards each address, and few at
//! once. The address that was traced longest ago comes first, so that no client keeps others waiting by asking often.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use plumb_wire::native::spec::{
    MAX_CLIENTS, MAX_TRACES, MAX_TRACES_WAITING, TRACE_BURST, TRACE_EVERY, TRACE_TIME,
};
use plumb_wire::recent::Recent;
use plumb_wire::share::{Bucket, Share};

use super::{Queued, Turn};

/// The traces of a responder, by the number of their session.
#[derive(Debug)]
pub(crate) struct Traces {
    under_way: HashMap<Share, u64>,
    /// In the order in which they asked.
    waiting: Vec<Waiting>,
    begun: Recent<Share, Begun>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    session: u64,
    share: Share,
    until: Duration,
}

/// What began towards an address.
#[derive(Debug, Default)]
struct Begun {
    rate: Bucket,
    last: Option<Duration>,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            under_way: HashMap::new(),
            waiting: Vec::new(),
            // One whose bucket is full again may be forgotten.
            begun: Recent::new(MAX_CLIENTS, TRACE_EVERY * TRACE_BURST),
        }
    }
}

const RATE_PER_S: f64 = 1.0 / TRACE_EVERY.as_secs_f64();

impl Traces {
    /// Whether a trace for that session may begin now; to be asked again until it may, for as long as the
    /// client waits.
    pub(crate) fn ask(
        &mut self,
        now: Duration,
        session: u64,
        share: Share,
        waits: Duration,
    ) -> Turn {
        let known = self.waiting.iter().find(|w| w.session == session);
        let until = known.map_or(now + waits, |w| w.until);
        if known.is_none() {
            self.waiting.push(Waiting {
                session,
                share,
                until,
            });
        }
        let next = self.in_order(now);
        let free = MAX_TRACES.saturating_sub(self.under_way.len());
        if next.iter().take(free).any(|(_, w)| w.session == session) {
            self.forget(session);
            let begun = self.begun.at(now, share);
            begun.rate.draw(now, 1.0, RATE_PER_S, TRACE_BURST.into());
            begun.last = Some(now);
            self.under_way.insert(share, session);
            return Turn::Now;
        }
        let place = next.iter().position(|(_, w)| w.session == session);
        let its = self.waiting.iter().filter(|w| w.share == share);
        let before = its.take_while(|w| w.session != session).count();
        let ahead = place.unwrap_or(next.len()) + before;
        let rounds = u32::try_from(ahead / MAX_TRACES + 1).unwrap_or(u32::MAX);
        let queued = Queued {
            ahead,
            after: Some(TRACE_TIME.saturating_mul(rounds)),
        };
        if now >= until || before >= MAX_TRACES_WAITING {
            self.forget(session);
            return Turn::Never(queued);
        }
        Turn::Wait(queued)
    }

    /// The trace of that session is over, or not waited for any more.
    pub(crate) fn end(&mut self, session: u64) {
        self.forget(session);
        self.under_way.retain(|_, running| *running != session);
    }

    fn forget(&mut self, session: u64) {
        self.waiting.retain(|w| w.session != session);
    }

    /// Of each address that may be traced now the one who asked first, and when it was traced last: the next
    /// one first.
    fn in_order(&mut self, now: Duration) -> Vec<(Option<Duration>, Waiting)> {
        let mut seen: HashSet<Share> = self.under_way.keys().copied().collect();
        let mut next = Vec::new();
        for waiting in &self.waiting {
            if !seen.insert(waiting.share) {
                continue;
            }
            let begun = self.begun.get_mut(&waiting.share);
            let (left, last) = begun.map_or((1.0, None), |begun| {
                let left = begun.rate.left(now, RATE_PER_S, TRACE_BURST.into());
                (left, begun.last)
            });
            if left >= 1.0 {
                next.push((last, *waiting));
            }
        }
        // A stable sort: of those with equal times who asked first.
        next.sort_by_key(|(last, _)| *last);
        next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn share(last: u8) -> Share {
        Share::of([192, 0, 2, last].into())
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_trace_an_address_and_few_in_all() {
        let mut traces = Traces::default();
        for last in 0..MAX_TRACES as u8 {
            let number = u64::from(last);
            assert_eq!(traces.ask(s(0), number, share(last), MINUTE), Turn::Now);
            let second = traces.ask(s(0), 100 + number, share(last), Duration::ZERO);
            assert!(matches!(second, Turn::Never(_)), "{second:?}");
        }
        let other = |traces: &mut Traces| traces.ask(s(1), 99, share(99), MINUTE);
        let queued = Queued {
            ahead: 0,
            after: Some(TRACE_TIME),
        };
        assert_eq!(other(&mut traces), Turn::Wait(queued));
        traces.end(0);
        assert_eq!(other(&mut traces), Turn::Now);
        let late = traces.ask(s(0), 7, share(7), MINUTE);
        assert!(matches!(late, Turn::Wait(_)));
        let late = traces.ask(MINUTE, 7, share(7), MINUTE);
        assert!(matches!(late, Turn::Never(_)), "it has waited for so long");
        assert!(traces.waiting.is_empty());
    }

    #[test]
    fn traces_towards_one_address_begin_no_faster_than_they_may() {
        let mut traces = Traces::default();
        let mut begun = 0;
        for tick in 0..1000 {
            let now = tick * TRACE_EVERY / 100;
            if traces.ask(now, 1, share(1), Duration::ZERO) == Turn::Now {
                begun += 1;
                traces.end(1);
            }
        }
        // Those at once, and one for each of the ten periods less the last moment of it.
        assert_eq!(begun, TRACE_BURST + 9);
        let now = 1000 * TRACE_EVERY / 100;
        assert_eq!(traces.ask(now, 2, share(2), Duration::ZERO), Turn::Now);
    }

    #[test]
    fn who_asks_often_keeps_nobody_waiting() {
        let mut traces = Traces::default();
        let mut running: Vec<(Duration, u64)> = Vec::new();
        // Eight sessions of each of eight addresses ask for ever, and one of another comes.
        let mut begun = None;
        for second in 0..60 {
            running.retain(|(until, session)| {
                if *until <= s(second) {
                    traces.end(*session);
                }
                *until > s(second)
            });
            let asking = (0..64).filter(|n| !running.iter().any(|(_, busy)| busy == n));
            for session in asking.collect::<Vec<_>>() {
                let from = share((session % 8) as u8);
                if traces.ask(s(second), session, from, MINUTE) == Turn::Now {
                    running.push((s(second) + TRACE_TIME, session));
                }
            }
            if second >= 30 && begun.is_none() {
                let turn = traces.ask(s(second), 99, share(99), MINUTE);
                begun = (turn == Turn::Now).then_some(second);
            }
            assert!(running.len() <= MAX_TRACES);
        }
        assert!(begun.unwrap() <= 30 + TRACE_TIME.as_secs());
    }
}
