//! The places for sessions, and who waits for one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use plumb_wire::native::spec::{
    IDLE_ABOVE_SHARE, IDLE_PER_RUN, IDLE_WITHIN_SHARE, MAX_WAITING, MAX_WAITING_PER_ADDRESS,
};
use plumb_wire::share::Share;

use super::{Queued, Turn};

/// The sessions of a responder, by number in the order in which they came.
#[derive(Debug)]
pub(crate) struct Sessions {
    most: usize,
    inside: BTreeMap<u64, Inside>,
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Inside {
    share: Share,
    /// Since when it is idle, less what [`IDLE_PER_RUN`] forgave.
    idle_since: Duration,
    /// Since when it has something that runs or waits for its turn.
    busy_since: Option<Duration>,
}

#[derive(Debug)]
struct Waiting {
    share: Share,
    until: Duration,
}

impl Sessions {
    /// Places for so many; at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            inside: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next: 0,
        }
    }

    /// A client came that waits so long for a place: its number, for [`Self::turn`].
    pub(crate) fn come(&mut self, now: Duration, share: Share, waits: Duration) -> u64 {
        let number = self.next;
        self.next += 1;
        let until = now + waits;
        self.waiting.insert(number, Waiting { share, until });
        number
    }

    /// Whether it is that client's turn, and which session must end for it. A client that gets
    /// [`Turn::Never`] is forgotten.
    pub(crate) fn turn(&mut self, now: Duration, number: u64) -> (Turn, Option<u64>) {
        let Some(Waiting { share, until }) = self.waiting.get(&number) else {
            return (Turn::Now, None);
        };
        let (share, until) = (*share, *until);
        let free = self.most.saturating_sub(self.inside.len());
        if self.is_among_first(free, number) {
            self.enter(now, number, share);
            return (Turn::Now, None);
        }
        if let Some(ended) = self.makes_room(now, share)
            && self.is_among_first(1, number)
        {
            self.inside.remove(&ended);
            self.enter(now, number, share);
            return (Turn::Now, Some(ended));
        }
        let queued = self.queued(now, number, share);
        if now >= until || self.is_crowded(number, share) {
            self.waiting.remove(&number);
            return (Turn::Never(queued), None);
        }
        (Turn::Wait(queued), None)
    }

    fn enter(&mut self, now: Duration, number: u64, share: Share) {
        self.waiting.remove(&number);
        let inside = Inside {
            share,
            idle_since: now,
            busy_since: None,
        };
        self.inside.insert(number, inside);
    }

    /// Something begins in a session.
    pub(crate) fn begins(&mut self, now: Duration, number: u64) {
        if let Some(inside) = self.inside.get_mut(&number) {
            inside.busy_since = Some(now);
        }
    }

    /// It is over; a load ran for so long meanwhile. What did not run only stops the clock.
    pub(crate) fn ends(&mut self, now: Duration, number: u64, ran: Duration) {
        if let Some(inside) = self.inside.get_mut(&number)
            && let Some(since) = inside.busy_since.take()
        {
            let forgiven = now.saturating_sub(since) + ran.saturating_mul(IDLE_PER_RUN);
            inside.idle_since = (inside.idle_since + forgiven).min(now);
        }
    }

    /// It is over, or does not wait any more.
    pub(crate) fn leave(&mut self, number: u64) {
        self.inside.remove(&number);
        self.waiting.remove(&number);
    }

    /// Whether it is one of the next `places` who come in: who has fewest inside comes first, and of
    /// those who came first.
    fn is_among_first(&self, places: usize, number: u64) -> bool {
        if places == 0 || places >= self.waiting.len() {
            return places > 0;
        }
        let mut of = self.count();
        let mut left: Vec<_> = self.waiting.iter().map(|(n, w)| (*n, w.share)).collect();
        for _ in 0..places {
            let has = |share: &Share| of.get(share).copied().unwrap_or(0);
            let first = left.iter().enumerate();
            let first = first.min_by_key(|(_, (number, share))| (has(share), *number));
            let Some((place, (next, share))) = first.map(|(place, next)| (place, *next)) else {
                return false;
            };
            if next == number {
                return true;
            }
            *of.entry(share).or_default() += 1;
            left.swap_remove(place);
        }
        false
    }

    fn count(&self) -> HashMap<Share, usize> {
        let mut of = HashMap::new();
        for inside in self.inside.values() {
            *of.entry(inside.share).or_default() += 1;
        }
        of
    }

    /// The session that makes room for one more of `share`: of another that has more inside, the one
    /// that has been idle for longest, once that is too long.
    fn makes_room(&self, now: Duration, share: Share) -> Option<u64> {
        self.releases(share)
            .into_iter()
            .find(|(at, _)| *at <= now)
            .map(|(_, number)| number)
    }

    /// When each session that may be ended for `share` has been idle for too long, the first one first.
    fn releases(&self, share: Share) -> Vec<(Duration, u64)> {
        let of = self.count();
        let mine = of.get(&share).copied().unwrap_or(0);
        let waiting = self.waiting.values().map(|waiting| waiting.share);
        let shares: HashSet<_> = waiting.chain(of.keys().copied()).collect();
        let fair = (self.most / shares.len().max(1)).max(1);
        let release = |(number, inside): (&u64, &Inside)| {
            let its = of.get(&inside.share).copied().unwrap_or(0);
            let longest = match inside.share {
                same if same == share => return None,
                _ if its > fair && mine < fair => IDLE_ABOVE_SHARE,
                _ if its > mine => IDLE_WITHIN_SHARE,
                _ => return None,
            };
            let idle = inside.busy_since.is_none();
            idle.then_some((inside.idle_since + longest, *number))
        };
        let mut releases: Vec<_> = self.inside.iter().filter_map(release).collect();
        releases.sort_unstable();
        releases
    }

    fn queued(&self, now: Duration, number: u64, share: Share) -> Queued {
        let ahead = self.waiting.range(..number).count();
        let releases = self.releases(share);
        let mine = releases.get(ahead).or(releases.last());
        Queued {
            ahead,
            after: mine.map(|(at, _)| at.saturating_sub(now)),
        }
    }

    /// Whether more wait than may, and this one has to go: the newest of the share that has most of them waiting.
    fn is_crowded(&self, number: u64, share: Share) -> bool {
        let mut waiting: HashMap<Share, Vec<u64>> = HashMap::new();
        for (number, its) in &self.waiting {
            waiting.entry(its.share).or_default().push(*number);
        }
        let its = waiting.get(&share).map_or(0, |its| {
            its.iter().filter(|before| **before < number).count()
        });
        if its >= MAX_WAITING_PER_ADDRESS {
            return true;
        }
        (MAX_WAITING..self.waiting.len()).any(|_| {
            let most = waiting
                .values_mut()
                .max_by_key(|its| (its.len(), its.last().copied()));
            most.and_then(Vec::pop) == Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn share(last: u8) -> Share {
        Share::of([192, 0, 2, last].into())
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Has so many come in from one address, each as soon as it comes.
    fn fill(sessions: &mut Sessions, now: Duration, last: u8, count: usize) -> Vec<u64> {
        let mut come = || {
            let number = sessions.come(now, share(last), s(60));
            assert_eq!(sessions.turn(now, number), (Turn::Now, None));
            number
        };
        (0..count).map(|_| come()).collect()
    }

    #[test]
    fn who_holds_all_places_for_ever_makes_room() {
        let mut sessions = Sessions::new(64);
        let held = fill(&mut sessions, s(0), 1, 64);
        let good = sessions.come(s(1), share(2), s(60));
        let (turn, _) = sessions.turn(s(1), good);
        let queued = Queued {
            ahead: 0,
            after: Some(IDLE_ABOVE_SHARE - s(1)),
        };
        assert_eq!(turn, Turn::Wait(queued));
        assert_eq!(
            sessions.turn(IDLE_ABOVE_SHARE, good),
            (Turn::Now, Some(held[0]))
        );
        // Up to its half.
        for oldest in held.iter().take(32).skip(1) {
            let good = sessions.come(s(10), share(2), s(60));
            assert_eq!(sessions.turn(s(10), good), (Turn::Now, Some(*oldest)));
        }
        let more = sessions.come(s(10), share(2), s(60));
        assert!(matches!(sessions.turn(s(10), more).0, Turn::Wait(_)));
    }

    #[test]
    fn what_runs_is_not_ended() {
        let mut sessions = Sessions::new(2);
        let held = fill(&mut sessions, s(0), 1, 2);
        held.iter().for_each(|n| sessions.begins(s(0), *n));
        let good = sessions.come(s(1), share(2), s(60));
        let unknown = Queued {
            ahead: 0,
            after: None,
        };
        assert_eq!(sessions.turn(s(50), good).0, Turn::Wait(unknown));
        sessions.ends(s(50), held[1], s(50));
        assert_eq!(
            sessions.turn(s(50) + IDLE_ABOVE_SHARE, good),
            (Turn::Now, Some(held[1]))
        );
    }

    #[test]
    fn only_what_runs_keeps_a_place() {
        let mut sessions = Sessions::new(3);
        let held = fill(&mut sessions, s(0), 1, 3);
        // A phase a second in each: one that does not run, one of 100 ms, one of 500 ms.
        for second in 0..20 {
            for (number, ran_ms) in held.iter().zip([0, 100, 500]) {
                sessions.begins(s(second), *number);
                let ran = Duration::from_millis(ran_ms);
                sessions.ends(s(second) + ran, *number, ran);
            }
        }
        let mut comes = |last| {
            let number = sessions.come(s(20), share(last), s(60));
            sessions.turn(s(20), number)
        };
        assert_eq!(comes(2), (Turn::Now, Some(held[0])));
        assert!(matches!(comes(3), (Turn::Wait(_), None)));
    }

    #[test]
    fn nobody_makes_room_for_the_same_address_and_who_does_not_wait_is_told() {
        let mut sessions = Sessions::new(1);
        let held = fill(&mut sessions, s(0), 1, 1);
        let second = sessions.come(s(90), share(1), s(0));
        let (turn, ended) = sessions.turn(s(90), second);
        assert!(matches!(turn, Turn::Never(Queued { after: None, .. })));
        assert_eq!(ended, None);
        // Another one gets it once it has been idle for too long, not earlier.
        let other = sessions.come(s(20), share(2), s(60));
        let (turn, _) = sessions.turn(s(20), other);
        assert_eq!(
            turn,
            Turn::Wait(Queued {
                ahead: 0,
                after: Some(IDLE_WITHIN_SHARE - s(20))
            })
        );
        assert_eq!(
            sessions.turn(IDLE_WITHIN_SHARE, other),
            (Turn::Now, Some(held[0]))
        );
    }

    #[test]
    fn the_queue_is_bounded_and_who_came_last_is_told_at_once() {
        let mut sessions = Sessions::new(1);
        fill(&mut sessions, s(0), 1, 1);
        let mut come = |last| {
            let number = sessions.come(s(1), share(last), s(60));
            sessions.turn(s(1), number).0
        };
        for _ in 0..MAX_WAITING_PER_ADDRESS {
            assert!(matches!(come(2), Turn::Wait(_)));
        }
        assert!(matches!(come(2), Turn::Never(_)));
        assert!(matches!(come(3), Turn::Wait(_)));
    }

    #[test]
    fn two_addresses_do_not_fill_the_queue() {
        let mut sessions = Sessions::new(1);
        fill(&mut sessions, s(0), 1, 1);
        let mut waiting: Vec<_> = (0..MAX_WAITING)
            .map(|n| sessions.come(s(1), share(2 + (n % 2) as u8), s(60)))
            .collect();
        let waits = |sessions: &mut Sessions, number: u64| {
            matches!(sessions.turn(s(1), number).0, Turn::Wait(_))
        };
        for number in &waiting {
            assert!(waits(&mut sessions, *number));
        }
        for last in 4..40 {
            let good = sessions.come(s(1), share(last), s(60));
            assert!(waits(&mut sessions, good), "{last}");
            // One of the two has to go for it, the one that came last.
            let newest = waiting.pop().unwrap();
            assert!(!waits(&mut sessions, newest));
            assert!(waiting.iter().all(|number| waits(&mut sessions, *number)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// A hundred of twenty addresses, each of which is asked again and again and stays for a moment:
        /// all get a place, and never more than there are.
        #[test]
        fn everybody_gets_a_turn(most in 1..64usize, stays_ms in 1..200u64, order in any::<u64>()) {
            let mut sessions = Sessions::new(most);
            let mut waiting: Vec<_> = (0..100_u64)
                .map(|n| sessions.come(s(0), share((n % 20) as u8), s(60)))
                .collect();
            waiting.rotate_left((order % 100) as usize);
            let mut inside: Vec<(Duration, u64)> = Vec::new();
            let mut now = s(0);
            while !waiting.is_empty() {
                inside.retain(|(until, number)| {
                    if *until <= now {
                        sessions.leave(*number);
                    }
                    *until > now
                });
                let mut refused = false;
                waiting.retain(|number| match sessions.turn(now, *number).0 {
                    Turn::Now => {
                        inside.push((now + Duration::from_millis(stays_ms), *number));
                        false
                    }
                    Turn::Wait(_) => true,
                    Turn::Never(_) => {
                        refused = true;
                        false
                    }
                });
                prop_assert!(!refused);
                prop_assert!(inside.len() <= most);
                now += Duration::from_millis(50);
                prop_assert!(now < s(60));
            }
        }
    }
}
