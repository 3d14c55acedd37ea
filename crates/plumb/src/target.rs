//! Far ends: their names, addresses and responders.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use plumb_load::client::{Client, ClientError};
use plumb_net::process::on_interrupt;

/// How long a responder may take to answer: a lost SYN is sent again after 1 s and 3 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A far end as the user named it, and the address used for it.
pub(crate) struct Target {
    /// As typed.
    pub(crate) name: String,
    /// The first address that the name resolves to.
    pub(crate) address: IpAddr,
}

impl Target {
    /// Looks a name up; an address stands for itself.
    pub(crate) fn resolve(name: &str) -> anyhow::Result<Self> {
        let bare = name
            .strip_prefix('[')
            .and_then(|n| n.strip_suffix(']'))
            .unwrap_or(name);
        let address = match bare.parse() {
            Ok(address) => address,
            Err(_) => (bare, 0)
                .to_socket_addrs()
                .with_context(|| {
                    format!("cannot find '{name}': check the spelling, or give an address")
                })?
                .map(|a: SocketAddr| a.ip())
                .next()
                .with_context(|| format!("'{name}' has no address"))?,
        };
        Ok(Self {
            name: name.to_owned(),
            address,
        })
    }

    /// Connects to the responder there.
    pub(crate) fn connect(&self, port: u16) -> Result<Client, ClientError> {
        Client::connect(
            &self.name,
            SocketAddr::new(self.address, port),
            CONNECT_TIMEOUT,
        )
    }
}

/// The command as it was typed, for the Run.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// A flag that Ctrl-C sets; a second Ctrl-C ends the program at once.
pub(crate) fn interruptible() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    on_interrupt(Arc::clone(&flag)).context("cannot wait for signals")?;
    Ok(flag)
}
