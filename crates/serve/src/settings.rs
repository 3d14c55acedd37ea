//! What protocols of others' clients are configured with, besides their ports.

use plumb_load::tls::Identity;
use plumb_wire::stamp::{Counting, Key};

/// Answers a second that the reflector gives by default: one sender may have half of it, and 10,000 a second are the most that
/// anybody measures with; 17 Mbit/s of the smallest.
const RATE_PPS: u32 = 25_000;

/// The settings of each protocol that has some.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub stamp: StampSettings,
    /// Key that clients of irtt must have; those without one are answered where there is none.
    pub irtt_key: Option<plumb_wire::irtt::Key>,
    pub web: WebSettings,
}

/// How HTTPS is served.
#[derive(Debug, Clone, Default)]
pub struct WebSettings {
    /// The certificate that is shown, and its key; one that signs itself, new at every start, where there is none.
    pub identity: Option<Identity>,
}

/// How the reflector answers.
#[derive(Debug, Clone)]
pub struct StampSettings {
    /// Key that senders must have; anybody is answered where there is none.
    pub key: Option<Key>,
    /// How answers are numbered.
    pub counting: Counting,
    /// Most answers a second, on each address.
    pub max_rate_pps: u32,
}

impl Default for StampSettings {
    fn default() -> Self {
        Self {
            key: None,
            counting: Counting::Stateful,
            max_rate_pps: RATE_PPS,
        }
    }
}
