//! Small answers, which wait for no turn: what each address may have of them, and all strangers together. Pure.

use std::collections::HashMap;
use std::time::Duration;

use plumb_wire::share::{Bucket, Share};

/// What an answer counts for beside its body, in bytes: its head, and what it costs to find it.
pub(crate) const HEAD_BYTES: u64 = 256;

/// What an address may have, in bytes/s: 2,000 answers without a body, four times what the densest probing asks for (100
/// requests a second on each of four connections).
const RATE: f64 = 512_000.0;

/// The same at once, in bytes: the page, and its report of half a megabyte as often as a client is judged.
const BURST: f64 = 4_000_000.0;

/// What all strangers together may have, in bytes/s: 32 Mbit/s, less than a load of one.
const RATE_OF_ALL: f64 = 4_000_000.0;
const BURST_OF_ALL: f64 = 16_000_000.0;

/// The last part of what all may have is for addresses that have left this part of their own: a client that draws all the
/// time leaves room for one that has just come.
const LEFT: f64 = 0.5;

/// Addresses that are remembered at once, some 60 bytes each. One beyond them has what all may have.
const MOST: usize = 8192;

/// How often those that have all again are looked for, since it takes a look at each.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Who drew how much.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    of: HashMap<Share, Bucket>,
    all: Bucket,
    /// When those that have all again were last forgotten.
    looked: Duration,
}

impl Answers {
    /// Draws an answer of so many bytes.
    ///
    /// # Errors
    /// Where it is too much now: in how much time it is not.
    pub(crate) fn draw(
        &mut self,
        now: Duration,
        share: Share,
        is_stranger: bool,
        bytes: u64,
    ) -> Result<(), Duration> {
        let bytes = bytes as f64;
        let is_due = now.saturating_sub(self.looked) >= BETWEEN_LOOKS;
        if is_due && self.of.len() >= MOST {
            self.looked = now;
            self.of.retain(|_, its| its.left(now, RATE, BURST) < BURST);
        }
        let own = self.of.get(&share);
        let own_left = own.map_or(BURST, |its| its.left(now, RATE, BURST));
        if own_left < bytes {
            return Err(Duration::from_secs_f64(
                (bytes - own_left).min(BURST) / RATE,
            ));
        }
        if is_stranger {
            let kept_for_others = match own_left < BURST * LEFT {
                true => BURST_OF_ALL * LEFT,
                false => 0.0,
            };
            let left = self.all.left(now, RATE_OF_ALL, BURST_OF_ALL) - kept_for_others;
            if left < bytes {
                return Err(Duration::from_secs_f64((bytes - left) / RATE_OF_ALL));
            }
            self.all.draw(now, bytes, RATE_OF_ALL, BURST_OF_ALL);
        }
        if own.is_some() || self.of.len() < MOST {
            let its = self.of.entry(share).or_default();
            its.draw(now, bytes, RATE, BURST);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn share(number: u32) -> Share {
        Share::of(std::net::Ipv4Addr::from_bits(0x0900_0000 + number).into())
    }

    /// Bytes that an address gets of answers of 1,000 bytes, asking for ten thousand.
    fn drawn(answers: &mut Answers, now: Duration, number: u32, is_stranger: bool) -> u64 {
        let got =
            (0..10_000).filter(|_| answers.draw(now, share(number), is_stranger, 1000).is_ok());
        got.count() as u64 * 1000
    }

    #[test]
    fn an_address_has_its_own_and_it_comes_back() {
        let mut answers = Answers::default();
        let now = Duration::from_secs(5);
        assert_eq!(drawn(&mut answers, now, 1, false), 4_000_000);
        let wait = answers.draw(now, share(1), false, 1000).unwrap_err();
        assert!(
            wait > Duration::ZERO && wait < Duration::from_millis(3),
            "{wait:?}"
        );
        assert_eq!(
            drawn(&mut answers, now + Duration::from_secs(1), 1, false),
            512_000
        );
        assert!(answers.draw(now, share(2), false, u64::MAX).is_err());
    }

    #[test]
    fn strangers_have_little_together_and_leave_room_for_the_next() {
        let mut answers = Answers::default();
        let now = Duration::from_secs(5);
        let together: u64 = (0..100).map(|n| drawn(&mut answers, now, n, true)).sum();
        assert_eq!(together, 16_000_000);
        // Those that draw all the time share one half of what comes back, and the newcomer has the other.
        let mut now = now;
        for _ in 0..40 {
            now += Duration::from_millis(100);
            (0..8).for_each(|n| _ = drawn(&mut answers, now, n, true));
        }
        assert!(answers.draw(now, share(1000), true, 20_000).is_ok());
        // Addresses of this network do not count among the strangers.
        assert_eq!(drawn(&mut answers, now, 5000, false), 4_000_000);
    }

    #[test]
    fn many_addresses_take_bounded_room() {
        let mut answers = Answers::default();
        for number in 0..2 * MOST as u32 {
            let _ = answers.draw(Duration::ZERO, share(number), true, 256);
        }
        assert!(answers.of.len() <= MOST);
    }
}
