//! What trying a TCP port found, each part apart in time.

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::vocabulary;

/// An address that no host has: of TEST-NET-1, which is for documents alone and is routed nowhere (RFC 5737). A machine
/// that answers in its place is on the path.
pub const NOBODYS_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Whether a TCP port accepted connections, and what was said on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortResult {
    /// IP address that was connected to.
    pub address: String,
    /// TCP port that was connected to.
    pub port: u16,
    /// Connections that were tried.
    pub tried: u64,
    /// Connections that were established.
    pub connected: u64,
    /// Time from SYN to established, in seconds. Null where no connection was established.
    pub connect_s: Option<Distribution>,
    /// What the last failed attempt reported. Null where none failed.
    pub error: Option<String>,
    /// What the attempts together show of the port. Null in Runs of versions that did not report it.
    pub state: Option<PortState>,
    /// Time of the name look-up in seconds. Null where an address was given.
    pub name_s: Option<f64>,
    /// The name that the resolver returns at the end of the aliases or with the search domain. Null where that is the
    /// name itself.
    pub canonical_name: Option<String>,
    /// The TLS handshakes. Null where the service does not speak TLS.
    pub tls: Option<PortTls>,
    /// Time in seconds from the request, or where none was made from the connection, to the first byte. Null where no
    /// byte came.
    pub first_byte_s: Option<Distribution>,
    /// Status code that HTTP answered. Null where HTTP was not spoken.
    pub http_status: Option<u16>,
    /// Greeting that the service sent first. Null where it sent none.
    pub banner: Option<String>,
    /// Time in seconds from the connection to its end by the service. Null where the service did not end it without a
    /// word.
    pub closed_s: Option<Distribution>,
    /// How long plumb waited in vain for a greeting, in seconds. Null where one came, where the service ended the
    /// connection, and where it was asked for something.
    pub mute_s: Option<f64>,
    /// What the evidence says about where the connection ends: at an edge of a content network, behind a
    /// tunnel.
    #[serde(default)]
    pub hints: Vec<String>,
    /// How long a silent connection is kept. Null where that was not tried.
    pub idle: Option<IdleResult>,
}

vocabulary! {
    /// What is known of a port.
    pub enum PortState {
        /// Connections to it are accepted.
        Open = "open",
        /// The host answers that nothing listens there (RST).
        Refused = "refused",
        /// Nothing comes back: a firewall drops the packets, or no host is there.
        Filtered = "filtered",
        /// A router, a firewall or this host says that there is no way, or that it is forbidden.
        Unreachable = "unreachable",
    }
}

/// TLS on a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortTls {
    /// TLS version that both ends agreed on.
    pub version: String,
    /// The cipher suite, by its IANA name.
    pub cipher_suite: String,
    /// Time of the TLS handshakes in seconds, after TCP's own.
    pub handshake_s: Distribution,
    /// Names that the certificate is for. It was not verified.
    pub names: Vec<String>,
}

/// How long a connection may be silent and still be carried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleResult {
    /// Longest silence in seconds after which a byte still got through. Null where none did.
    pub kept_s: Option<f64>,
    /// Shortest silence in seconds after which no byte got through: something on the path had forgotten the connection.
    /// Null where every one was kept.
    pub lost_s: Option<f64>,
    /// Shortest silence in seconds in which the server itself ended the connection. Null where it ended none.
    pub closed_s: Option<f64>,
    /// Silences that were tried.
    pub tried: u64,
    /// The end that sent first after each silence.
    #[serde(default)]
    pub first_word: FirstWord,
}

/// Who speaks first after a silence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FirstWord {
    /// This host: a NAT that gives it the same port again hides that it had forgotten the connection.
    #[default]
    ThisHost,
    /// The far end, which was asked to: what is forgotten does not get through.
    FarEnd,
}
