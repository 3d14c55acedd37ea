//! The address of a mailbox, in the form that every server takes (RFC 5321, section 4.1.2, without quoted local parts).

use std::fmt;
use std::str::FromStr;

/// The longest in bytes: a path of 256 with its angle brackets (RFC 5321, section 4.5.3.1.3).
const MOST_BYTES: usize = 254;

/// What ends an address or begins something else (RFC 5322, section 3.2.3, `specials`), but for the dot and `@`.
const SPECIALS: &str = "()<>[]:;\\,\"";

/// A mailbox such as `noc@example.net`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(String);

impl Address {
    /// What is behind the `@`.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |part: &str| {
            let allowed = |c: char| c.is_ascii_graphic() && c != '@' && !SPECIALS.contains(c);
            !part.is_empty() && part.chars().all(allowed)
        };
        match text.split_once('@') {
            Some((local, domain)) if plain(local) && plain(domain) && text.len() <= MOST_BYTES => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(format!(
                "'{text}' is no address of mail: write it as noc@example.net"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_two_parts_and_ends_no_line() {
        let address: Address = "a.b+c@mail.example.net".parse().unwrap();
        assert_eq!(address.domain(), "mail.example.net");
        assert!("root@localhost".parse::<Address>().is_ok());
        let long = format!("{}@example.net", "a".repeat(250));
        for wrong in [
            "",
            "root",
            "@example.net",
            "a@",
            "a@b@c",
            "a b@c",
            "a@b\r\nRCPT TO:<c@d>",
            "<a@b>",
            "A <a@b>",
            "ä@b",
            &long,
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
