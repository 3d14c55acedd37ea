//! Whether the thread of one direction continues, sleeps or rests. Pure: times are arguments.
//!
//! To sleep until a time has a price: the timer's interrupt and waking up take some microseconds of a processor, in a
//! virtual machine 20. A thread that sleeps for less than that is late and has saved nothing, so what is due sooner is
//! waited for awake.
//!
//! A thread of real-time priority that never sleeps is stopped by the kernel for 50 ms of every second
//! (`sched_rt_runtime_us`, sched(7)), and keeps all other threads from its processor until then. So it rests of its own
//! accord: briefly and often.

use std::time::Duration;

use super::contention::Room;

/// The highest price of a sleep that is believed: a machine takes longer only when it is busy
/// otherwise.
const MOST_PRICE: Duration = Duration::from_micros(25);

/// A rest. At a price of 20 µs, what becomes due in it is 50 µs late at most.
pub(super) const REST: Duration = Duration::from_micros(30);

/// A rest where more threads are at work than there are processors: what all of them leave is all
/// that the programs at the ends have. Four at 1 Gbit/s in packets of 1500 bytes, which take 4 µs each,
/// rest for more than half of the time; what becomes due in it is 120 µs late at most.
pub(super) const CROWDED_REST: Duration = Duration::from_micros(100);

/// How long the thread waits awake before it rests where senders and receivers have to live of what it
/// leaves: so it takes four fifths of a processor at a price of 20 µs.
const MOST_AWAKE: Duration = Duration::from_micros(100);

/// How long it works before it rests, and waits awake where the ends have processors of their own:
/// with the rest 93 % of the time, below the 95 % from which on the kernel stops it. The fewer rests,
/// the fewer packets become due in one.
const MOST_BUSY: Duration = Duration::from_micros(400);

/// What the thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It looks for work again at once.
    Go,
    /// It sleeps until something is due or a packet comes.
    Sleep,
    /// It sleeps for so long, and packets do not wake it: they come all the time.
    Rest(Duration),
}

/// How long the thread has been on and off its processor.
#[derive(Debug)]
pub(super) struct BusyWait {
    /// What a sleep takes at least.
    price: Duration,
    /// Time since the last rest.
    awake: Duration,
    asleep: Duration,
}

impl BusyWait {
    /// On a machine on which sleeps end so much later than they should.
    pub(super) fn new(lateness: Duration) -> Self {
        Self {
            price: lateness.min(MOST_PRICE),
            awake: Duration::ZERO,
            asleep: Duration::ZERO,
        }
    }

    /// Decides, after `awake` since the last time; nothing is due for `left` (`None`: nothing is),
    /// and packets may be waiting (`more`), in so much `room`.
    pub(super) fn turn(
        &mut self,
        awake: Duration,
        left: Option<Duration>,
        more: bool,
        room: Room,
    ) -> Next {
        self.awake += awake;
        let is_idle_for = |time| !more && left.is_none_or(|left| left > time);
        let (nap, rest, most_awake) = match room {
            Room::Wide => (self.price, REST, MOST_BUSY),
            Room::Narrow => (self.price, REST, MOST_AWAKE),
            Room::Crowded => (CROWDED_REST, CROWDED_REST, Duration::ZERO),
        };
        let most = match is_idle_for(Duration::ZERO) {
            true => most_awake,
            false => MOST_BUSY,
        };
        if is_idle_for(nap) {
            Next::Sleep
        } else if self.awake >= most {
            Next::Rest(rest)
        } else {
            Next::Go
        }
    }

    /// Counts a sleep that took so long. Several short ones are as good as a rest, but the price
    /// of each was work.
    pub(super) fn slept(&mut self, time: Duration) {
        self.asleep += time.saturating_sub(self.price);
        if self.asleep >= REST {
            self.rested();
        }
    }

