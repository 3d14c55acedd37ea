//! The loads that run, and who waits to run one: one at a time with each address, since two would
//! measure each other, and beside it one that yields to all others. They take turns in the order in
//! which they asked; whose turn it is keeps it for a moment from one phase to the next.

use std::time::Duration;

use plumb_wire::native::spec::{MAX_LOADS_WAITING, MAX_STREAMS, TURN_KEPT};
use plumb_wire::share::Share;

use super::{Queued, Turn};

/// Most streams of all phases together that have more than [`FEW_STREAMS`] each: threads and sockets for four
/// of the largest.
pub(crate) const MAX_STREAMS_IN_ALL: u32 = 4 * MAX_STREAMS;

/// Streams of a load that waits for no larger one: `plumb check` has 8, and the draft of responsiveness under
/// working conditions needs no more than 16 connections to fill a path.
pub(crate) const FEW_STREAMS: u32 = 16;

/// Most streams of the phases together that have so few: of 32 addresses.
pub(crate) const MAX_FEW_STREAMS_IN_ALL: u32 = 32 * FEW_STREAMS;

/// A load that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Number of the session.
    pub(crate) session: u64,
    pub(crate) share: Share,
    /// Whether it yields to all others.
    pub(crate) yields: bool,
    pub(crate) streams: u32,
    /// How long it takes.
    pub(crate) lasts: Duration,
}

impl Wanted {
    fn is_of(&self, session: u64, yields: bool) -> bool {
        (self.session, self.yields) == (session, yields)
    }

    /// Whether it has few streams, for which there is room of their own.
    fn is_small(&self) -> bool {
        self.streams <= FEW_STREAMS
    }

    fn excludes(&self, other: &Self) -> bool {
        (self.share, self.yields) == (other.share, other.yields) && self.session != other.session
    }
}

/// The loads of a responder.
#[derive(Debug)]
pub(crate) struct Loads {
    /// How many may run at once, and beside them as many that yield.
    most: usize,
    held: Vec<Held>,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Held {
    wanted: Wanted,
    state: State,
}

#[derive(Debug)]
enum State {
    Runs { until: Duration },
    Kept { until: Duration },
}

#[derive(Debug)]
struct Waiting {
    wanted: Wanted,
    until: Duration,
}

impl Loads {
    /// Of which so many may run at once.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            held: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Whether that load may run now, for a client that waits so long; to be asked again until it may.
    pub(crate) fn ask(&mut self, now: Duration, wanted: Wanted, waits: Duration) -> Turn {
        let known = |waiting: &Waiting| waiting.wanted.is_of(wanted.session, wanted.yields);
        let place = self.waiting.iter().position(known);
        let (place, until) = match place.and_then(|place| Some((place, self.waiting.get(place)?))) {
            Some((place, waiting)) => (place, waiting.until),
            None => (self.waiting.len(), now + waits),
        };
        let before = self.waiting.get(..place).unwrap_or_default();
        let holds = |held: &Held| held.wanted.is_of(wanted.session, wanted.yields);
        let holds_it = self.held.iter().any(holds);
        let same = || before.iter().filter(|w| w.wanted.excludes(&wanted));
        // Who holds the turn goes before all who wait for it.
        let is_next = holds_it || same().next().is_none();
        // The streams of who came before stay free for it.
        let needs_them = |w: &Waiting| {
            let both = w.wanted.streams.saturating_add(wanted.streams);
            let streams = w.wanted.is_small() == wanted.is_small() && !self.fits(&wanted, both);
            let place = w.wanted.yields == wanted.yields && !self.has_places(&wanted, 2);
            self.is_free(now, &w.wanted, waits) && (streams || place)
        };
        let goes = is_next
            && self.is_free(now, &wanted, waits)
            && self.fits(&wanted, wanted.streams)
            && self.has_places(&wanted, 1)
            && !before.iter().any(needs_them);
        if goes {
            self.waiting
                .retain(|w| !w.wanted.is_of(wanted.session, wanted.yields));
            self.held.retain(|held| {
                !held.wanted.excludes(&wanted) && !held.wanted.is_of(wanted.session, wanted.yields)
            });
            let until = now + wanted.lasts;
            let state = State::Runs { until };
            self.held.push(Held { wanted, state });
            return Turn::Now;
        }
        let ahead = if holds_it { 0 } else { same().count() };
        let lasting: Duration = same().map(|w| w.wanted.lasts).sum();
        let after = self.free_after(now, &wanted);
        let after = after.map(|after| after + if holds_it { Duration::ZERO } else { lasting });
        let queued = Queued { ahead, after };
        let left = until.saturating_sub(now);
        if left.is_zero() || after.is_some_and(|after| after > left) || ahead >= MAX_LOADS_WAITING {
            self.waiting
                .retain(|w| !w.wanted.is_of(wanted.session, wanted.yields));
            return Turn::Never(queued);
        }
        if place == self.waiting.len() {
            self.waiting.push(Waiting { wanted, until });
        }
        Turn::Wait(queued)
    }

