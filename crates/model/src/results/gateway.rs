//! What the gateway reports of its line, where the user let it be asked (UPnP IGD).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the gateway reports of its line. Its series are `down_bytes` and `up_bytes`, what the line brought and took since
/// the first reading by the gateway's counters, and `own_down_bytes` and `own_up_bytes`, what this host's interface towards
/// the gateway received and sent, whatever program it was for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayResult {
    /// IP address of the gateway in this network.
    pub address: String,
    /// Maker and model as the gateway reports them. Null where it reports none.
    pub model: Option<String>,
    /// IP address of the gateway on its line. Null where it reports none.
    pub external_address: Option<String>,
    /// Kind of the line: `DSL`, `Cable`, `Ethernet` or `POTS`. Null where the gateway reports another or none.
    pub access: Option<String>,
    /// Whether the line is connected. Null where the gateway does not report it.
    pub connected: Option<bool>,
    /// The most that the line brings by its physical layer, in bit/s. Null where the gateway does not report it.
    pub down_bps: Option<f64>,
    /// The most that the line takes by its physical layer, in bit/s. Null where the gateway does not report it.
    pub up_bps: Option<f64>,
    /// How often the counters were read.
    pub readings: u64,
    /// How often they could not be read.
    pub failed: u64,
    /// How often a counter was smaller than before without having wrapped at 32 bits, as after a restart. What it counted
    /// across such a reading is unknown.
    pub restarts: u64,
}
