//! Targets as text: addresses, names, and networks in CIDR notation (RFC 4632).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plumb_model::prefix::Prefix;

/// Targets at most, over all that is named: at 100 bytes each they take 100 MB.
pub const MOST: usize = 1 << 20;

/// What a word names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word<'a> {
    /// A network, by its first and its last address that a host may have.
    Network(IpAddr, IpAddr),
    /// An address or a name, to be looked up.
    Host(&'a str),
}

/// Why a word names no targets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A slash, and not an address before and a length behind it.
    #[error("'{0}' is no network: write ADDRESS/LENGTH, such as 192.0.2.0/24")]
    Network(String),
    /// The address of a page.
    #[error("'{0}' is a URL: write its host alone, '{1}'; plumb page measures a page")]
    Url(String, String),
    /// The network holds too much.
    #[error("'{0}' holds more than {MOST} addresses: probe a part of it")]
    Large(String),
}

impl<'a> Word<'a> {
    /// Reads a word. A network of IPv4 leaves out its own address and its broadcast address where it
    /// has them (lengths up to 30, RFC 3021), one of IPv6 the address of its routers (RFC 4291,
    /// section 2.6.1).
    ///
    /// # Errors
    /// When it has a slash and is no network, or one of more than [`MOST`] addresses.
    pub fn parse(text: &'a str) -> Result<Self, TargetError> {
        if !text.contains('/') {
            return Ok(Self::Host(text));
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or(host);
            return Err(TargetError::Url(text.to_owned(), host.to_owned()));
        }
        let prefix = text.parse();
        let Prefix { address, length } =
            prefix.map_err(|_| TargetError::Network(text.to_owned()))?;
        let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
        let host_bits = bits - u32::from(length);
        if host_bits > MOST.ilog2() {
            return Err(TargetError::Large(text.to_owned()));
        }
        let hosts = (1u128 << host_bits) - 1;
        let (first, last) = match address {
            IpAddr::V4(v4) => {
                let network = u32::from(v4) & !(hosts as u32);
                let edge = u32::from(host_bits >= 2);
                let last = network + hosts as u32 - edge;
                (
                    Ipv4Addr::from(network + edge).into(),
                    Ipv4Addr::from(last).into(),
                )
            }
            IpAddr::V6(v6) => {
                let network = u128::from(v6) & !hosts;
                let edge = u128::from(host_bits >= 2);
                (
                    Ipv6Addr::from(network + edge).into(),
                    Ipv6Addr::from(network + hosts).into(),
                )
            }
        };
        Ok(Self::Network(first, last))
    }
}

/// The addresses from the first to the last, both included; none where they are of different versions.
pub fn addresses(first: IpAddr, last: IpAddr) -> Box<dyn Iterator<Item = IpAddr>> {
    match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            Box::new((u32::from(first)..=u32::from(last)).map(|a| Ipv4Addr::from(a).into()))
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            Box::new((u128::from(first)..=u128::from(last)).map(|a| Ipv6Addr::from(a).into()))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// The words of a file: one target a line, as its first word; what follows `#` is a comment.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.split('#').next()?.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn named(text: &str) -> Vec<String> {
        match Word::parse(text).unwrap() {
            Word::Network(first, last) => addresses(first, last).map(|a| a.to_string()).collect(),
            Word::Host(name) => vec![name.to_owned()],
        }
    }

    #[test]
    fn a_url_is_answered_with_its_host() {
        let said = Word::parse("https://user@example.com/a?b=1").unwrap_err();
        assert!(said.to_string().contains("'example.com'"), "{said}");
    }

    #[test]
    fn networks_are_their_hosts() {
        assert_eq!(named("10.0.0.5/30"), ["10.0.0.5", "10.0.0.6"]);
        assert_eq!(named("10.0.0.5/31"), ["10.0.0.4", "10.0.0.5"]);
        assert_eq!(named("10.0.0.5/32"), ["10.0.0.5"]);
        assert_eq!(named("10.0.0.0/24").len(), 254);
        assert_eq!(named("2001:db8::/126").len(), 3);
        assert_eq!(named("2001:db8::7/128"), ["2001:db8::7"]);
        assert_eq!(named("255.255.255.255/32"), ["255.255.255.255"]);
        assert_eq!(named("server"), ["server"]);
    }

    #[test]
    fn what_is_no_network_is_said() {
        for wrong in [
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "server/24",
            "2001:db8::/129",
            "10.0.0.0/-1",
            "1.2.3.4/256",
            "1.2.3.4/264",
        ] {
            assert!(
                matches!(Word::parse(wrong), Err(TargetError::Network(_))),
                "{wrong}"
            );
        }
        for large in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/64"] {
            assert!(
                matches!(Word::parse(large), Err(TargetError::Large(_))),
                "{large}"
            );
        }
    }

    #[test]
    fn a_file_may_have_comments_and_names_for_people() {
        let text = "# all\n10.0.0.1 router\n\n  server # web\n#\n2001:db8::1";
        assert_eq!(
            lines(text).collect::<Vec<_>>(),
            ["10.0.0.1", "server", "2001:db8::1"]
        );
    }

    proptest! {
        #[test]
        fn no_text_names_more_than_the_most(text in "[0-9a-f.:/]{0,24}") {
            if let Ok(Word::Network(first, last)) = Word::parse(&text) {
                prop_assert!(first <= last);
                prop_assert!(addresses(first, last).take(MOST + 1).count() <= MOST);
            }
            prop_assert!(lines(&text).count() <= 1);
        }
    }
}