    pub(super) fn rested(&mut self) {
        (self.awake, self.asleep) = (Duration::ZERO, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// What a second is like in which a packet is due every so often and takes so long, where a
    /// sleep ends `price` late and costs that much work.
    struct Second {
        /// Time in which the thread has the processor.
        busy: Duration,
        /// How late packets leave, in order.
        late: Vec<Duration>,
    }

    fn second(every: Duration, takes: Duration, price: Duration, room: Room) -> Second {
        let mut pace = BusyWait::new(price);
        let (mut now, mut off, mut due) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut late = Vec::new();
        while now < Duration::from_secs(1) {
            let woke = now;
            while due <= now {
                late.push(now - due);
                now += takes;
                due += every;
                if now - woke > us(50) {
                    break;
                }
            }
            now += us(1);
            let left = due.saturating_sub(now);
            let sleep = match pace.turn(now - woke, Some(left), false, room) {
                Next::Go => continue,
                Next::Sleep => {
                    pace.slept(left + price);
                    left
                }
                Next::Rest(rest) => {
                    pace.rested();
                    rest
                }
            };
            off += sleep;
            now += sleep + price;
        }
        late.sort_unstable();
        Second {
            busy: now - off,
            late,
        }
    }

    #[test]
    fn the_kernel_never_has_to_stop_it() {
        // Packets of 1500 bytes at 100 Mbit/s to 10 Gbit/s, which take 4 µs each: the last are more
        // than it can do.
        for (price, room) in [
            (3, Room::Wide),
            (20, Room::Wide),
            (3, Room::Narrow),
            (20, Room::Narrow),
        ] {
            for every in [120, 60, 40, 30, 24, 12, 6, 5, 4, 1] {
                let busy = second(us(every), us(4), us(price), room).busy;
                let most = Duration::from_millis(945);
                assert!(busy < most, "{every} {price} {room:?} {busy:?}");
            }
        }
    }

    #[test]
    fn at_1_gbit_most_packets_leave_in_time() {
        for (room, most_ms) in [(Room::Wide, 940), (Room::Narrow, 805)] {
            let Second { busy, late } = second(us(12), us(4), us(20), room);
            let at = |i: usize| late.get(i).copied();
            let [median, p99] = [late.len() / 2, late.len() * 99 / 100].map(at);
            assert!(median < Some(us(3)), "{room:?} {median:?}");
            assert!(p99 < Some(us(60)), "{room:?} {p99:?}");
            assert!(busy < Duration::from_millis(most_ms), "{room:?} {busy:?}");
        }
    }

    #[test]
    fn a_crowd_leaves_the_ends_more_and_is_later() {
        for (every, most_ms) in [(24, 350), (12, 500)] {
            let Second { busy, late } = second(us(every), us(4), us(20), Room::Crowded);
            assert!(busy < Duration::from_millis(most_ms), "{every} {busy:?}");
            let worst = late.last().copied();
            assert!(worst < Some(us(200)), "{every} {worst:?}");
        }
    }

    #[test]
    fn what_is_far_off_is_slept_for_and_what_is_near_is_not() {
        let mut pace = BusyWait::new(us(20));
        assert_eq!(pace.turn(us(1), None, false, Room::Narrow), Next::Sleep);
        assert_eq!(
            pace.turn(us(1), Some(us(21)), false, Room::Narrow),
            Next::Sleep
        );
        assert_eq!(
            pace.turn(us(1), Some(us(20)), false, Room::Narrow),
            Next::Go
        );
        assert_eq!(pace.turn(us(1), None, true, Room::Narrow), Next::Go);
        // It waited long enough, but has work; when that is done it rests.
        assert_eq!(
            pace.turn(us(100), Some(us(0)), false, Room::Narrow),
            Next::Go
        );
        assert_eq!(
            pace.turn(us(1), Some(us(5)), false, Room::Narrow),
            Next::Rest(REST)
        );
        pace.rested();
        assert_eq!(pace.turn(us(1), Some(us(5)), false, Room::Narrow), Next::Go);
        // A price that only a busy machine asks is not believed.
        let mut pace = BusyWait::new(us(4000));
        assert_eq!(
            pace.turn(us(1), Some(us(26)), false, Room::Narrow),
            Next::Sleep
        );
    }
}
