//! What a scenario may say of its network beyond nodes and links: shared segments, routes that
//! differ from the shortest, and multicast. `scenarios/README.md` shows each of them.

use std::net::IpAddr;
use std::time::Duration;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Several machines on one Ethernet, which costs no time and loses nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanSpec {
    /// Its name, which is also the name of each machine's interface to it.
    pub name: String,
    pub nodes: Vec<String>,
    /// The largest packet in bytes that each machine's interface to it takes; 1500 when absent.
    pub mtu: Option<u32>,
}

/// A route that is not the shortest, or not for ever.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    pub node: String,
    /// Where it leads: a node (all its addresses), a link or lan (every address on it), or
    /// `default`.
    pub to: String,
    /// The neighbours that lead there, each written `NODE`, or `NODE.LINK` where several links
    /// join the two.
    #[serde(deserialize_with = "one_or_more")]
    pub via: Vec<String>,
    /// How packets are shared among several neighbours; by flow when not given.
    pub balance: Option<Balance>,
    /// The laboratory's time at which it takes the place of what was there; from the start when
    /// not given.
    #[serde(default, deserialize_with = "time")]
    pub at: Option<Duration>,
}

/// How packets are shared among equal routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// All packets with the same addresses and ports take the same.
    Flow,
    /// Each packet takes the next.
    Packet,
}

/// A group, its sender and its receivers: routers between them pass its packets on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastSpec {
    pub group: IpAddr,
    pub from: String,
    pub to: Vec<String>,
}

/// A name, or a list of names.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    /// Reads the list itself, so that a mistake in an element is reported at its line.
    struct OneOrMore;
    impl<'de> Visitor<'de> for OneOrMore {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a neighbour, or a list of neighbours")
        }

        fn visit_str<E>(self, name: &str) -> Result<Vec<String>, E> {
            Ok(vec![name.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(names))
        }
    }
    deserializer.deserialize_any(OneOrMore)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    plumb_model::units::duration_text::deserialize(deserializer).map(Some)
}