    /// The load of that session is over, or not waited for any more. The turn is kept for its next phase.
    pub(crate) fn end(&mut self, now: Duration, session: u64, yields: bool) {
        self.waiting.retain(|w| !w.wanted.is_of(session, yields));
        for held in &mut self.held {
            if held.wanted.is_of(session, yields) && matches!(held.state, State::Runs { .. }) {
                let until = now + TURN_KEPT;
                held.state = State::Kept { until };
            }
        }
    }

    /// The session is over.
    pub(crate) fn leave(&mut self, session: u64) {
        self.waiting.retain(|w| w.wanted.session != session);
        self.held.retain(|held| held.wanted.session != session);
    }

    /// How many run now.
    pub(crate) fn count(&self) -> usize {
        let runs = |held: &&Held| matches!(held.state, State::Runs { .. });
        self.held.iter().filter(runs).count()
    }

    /// How many streams the load of that session has; none where it is not its turn.
    pub(crate) fn streams_of(&self, session: u64) -> u32 {
        let runs = |held: &&Held| matches!(held.state, State::Runs { .. });
        let its = |held: &&Held| held.wanted.session == session;
        let held = self.held.iter().filter(runs).filter(its);
        held.map(|held| held.wanted.streams).sum()
    }

    /// Whether no other session has the turn. A load that does not wait also takes a turn that is only kept for
    /// another: its client would not come back later.
    fn is_free(&self, now: Duration, wanted: &Wanted, waits: Duration) -> bool {
        let taken = |held: &Held| match held.state {
            State::Runs { .. } => true,
            State::Kept { until } => !waits.is_zero() && now < until,
        };
        let mut held = self.held.iter();
        !held.any(|held| held.wanted.excludes(wanted) && taken(held))
    }

    /// Whether so many more loads may run, of those that yield or of the others, where that load is the first of them.
    fn has_places(&self, wanted: &Wanted, more: usize) -> bool {
        let runs = |held: &&Held| matches!(held.state, State::Runs { .. });
        let same = |held: &&Held| held.wanted.yields == wanted.yields;
        // A load that runs and asks for more streams takes no second place.
        let others = |held: &&Held| !held.wanted.is_of(wanted.session, wanted.yields);
        let held = self.held.iter().filter(runs).filter(same).filter(others);
        held.count() + more <= self.most
    }

    /// Whether so many streams more fit beside the streams of the running loads that share their room.
    fn fits(&self, wanted: &Wanted, more: u32) -> bool {
        let runs = |held: &&Held| matches!(held.state, State::Runs { .. });
        let beside = |held: &&Held| held.wanted.is_small() == wanted.is_small();
        let streams = self
            .held
            .iter()
            .filter(runs)
            .filter(beside)
            .map(|held| held.wanted.streams)
            .fold(0, u32::saturating_add);
        let most = if wanted.is_small() {
            MAX_FEW_STREAMS_IN_ALL
        } else {
            MAX_STREAMS_IN_ALL
        };
        streams.saturating_add(more) <= most
    }

