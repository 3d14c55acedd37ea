//! The cookie: proof, without keeping any state, that a client receives at the address that it
//! sends from.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ring::hmac::Key;
use subtle::ConstantTimeEq;

use crate::keyed;

/// How long a cookie is computed from the same epoch number.
///
/// A cookie is good for the epoch it was made in and the next, so for 10 to 20 minutes: longer
/// than a check takes, and short enough that the next holder of the address (NAT, DHCP) does not inherit it for long.
/// Clients renew after half an epoch.
pub const EPOCH: Duration = Duration::from_secs(600);

/// Proof that the holder receives at the address that it sends from.
pub type Cookie = [u8; 16];

/// Makes and verifies cookies without keeping any: HMAC-SHA256 (RFC 2104) over address, port
/// and epoch, cut to 16 bytes.
#[derive(Clone)]
pub struct CookieJar {
    key: Key,
}

impl CookieJar {
    /// A jar whose cookies only `secret` can make: random, and new at every start.
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            key: keyed::key(&secret),
        }
    }

    /// The cookie of `source` at `now`, a time since any fixed origin that never goes back.
    pub fn cookie(&self, now: Duration, source: SocketAddr) -> Cookie {
        self.of_epoch(epoch(now), source)
    }

    /// Whether `cookie` was made for `source` in this epoch or the one before.
    pub fn verify(&self, now: Duration, source: SocketAddr, cookie: &Cookie) -> bool {
        let epoch = epoch(now);
        let current = self.of_epoch(epoch, source).ct_eq(cookie);
        // In epoch 0 there is none before; its own cookie is verified twice.
        let previous = self.of_epoch(epoch.saturating_sub(1), source).ct_eq(cookie);
        (current | previous).into()
    }

    fn of_epoch(&self, epoch: u64, source: SocketAddr) -> Cookie {
        let address = match source.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let parts: [&[u8]; 3] = [
            &address.octets(),
            &source.port().to_be_bytes(),
            &epoch.to_be_bytes(),
        ];
        keyed::code(&self.key, &parts)
    }
}

fn epoch(now: Duration) -> u64 {
    now.as_secs() / EPOCH.as_secs()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const T0: Duration = Duration::from_secs(5 * EPOCH.as_secs());

    fn client(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn the_cookie_is_a_truncated_hmac() {
        // python3: hmac.new(bytes([7]*32), ip.packed + port + epoch, 'sha256').digest()[:16]
        let cookie = CookieJar::new([7; 32]).cookie(T0, client(4000));
        assert_eq!(
            cookie,
            [
                116, 109, 205, 18, 164, 56, 251, 208, 121, 34, 226, 137, 56, 63, 255, 76
            ]
        );
    }

    #[test]
    fn a_mapped_address_is_the_same_address() {
        let jar = CookieJar::new([1; 32]);
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:4000".parse().unwrap();
        assert!(jar.verify(T0, mapped, &jar.cookie(T0, client(4000))));
    }

    #[test]
    fn it_is_good_for_its_epoch_and_the_next() {
        let jar = CookieJar::new([1; 32]);
        let cookie = jar.cookie(T0, client(4000));
        let verify = |after: Duration, port| jar.verify(T0 + after, client(port), &cookie);
        let second = Duration::from_secs(1);
        assert!(verify(Duration::ZERO, 4000) && verify(2 * EPOCH - second, 4000));
        assert!(!verify(2 * EPOCH, 4000));
        assert!(!verify(Duration::ZERO, 4001));
        assert!(
            !CookieJar::new([2; 32]).verify(T0, client(4000), &cookie),
            "another secret"
        );
    }
}
