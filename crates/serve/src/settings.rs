//! What protocols of others' clients are configured with, besides their ports.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use plumb_load::tls::Identity;
use plumb_load::web::visited::Seen;
use plumb_wire::stamp::{Counting, Key};
use plumb_wire::web::visit::Visit;

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
    /// Who judges the visits of browsers; the page cannot test without.
    pub judge: Option<Judge>,
    /// Names by which browsers reach it, besides addresses, names of the local network and this machine's.
    pub host_names: Vec<String>,
}

/// Makes of a visit, and of what this host saw of it, what the page shows: JSON with the Run and its report.
#[derive(Clone)]
pub struct Judge(Arc<Judging>);

type Judging = dyn Fn(IpAddr, &Visit, &Seen) -> Vec<u8> + Send + Sync;

impl Judge {
    pub fn new(judge: impl Fn(IpAddr, &Visit, &Seen) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }

    pub(crate) fn judge(&self, visitor: IpAddr, visit: &Visit, seen: &Seen) -> Vec<u8> {
        (self.0)(visitor, visit, seen)
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
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