    /// How long what holds the load up still takes, as far as that is known.
    fn free_after(&self, now: Duration, wanted: &Wanted) -> Option<Duration> {
        let until = |held: &Held| match held.state {
            State::Runs { until } | State::Kept { until } => until,
        };
        let mut excluded = self.held.iter().filter(|held| held.wanted.excludes(wanted));
        let until = match excluded.next() {
            Some(held) => Some(until(held)),
            None => {
                let small = wanted.is_small();
                let is_full = !self.has_places(wanted, 1);
                let beside = self.held.iter();
                let beside = beside.filter(|h| is_full || h.wanted.is_small() == small);
                beside.map(until).min()
            }
        };
        until.map(|until| until.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn wanted(session: u64, last: u8, streams: u32) -> Wanted {
        Wanted {
            session,
            share: Share::of([192, 0, 2, last].into()),
            yields: false,
            streams,
            lasts: s(10),
        }
    }

    fn never(turn: Turn) -> Queued {
        match turn {
            Turn::Never(queued) => queued,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_load_that_runs_may_have_more_streams_where_all_places_are_taken() {
        let mut loads = Loads::new(2);
        for (session, last) in [(1, 1), (2, 2)] {
            // As iperf3's clients, which say later how many streams they have.
            assert_eq!(loads.ask(s(0), wanted(session, last, 1), s(30)), Turn::Now);
            assert_eq!(
                loads.ask(s(0), wanted(session, last, 128), s(30)),
                Turn::Now
            );
        }
        assert_eq!(loads.count(), 2);
        assert!(matches!(
            loads.ask(s(0), wanted(3, 3, 1), s(30)),
            Turn::Wait(_)
        ));
    }

    #[test]
    fn one_load_an_address_and_so_many_streams_in_all() {
        let mut loads = Loads::new(u32::MAX);
        let mut ask = |session, last, streams| {
            loads.ask(s(0), wanted(session, last, streams), Duration::ZERO)
        };
        let large = FEW_STREAMS + 1;
        assert_eq!(ask(1, 1, MAX_STREAMS_IN_ALL - large), Turn::Now);
        assert_eq!(never(ask(2, 1, 1)).after, Some(s(10)));
        assert_eq!(never(ask(3, 2, large + 1)).after, Some(s(10)));
        assert_eq!(ask(3, 2, large), Turn::Now);
        // Those with few streams have room of their own.
        for other in 3..35 {
            assert_eq!(ask(other.into(), other, FEW_STREAMS), Turn::Now);
        }
        assert_eq!(never(ask(99, 99, 1)).after, Some(s(10)));
        loads.leave(1);
        let next = wanted(2, 1, large);
        assert_eq!(loads.ask(s(1), next, Duration::ZERO), Turn::Now);
    }

    #[test]
    fn so_many_at_once_and_who_came_first_goes_first() {
        let mut loads = Loads::new(2);
        assert_eq!(loads.ask(s(0), wanted(1, 1, 4), MINUTE), Turn::Now);
        assert_eq!(loads.ask(s(0), wanted(2, 2, 4), MINUTE), Turn::Now);
        let queued = Queued {
            ahead: 0,
            after: Some(s(10)),
        };
        assert_eq!(loads.ask(s(0), wanted(3, 3, 4), MINUTE), Turn::Wait(queued));
        assert!(matches!(
            loads.ask(s(0), wanted(4, 4, 4), MINUTE),
            Turn::Wait(_)
        ));
        // One that yields needs no place.
        let background = Wanted {
            yields: true,
            ..wanted(5, 5, 1)
        };
        assert_eq!(loads.ask(s(0), background, MINUTE), Turn::Now);
        loads.leave(1);
        assert!(matches!(
            loads.ask(s(1), wanted(4, 4, 4), MINUTE),
            Turn::Wait(_)
        ));
        assert_eq!(loads.ask(s(1), wanted(3, 3, 4), MINUTE), Turn::Now);
        loads.leave(2);
        assert_eq!(loads.ask(s(2), wanted(4, 4, 4), MINUTE), Turn::Now);
    }

    #[test]
    fn a_load_that_yields_runs_beside_another() {
        let mut loads = Loads::new(u32::MAX);
        let background = |session| Wanted {
            yields: true,
            ..wanted(session, 1, 1)
        };
        assert_eq!(loads.ask(s(0), background(1), MINUTE), Turn::Now);
        assert!(matches!(
            loads.ask(s(0), background(2), MINUTE),
            Turn::Wait(_)
        ));
        assert_eq!(loads.ask(s(0), wanted(1, 1, 1), MINUTE), Turn::Now);
        loads.leave(1);
        loads.leave(2);
        assert!(loads.held.is_empty() && loads.waiting.is_empty());
    }

    #[test]
    fn they_take_turns_and_are_told_when() {
        let mut loads = Loads::new(u32::MAX);
        assert_eq!(loads.ask(s(0), wanted(1, 1, 4), MINUTE), Turn::Now);
        for (session, ahead) in [(2, 0), (3, 1), (4, 2)] {
            let after = Some(s(10 + 10 * ahead as u64));
            let queued = Queued { ahead, after };
            assert_eq!(
                loads.ask(s(0), wanted(session, 1, 4), MINUTE),
                Turn::Wait(queued)
            );
        }
        // It would be its turn in 40 s.
        assert_eq!(
            never(loads.ask(s(0), wanted(5, 1, 4), s(30))).after,
            Some(s(40))
        );
        // The next phase of the same session goes first, and then who waited longest.
        loads.end(s(10), 1, false);
        assert!(matches!(
            loads.ask(s(11), wanted(2, 1, 4), MINUTE),
            Turn::Wait(_)
        ));
        assert_eq!(loads.ask(s(12), wanted(1, 1, 4), MINUTE), Turn::Now);
        loads.end(s(22), 1, false);
        loads.leave(1);
        assert!(matches!(
            loads.ask(s(22), wanted(3, 1, 4), MINUTE),
            Turn::Wait(_)
        ));
        assert_eq!(loads.ask(s(22), wanted(2, 1, 4), MINUTE), Turn::Now);
        // A session that does nothing more keeps its turn for a moment only.
        loads.end(s(32), 2, false);
        assert!(matches!(
            loads.ask(s(33), wanted(3, 1, 4), MINUTE),
            Turn::Wait(_)
        ));
        assert_eq!(
            loads.ask(s(32) + TURN_KEPT, wanted(3, 1, 4), MINUTE),
            Turn::Now
        );
    }

    #[test]
    fn who_does_not_wait_takes_what_is_only_kept() {
        let mut loads = Loads::new(u32::MAX);
        assert_eq!(loads.ask(s(0), wanted(1, 1, 1), MINUTE), Turn::Now);
        loads.end(s(10), 1, false);
        assert_eq!(loads.ask(s(10), wanted(2, 1, 1), Duration::ZERO), Turn::Now);
        assert!(matches!(
            loads.ask(s(11), wanted(1, 1, 1), MINUTE),
            Turn::Wait(_)
        ));
    }

    #[test]
    fn a_large_load_is_not_starved_by_less_large_ones() {
        let mut loads = Loads::new(u32::MAX);
        assert_eq!(
            loads.ask(s(0), wanted(1, 1, MAX_STREAMS_IN_ALL - 4), MINUTE),
            Turn::Now
        );
        let (large, less) = (
            wanted(2, 2, MAX_STREAMS_IN_ALL),
            wanted(3, 3, FEW_STREAMS + 1),
        );
        assert!(matches!(loads.ask(s(0), large, MINUTE), Turn::Wait(_)));
        assert!(matches!(loads.ask(s(0), less, MINUTE), Turn::Wait(_)));
        assert_eq!(loads.ask(s(0), wanted(4, 4, 1), MINUTE), Turn::Now);
        loads.leave(1);
        assert!(matches!(loads.ask(s(1), less, MINUTE), Turn::Wait(_)));
        assert_eq!(loads.ask(s(1), large, MINUTE), Turn::Now);
    }

    proptest! {
        /// A client that keeps asking gets a turn or a refusal. Never do two loads of one address run at once, nor
        /// more streams than may.
        #[test]
        fn everybody_is_served_or_told(
            clients in proptest::collection::vec((0..5u8, 1..200u32, 1..20u64, any::<bool>()), 1..60),
        ) {
            let mut loads = Loads::new(u32::MAX);
            let mut asking: Vec<_> = clients.into_iter().enumerate().map(|(session, (last, streams, lasts, yields))| {
                let wanted = wanted(session as u64, last, streams);
                Wanted { lasts: s(lasts), yields, ..wanted }
            }).collect();
            let mut running: Vec<(Duration, Wanted)> = Vec::new();
            let mut now = s(0);
            while !asking.is_empty() || !running.is_empty() {
                running.retain(|(until, wanted)| {
                    if *until <= now {
                        loads.end(now, wanted.session, wanted.yields);
                        loads.leave(wanted.session);
                    }
                    *until > now
                });
                asking.retain(|wanted| match loads.ask(now, *wanted, MINUTE) {
                    Turn::Now => {
                        running.push((now + wanted.lasts, *wanted));
                        false
                    }
                    Turn::Wait(_) => true,
                    Turn::Never(_) => false,
                });
                for (_, one) in &running {
                    prop_assert!(!running.iter().any(|(_, other)| one.excludes(other)));
                }
                let streams: u32 = running.iter().map(|(_, wanted)| wanted.streams).sum();
                prop_assert!(streams <= MAX_STREAMS_IN_ALL + MAX_FEW_STREAMS_IN_ALL);
                now += s(1);
                prop_assert!(now <= MINUTE + s(21));
            }
            prop_assert!(loads.held.is_empty() && loads.waiting.is_empty());
        }
    }
}
