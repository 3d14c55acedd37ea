//! QUIC (RFC 9000): a connection that carries one stream of payload as fast as it can. Its pair of
//! addresses is announced like a UDP stream's; the client opens the connection when the phase runs.

use serde::{Deserialize, Serialize};

use super::super::refusal::Refusal;
use super::dscp::DSCP;

/// Congestion controls of the QUIC implementation.
pub const CONGESTION_CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuicFlow {
    /// Congestion control of the sender, one of [`CONGESTION_CONTROLS`]; CUBIC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// DSCP of both ends' packets, 0 to 63 (RFC 2474).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
}

impl QuicFlow {
    /// The congestion control that is asked for.
    pub fn congestion_control(&self) -> &str {
        self.cc.as_deref().unwrap_or("cubic")
    }

    pub(super) fn check(&self) -> Result<(), (Refusal, String)> {
        if !CONGESTION_CONTROLS.contains(&self.congestion_control()) {
            return Err((
                Refusal::Malformed,
                format!(
                    "QUIC has the congestion controls {}, and not the one that was asked for",
                    CONGESTION_CONTROLS.join(", ")
                ),
            ));
        }
        match self.dscp.map(u64::from) {
            Some(dscp) if !DSCP.contains(&dscp) => Err((
                Refusal::Malformed,
                format!("a DSCP is {} to {}, not {dscp}", DSCP.start(), DSCP.end()),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |cc: Option<&str>, dscp| {
            let cc = cc.map(str::to_owned);
            QuicFlow { cc, dscp }.check().is_err()
        };
        assert!(!refused(None, None) && !refused(Some("bbr"), Some(63)));
        assert!(refused(Some("vegas"), None) && refused(None, Some(64)));
    }
}
