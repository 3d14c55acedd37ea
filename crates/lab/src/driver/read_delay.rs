//! How long packets wait at the device before the driver reads them. Pure: times are arguments.
//!
//! A packet does not show when it came. So where the device has not been empty for a while, the driver puts a mark
//! behind the packets that wait, and sees when it reads that. There is one at a time, and none where the driver keeps
//! up.

use std::time::Duration;

use plumb_link::time::Time;

/// What a mark begins with: the first byte is of no version of IP.
const MAGIC: [u8; 8] = *b"\0plmblab";

/// A packet of the driver's own: [`MAGIC`], and when it was put there, so that no other packet is taken for it.
type Mark = [u8; 16];

/// What is known of the packets that wait at a device.
#[derive(Debug)]
pub(super) struct ReadDelay {
    /// How long the device may be busy before a mark is put there, and from one to the next.
    patience: Duration,
    /// When the first packet was read since the device was last seen empty.
    busy_since: Option<Time>,
    /// When the last mark was put there, or was to be.
    asked: Option<Time>,
    /// When the mark was put there that has not been read yet.
    pending: Option<Time>,
    /// How long the last mark waited.
    waited: Duration,
}

impl ReadDelay {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            busy_since: None,
            asked: None,
            pending: None,
            waited: Duration::ZERO,
        }
    }

    pub(super) fn empty(&mut self) {
        (self.busy_since, self.pending, self.waited) = (None, None, Duration::ZERO);
    }

    /// A packet was read. Whether it is the mark.
    pub(super) fn read(&mut self, now: Time, packet: &[u8]) -> bool {
        self.busy_since.get_or_insert(now);
        match self.pending {
            Some(put) if packet == mark(put) => {
                self.waited = now - put;
                self.pending = None;
                true
            }
            _ => false,
        }
    }

    /// Since when something is known to wait that has not been read.
    pub(super) fn since(&self) -> Option<Time> {
        self.pending
    }

    /// How long a packet that is read now has waited, as far as is known: what comes before the
    /// mark came before it.
    pub(super) fn waited(&self, now: Time) -> Duration {
        let at_least = self.pending.map_or(Duration::ZERO, |put| now - put);
        self.waited.max(at_least)
    }

    /// The device may not be empty: a mark is put there, where it is time for one. `put` returns whether it is there.
    pub(super) fn ask(&mut self, now: Time, put: impl FnOnce(&Mark) -> bool) {
        let for_long = |since: Option<Time>| since.map(|since| now - since >= self.patience);
        let is_time = self.pending.is_none()
            && for_long(self.busy_since) == Some(true)
            && for_long(self.asked) != Some(false);
        if is_time {
            self.asked = Some(now);
            self.pending = put(&mark(now)).then_some(now);
        }
    }
}

/// The mark that is put there at a time.
fn mark(at: Time) -> Mark {
    let mut mark = [0; 16];
    let (magic, time) = mark.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    time.copy_from_slice(&at.as_nanos().to_be_bytes());
    mark
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const US: u64 = 1000;
    const PATIENCE: Duration = Duration::from_millis(1);

    /// Packets that come every so many microseconds for `lasts`, to a reader that needs `takes`
    /// for each: when each came and was read, how long it was held to have waited, and how many
    /// marks there were.
    fn device(every: u64, takes: u64, lasts: u64) -> (Vec<[Duration; 2]>, usize) {
        let mut unread = ReadDelay::new(PATIENCE);
        let mut waiting: VecDeque<(Time, Option<Mark>)> = VecDeque::new();
        let (mut now, mut next, mut marks) = (0, 0, 0);
        let mut read = Vec::new();
        while now < lasts || !waiting.is_empty() {
            while next <= now && next < lasts {
                waiting.push_back((Time::from_nanos(next * US), None));
                next += every;
            }
            let at = Time::from_nanos(now * US);
            let Some((came, mark)) = waiting.pop_front() else {
                unread.empty();
                now = next.max(now + 1);
                continue;
            };
            let is_mark = unread.read(at, mark.as_ref().map_or(&[0x45; 16], |mark| mark));
            assert_eq!(is_mark, mark.is_some());
            if !is_mark {
                read.push([at - came, unread.waited(at)]);
                now += takes;
            }
            unread.ask(at, |mark| {
                waiting.push_back((at, Some(*mark)));
                marks += 1;
                true
            });
        }
        (read, marks)
    }

    #[test]
    fn a_reader_that_keeps_up_asks_for_nothing() {
        // Nine tenths of its time are taken, and it sees an empty device all the same.
        let (read, marks) = device(10, 9, 1_000_000);
        assert!(read.iter().all(|[_, held]| held.is_zero()) && marks == 0);
    }

    #[test]
    fn what_waits_is_known_to_wait() {
        // A packet comes every 10 µs and takes 20: after 100 ms the next is read 100 ms late.
        let (read, marks) = device(10, 20, 100_000);
        assert!((3..100).contains(&marks), "{marks}");
        let longest = read.iter().map(|[waited, _]| *waited).max();
        assert!(longest > Some(Duration::from_millis(99)), "{longest:?}");
        let held = read.iter().map(|[_, held]| *held).max();
        // The last packets came after the last mark did.
        assert!(
            held >= longest.map(|l| l / 2) && held <= longest,
            "{held:?}"
        );
        for [waited, held] in &read {
            assert!(*held <= *waited + PATIENCE, "{waited:?} {held:?}");
        }
    }

    #[test]
    fn waiting_is_over_when_the_device_is_empty() {
        let at = |us| Time::from_nanos(us * US);
        let mut unread = ReadDelay::new(PATIENCE);
        assert!(!unread.read(at(0), &[0x45]));
        unread.ask(at(500), |_| unreachable!("it has not been busy for long"));
        // There is no room: it is asked again, but not at once.
        unread.ask(at(1_000), |_| false);
        assert_eq!(unread.since(), None);
        unread.ask(at(1_500), |_| unreachable!("it was asked just now"));
        unread.ask(at(2_000), |_| true);
        assert_eq!(unread.since(), Some(at(2_000)));
        assert_eq!(unread.waited(at(9_000)), Duration::from_millis(7));
        assert!(!unread.read(at(9_000), &mark(at(1_999))), "somebody else's");
        assert!(unread.read(at(9_000), &mark(at(2_000))));
        assert_eq!(unread.waited(at(9_500)), Duration::from_millis(7));
        unread.empty();
        assert_eq!(unread.waited(at(9_500)), Duration::ZERO);
    }
}
