//! Who counts as one: what a responder bounds, it bounds for each of them.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// An IPv4 address, or an IPv6 /64: the holder of one address of a /64 has all of them (RFC 6177).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(IpAddr);

impl Share {
    /// Whose share that address draws on.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
            v4 => v4,
        })
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            IpAddr::V4(v4) => v4.fmt(f),
            IpAddr::V6(v6) => write!(f, "{v6}/64"),
        }
    }
}

/// What may be drawn at a rate, with so much at once (RFC 2697 has it as a token bucket). Pure.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// When the rest was computed; nothing has been drawn before the first time.
    at: Option<Duration>,
    left: f64,
}

impl Bucket {
    /// Draws `amount` where so much is left. `now` is a time since any fixed origin that never goes back.
    pub fn draw(&mut self, now: Duration, amount: f64, rate_per_s: f64, most: f64) -> bool {
        self.left = self.left(now, rate_per_s, most);
        self.at = Some(now);
        let enough = self.left >= amount;
        if enough {
            self.left -= amount;
        }
        enough
    }

    /// What was drawn and not used can be drawn again.
    pub fn give_back(&mut self, amount: f64) {
        if self.at.is_some() {
            self.left += amount;
        }
    }

    /// How much could be drawn.
    pub fn left(&self, now: Duration, rate_per_s: f64, most: f64) -> f64 {
        self.at.map_or(most, |at| {
            let passed_s = now.saturating_sub(at).as_secs_f64();
            (self.left + passed_s * rate_per_s).min(most)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> String {
        Share::of(text.parse().unwrap()).to_string()
    }

    #[test]
    fn an_ipv4_address_is_one_and_so_is_a_64() {
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(of("2001:db8:0:1:2:3:4:5"), "2001:db8:0:1::/64");
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
    }

    proptest! {
        #[test]
        fn no_more_is_drawn_than_the_rate_and_the_burst(
            draws in proptest::collection::vec((0..50u64, 1.0..40.0f64), 1..200),
        ) {
            let (mut bucket, mut now, mut drawn) = (Bucket::default(), Duration::ZERO, 0.0);
            for (wait_ms, amount) in draws {
                now += Duration::from_millis(wait_ms);
                if bucket.draw(now, amount, 1000.0, 100.0) {
                    drawn += amount;
                }
                prop_assert!(drawn <= 100.0 + now.as_secs_f64() * 1000.0 + 1e-6);
            }
        }
    }
}
