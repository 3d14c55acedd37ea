//! Addresses as they are written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::FilterError;
use super::stream::unexpected;
use super::syntax::Network;
use super::words::Word;

/// Whether a word is an address of IP.
pub(super) fn is_address(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok()
}

/// The network of so many bits, which the address is to begin.
pub(super) fn network(
    word: Word<'_>,
    address: IpAddr,
    length: u32,
) -> Result<Network, FilterError> {
    let (network, first) = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(Ipv4Addr::BITS - length).unwrap_or(0);
            let first = Ipv4Addr::from_bits(address.to_bits() & mask);
            (Network::V4 { address, mask }, IpAddr::V4(first))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(Ipv6Addr::BITS - length).unwrap_or(0);
            let first = Ipv6Addr::from_bits(address.to_bits() & mask);
            (Network::V6 { address, mask }, IpAddr::V6(first))
        }
    };
    match first == address {
        true => Ok(network),
        false => Err(FilterError::HostBits {
            word: word.text.to_owned(),
            at: word.at,
            network: format!("{first}/{length}"),
        }),
    }
}

/// An Ethernet address with colons or hyphens.
pub(super) fn mac(text: &str) -> Option<[u8; 6]> {
    let sign = if text.contains(':') { ':' } else { '-' };
    let mut mac = [0; 6];
    let mut parts = text.split(sign);
    for byte in &mut mac {
        let part = parts.next().filter(|part| matches!(part.len(), 1 | 2))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// Why a word is no address: part of one, or a name.
pub(super) fn not_an_address(word: Word<'_>) -> FilterError {
    let of_digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':');
    match word.text.chars().all(of_digits) || word.text.contains(':') {
        true => unexpected(
            word,
            "a whole address; a network is written as in 10.1.0.0/16",
        ),
        false => FilterError::HostName {
            word: word.text.to_owned(),
            at: word.at,
        },
    }
}
