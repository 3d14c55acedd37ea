//! What trying a TCP port found, each part apart in time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::vocabulary;

/// Whether a TCP port accepted connections, and what was said on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortResult {
    /// Address connected to.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// Connections tried.
    pub tried: u64,
    /// Connections established.
    pub connected: u64,
    /// Time from SYN to established; absent when none was.
    pub connect_s: Option<Distribution>,
    /// What the last failed attempt said.
    pub error: Option<String>,
    /// What the attempts together say of the port; absent in Runs of versions that did not tell.
    #[serde(default)]
    pub state: Option<PortState>,
    /// Time that looking the name up took; absent where an address was given.
    #[serde(default)]
    pub name_s: Option<f64>,
    /// What the resolver says that the name stands for, at the end of its aliases or with the search domain;
    /// absent where that is itself.
    #[serde(default)]
    pub canonical_name: Option<String>,
    /// The TLS handshakes, where the service speaks TLS.
    #[serde(default)]
    pub tls: Option<PortTls>,
    /// From the request, or where none was made from the connection, to the first byte.
    #[serde(default)]
    pub first_byte_s: Option<Distribution>,
    /// The status that HTTP answered.
    #[serde(default)]
    pub http_status: Option<u16>,
    /// What the service said by itself.
    #[serde(default)]
    pub banner: Option<String>,
    /// From the connection to its end by the service, where it ended it without a word.
    #[serde(default)]
    pub closed_s: Option<Distribution>,
    /// How long it was waited for in vain that the service says something by itself; absent where it did, where
    /// it ended the connection, and where it was asked for something.
    #[serde(default)]
    pub mute_s: Option<f64>,
    /// What the evidence says about where the connection ends: at an edge of a content network, behind a
    /// tunnel.
    #[serde(default)]
    pub hints: Vec<String>,
    /// How long a silent connection is kept, where that was tried.
    #[serde(default)]
    pub idle: Option<IdleResult>,
}

vocabulary! {
    /// What is known of a port.
    pub enum PortState {
        /// Connections are accepted.
        Open = "open",
        /// The host answers that nothing listens there (RST).
        Refused = "refused",
        /// Nothing comes back: a firewall drops the packets, or nobody is there.
        Filtered = "filtered",
        /// A router, a firewall or this host says that there is no way, or that it is forbidden.
        Unreachable = "unreachable",
    }
}

/// TLS on a port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortTls {
    /// The version agreed on.
    pub version: String,
    /// The cipher suite, by its IANA name.
    pub cipher_suite: String,
    /// Time of the handshakes, after TCP's own.
    pub handshake_s: Distribution,
    /// Names that the certificate is for. It was not verified.
    pub names: Vec<String>,
}

/// How long a connection may be silent and still be carried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleResult {
    /// The longest silence after which a byte still got through; absent where none did.
    pub kept_s: Option<f64>,
    /// The shortest silence after which none did: something on the way had forgotten the
    /// connection; absent where every one was kept.
    pub lost_s: Option<f64>,
    /// The shortest silence in which the server itself ended the connection.
    pub closed_s: Option<f64>,
    /// Silences tried.
    pub tried: u64,
    /// Who spoke first after each.
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
