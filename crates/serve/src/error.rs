//! Why a responder cannot serve.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use plumb_load::tls::TlsError;

/// Why a responder cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A limit with which nothing could be served.
    #[error("cannot serve with {option} {value}: write {wanted}")]
    Limit {
        /// The option of `plumb serve` that sets it.
        option: &'static str,
        value: String,
        /// What it may be.
        wanted: String,
    },
    /// What the limits let in does not fit this process.
    #[error(
        "cannot serve {max_clients} clients: that takes up to {needed} open files, and this process may have {allowed}; \
         allow more (ulimit -n, or LimitNOFILE= of its systemd unit), or fewer clients (--max-clients)"
    )]
    Descriptors {
        max_clients: usize,
        needed: u64,
        allowed: u64,
    },
    /// The directory for temporary files cannot be used.
    #[error("cannot lend {}: {source}; check that it is a directory and may be written to", disk.display())]
    Disk {
        disk: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another program has the port.
    #[error(
        "cannot listen on {address}: another program uses the {protocol} port (is 'plumb serve' running already?); \
         stop it, or choose another port"
    )]
    InUse {
        address: SocketAddr,
        protocol: &'static str,
    },
    /// The address cannot be had for another reason.
    #[error(
        "cannot listen on {address}: {source}; check the address and the port (below 1024 needs privilege)"
    )]
    Listen {
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The machine gives no thread.
    #[error("cannot start a thread: {0}; look at the limit of processes (ulimit -u)")]
    Thread(io::Error),
    /// The machine gives no random numbers, without which sessions could be guessed.
    #[error("cannot get random numbers: {0}")]
    Random(getrandom::Error),
    /// No certificate could be made.
    #[error(transparent)]
    Certificate(TlsError),
    /// The echo over UDP failed while it ran.
    #[error("the UDP echo failed: {0}; start the responder again")]
    Echo(io::Error),
    /// A protocol failed while it was served.
    #[error(
        "serving {protocol} failed: {source}; start the responder again, or with --without {protocol}"
    )]
    Protocol {
        protocol: &'static str,
        /// What the system returned.
        source: io::Error,
    },
}
