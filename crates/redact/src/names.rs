//! What stands in the place of a name, an address, an identifier.

use std::net::IpAddr;

use plumb_wire::keyed::code;

use crate::Redactor;
use crate::prose::is_counted_word;

/// Texts in fields of names that are plumb's own: the alias of a laboratory's link, standard input, and names of interfaces
/// without a number that every system has.
const PLUMBS_OWN: &[&str] = &["plumb lab", "standard input", "lo", "any"];

/// What a code is for, so that no two uses share one (addresses have 4, 6 and 48).
const OF_NAMES: u8 = 100;
const OF_IDENTIFIERS: u8 = 101;
const OF_SYSTEMS: u8 = 102;

/// Autonomous systems for private use (RFC 6996).
const PRIVATE_SYSTEMS: std::ops::RangeInclusive<u32> = 4_200_000_000..=4_294_967_294;

/// Where the dashes of a UUID stand (RFC 9562, section 4).
const DASHES: [usize; 4] = [8, 13, 18, 23];
const UUID_CHARS: usize = 36;

/// What the groups of a hardware address are parted by (IEEE 802; Cisco parts three of four digits by dots).
const MAC_MARKS: [char; 3] = [':', '-', '.'];

/// How kernels name interfaces of a kind, with a number behind; other names say where hardware is, or what its address is.
const KINDS: &[&str] = &[
    "eth", "wlan", "tun", "tap", "veth", "br", "bond", "ppp", "wg", "wwan", "usb", "dummy", "ifb",
];

/// `eth0`, `wlan1`: a usual word for its kind, and a number.
fn is_usual_interface(text: &str) -> bool {
    is_counted_word(text, |word| KINDS.contains(&word))
}

impl Redactor {
    /// A name of a machine, a network, a file; also one of an address or a URL.
    pub(crate) fn name(&mut self, text: &str) -> String {
        if text.is_empty() || PLUMBS_OWN.contains(&text) || is_usual_interface(text) {
            return text.to_owned();
        }
        if let Some(other) = self.structured(text) {
            return other;
        }
        let port = text.rsplit_once(':').filter(|(host, port)| {
            !host.is_empty() && !host.contains(':') && port.parse::<u16>().is_ok()
        });
        match port {
            Some((host, port)) => format!("{}:{port}", self.name(host)),
            None => self.pseudonym(text),
        }
    }

    /// An address, an identifier or a URL in the same spelling; `None` where it is none.
    pub(crate) fn structured(&mut self, text: &str) -> Option<String> {
        let found = self.address(text).or_else(|| self.hardware_address(text));
        let found = found.or_else(|| self.with_port(text));
        found
            .or_else(|| self.identifier(text))
            .or_else(|| self.url(text))
    }

    /// Words in the place of one that came from outside, whatever its case.
    pub(crate) fn pseudonym(&mut self, text: &str) -> String {
        let name = text.trim().trim_end_matches('.').to_lowercase();
        let [a, b, c, d] = code(&self.key, &[&[OF_NAMES], name.as_bytes()]);
        self.taken.names.insert(name);
        format!("name-{a:02x}{b:02x}{c:02x}{d:02x}")
    }

    /// An address of IP, with its zone and the length of its prefix where it has them.
    fn address(&mut self, text: &str) -> Option<String> {
        let (text, length) = match text.split_once('/') {
            Some((text, length)) if length.parse::<u8>().is_ok() => (text, Some(length)),
            Some(_) => return None,
            None => (text, None),
        };
        let (text, zone) = match text.split_once('%') {
            Some((text, zone)) => (text, Some(zone)),
            None => (text, None),
        };
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        let address: IpAddr = bare.unwrap_or(text).parse().ok()?;
        let other = self.other(address);
        if other != address {
            self.taken.addresses.insert(address.to_string());
        }
        let zone = zone.map_or_else(String::new, |zone| format!("%{}", self.name(zone)));
        let length = length.map_or_else(String::new, |length| format!("/{length}"));
        Some(match bare {
            Some(_) => format!("[{other}{zone}]{length}"),
            None => format!("{other}{zone}{length}"),
        })
    }

