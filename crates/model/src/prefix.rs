//! Ranges of addresses that share their first bits (RFC 4632, RFC 4291 section 2.3).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The addresses that share their first `length` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits they share.
    pub length: u8,
}

/// What is no prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write an address, or an address and a length like 192.0.2.0/24 or 2001:db8::/32")]
pub struct NoPrefix;

impl Prefix {
    /// The prefix of a single address; an IPv4 address written as IPv6 gives the prefix of the IPv4 address.
    pub fn host(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let length = bits(address);
        Self { address, length }
    }

    /// Whether the address is one of them; an IPv4 address written as IPv6 (::ffff:192.0.2.1) counts as the IPv4
    /// address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        bits(address) == bits(self.address) && self.first(address) == self.first(self.address)
    }

    /// The shared bits of an address.
    fn first(&self, address: IpAddr) -> u128 {
        let (all, value) = match address {
            IpAddr::V4(v4) => (32, u128::from(v4.to_bits())),
            IpAddr::V6(v6) => (128, v6.to_bits()),
        };
        let rest = u32::from(all - self.length.min(all));
        value.checked_shr(rest).unwrap_or(0)
    }
}

/// How many an address has.
fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        let Some((address, length)) = text.split_once('/') else {
            return text.parse().map(Self::host).map_err(|_| NoPrefix);
        };
        let address: IpAddr = address.parse().map_err(|_| NoPrefix)?;
        let length: u8 = length.parse().map_err(|_| NoPrefix)?;
        if length > bits(address) {
            return Err(NoPrefix);
        }
        // What is written as IPv6 and means IPv4 (::ffff:192.0.2.0/120) is the prefix of IPv4, for no address of a client would
        // ever be in the other.
        let mapped = bits(address) - bits(address.to_canonical());
        let length = length.checked_sub(mapped).ok_or(NoPrefix)?;
        let address = address.to_canonical();
        Ok(Self { address, length })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_belong_to_prefixes() {
        let contains = |prefix: &str, address: &str| {
            let prefix: Prefix = prefix.parse().unwrap();
            prefix.contains(address.parse().unwrap())
        };
        assert!(contains("192.0.2.0/24", "192.0.2.255"));
        assert!(contains("192.0.2.77/24", "192.0.2.1"));
        assert!(contains("192.0.2.0/24", "::ffff:192.0.2.1"));
        assert!(!contains("192.0.2.0/24", "192.0.3.1"));
        assert!(contains("0.0.0.0/0", "203.0.113.1"));
        assert!(!contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(contains("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(contains("192.0.2.1", "192.0.2.1"));
        assert!(!contains("192.0.2.1", "192.0.2.2"));
        assert!(contains("::ffff:192.0.2.0/120", "192.0.2.9"));
        assert!(!contains("::ffff:192.0.2.0/120", "192.0.3.9"));
        assert!(contains("::ffff:192.0.2.9", "192.0.2.9"));
        assert!(contains("::ffff:0:0/96", "::ffff:9.9.9.9"));
        for bad in [
            "::ffff:192.0.2.0/80",
            "",
            "192.0.2.0/33",
            "192.0.2.0/",
            "2001:db8::/129",
            "x/1",
            "192.0.2.0/-1",
        ] {
            assert_eq!(bad.parse::<Prefix>(), Err(NoPrefix), "{bad}");
        }
    }
}
