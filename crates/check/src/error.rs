//! Why nothing could be measured.

use plumb_load::client::ClientError;
use plumb_probe::ProbeError;

/// A measurement that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The responder could not be reached, refused, or went away.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Probes could not be sent.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Nothing came back.
    #[error(
        "nothing came back from {name}: it answers neither ICMP nor UDP probes; check the name and that it is up, or try plumb serve there"
    )]
    Silence {
        /// As the user typed it.
        name: String,
    },
    /// The user stopped it.
    #[error("stopped before anything could be said")]
    Cancelled,
    /// Something that should always work did not.
    #[error("{what}: {source}")]
    Local {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