    fn other(&mut self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => IpAddr::from(self.addresses.v4(v4.octets())),
            // One of IPv4 within one of IPv6 (RFC 4291, section 2.5.5.2) stays that.
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => {
                    let other = std::net::Ipv4Addr::from(self.addresses.v4(v4.octets()));
                    IpAddr::V6(other.to_ipv6_mapped())
                }
                None => IpAddr::from(self.addresses.v6(v6.octets())),
            },
        }
    }

    /// An address of IP with a port behind it.
    fn with_port(&mut self, text: &str) -> Option<String> {
        let (address, port) = text.rsplit_once(':')?;
        port.parse::<u16>().ok()?;
        let is_v6 = address.contains(':') && !address.starts_with('[');
        if is_v6 {
            return None;
        }
        Some(format!("{}:{port}", self.address(address)?))
    }

    /// A hardware address (EUI-48), in the same spelling.
    fn hardware_address(&mut self, text: &str) -> Option<String> {
        let mark = text.chars().find(|c| MAC_MARKS.contains(c))?;
        let groups: Vec<&str> = text.split(mark).collect();
        let per_group = match (groups.len(), mark) {
            (6, ':' | '-') => 2,
            (3, '.') => 4,
            _ => return None,
        };
        let is_group = |group: &&str| group.len() == per_group;
        let digits: String = groups
            .iter()
            .filter(|group| is_group(group))
            .copied()
            .collect();
        let bits = u64::from_str_radix(&digits, 16)
            .ok()
            .filter(|_| digits.len() == 12)?;
        let [_, _, mac @ ..] = bits.to_be_bytes();
        let other = self.addresses.mac(mac);
        self.taken.addresses.insert(digits);
        let digits: String = other.iter().map(|byte| format!("{byte:02x}")).collect();
        let digits: Vec<char> = digits.chars().collect();
        let groups = digits
            .chunks(per_group)
            .map(|group| group.iter().collect::<String>());
        Some(groups.collect::<Vec<_>>().join(&mark.to_string()))
    }

    /// A UUID, which stays one of its version.
    fn identifier(&mut self, text: &str) -> Option<String> {
        let is_uuid = text.len() == UUID_CHARS
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| match DASHES.contains(&at) {
                    true => byte == b'-',
                    false => byte.is_ascii_hexdigit(),
                });
        if !is_uuid {
            return None;
        }
        let name = text.to_lowercase();
        let bytes: [u8; 16] = code(&self.key, &[&[OF_IDENTIFIERS], name.as_bytes()]);
        let mut digits = u128::from_be_bytes(bytes);
        // Version 7, as identifiers of Runs have, and the variant of the RFC.
        digits = digits & !(0xf << 76) | 0x7 << 76;
        digits = digits & !(0b11 << 62) | 0b10 << 62;
        self.taken.names.insert(name);
        let mut other = format!("{digits:032x}");
        for at in DASHES {
            other.insert(at, '-');
        }
        Some(other)
    }

    /// A URL: of it the scheme and the port stay.
    fn url(&mut self, text: &str) -> Option<String> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = match self.words.has(scheme) {
            true => scheme.to_owned(),
            false => self.pseudonym(scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, file) = rest.split_at(end);
        let authority = match authority.rsplit_once('@') {
            Some((user, host)) => format!("{}@{}", self.pseudonym(user), self.name(host)),
            None => self.name(authority),
        };
        let file = match file {
            "" | "/" => file.to_owned(),
            file => format!("/{}", self.pseudonym(file)),
        };
        Some(format!("{scheme}://{authority}{file}"))
    }

    /// Another autonomous system in the place of one: a number that is assigned to no network.
    pub(crate) fn system(&mut self, number: Option<u64>) -> u32 {
        let number = number.unwrap_or_default();
        let other = u32::from_be_bytes(code(&self.key, &[&[OF_SYSTEMS], &number.to_be_bytes()]));
        self.taken.names.insert(format!("as{number}"));
        let (first, last) = (*PRIVATE_SYSTEMS.start(), *PRIVATE_SYSTEMS.end());
        first + other % (last - first + 1)
    }
}
