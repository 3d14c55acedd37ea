//! HTTP and HTTPS on one port: networkQuality's objects, downloads and uploads for curl and browsers, NDT7's WebSockets, a
//! page that measures from a browser, one of the responder's state, and its metrics.
//!
//! A thread accepts for each address, and one serves each connection until it is over.

mod activity;
mod body;
mod connection;
mod documents;
mod echo;
mod loads;
mod ndt7;
mod origin;
mod page;
mod routes;
mod state;
mod visits;
mod websocket;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

use plumb_load::tls::Identity;
use plumb_wire::web::PORT;

use crate::error::ServeError;
use crate::gate::Gate;
use crate::ports::listen;
use crate::protocol::{Entry, Listening, Protocol, Transport};
use crate::settings::Judge;
use crate::shared::STOP_INTERVAL;
use origin::Names;
use routes::Site;

pub(crate) const ENTRY: Entry = Entry {
    name: "web",
    about: "browsers and curl, NDT7, networkQuality: http(s)://THIS-HOST:4043/",
    port: PORT,
    bind: |binding| {
        let identity = match &binding.settings.web.identity {
            Some(given) => given.clone(),
            None => Identity::generate().map_err(ServeError::Certificate)?,
        };
        let listeners = binding.addresses();
        let listeners = listeners.map(|address| listen(address, binding.inherited));
        Ok(Box::new(Web {
            listeners: listeners.collect::<Result<_, _>>()?,
            identity: identity.speaking(&[b"h2", b"http/1.1"]),
            judge: binding.settings.web.judge.clone(),
            names: Names::new(
                &binding.settings.web.host_names,
                &plumb_net::names::host_name(),
            ),
        }))
    },
};

/// How long connections have to end by themselves after the gate is closed: they look every [`STOP_INTERVAL`].
const FAREWELL: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct Web {
    listeners: Vec<(SocketAddr, TcpListener)>,
    identity: Identity,
    judge: Option<Judge>,
    names: Names,
}

impl Protocol for Web {
    fn listening(&self) -> Vec<Listening> {
        let at = |(address, _): &(SocketAddr, TcpListener)| Listening {
            transport: Transport::Tcp,
            address: *address,
        };
        self.listeners.iter().map(at).collect()
    }

    fn run(self: Box<Self>, gate: &Gate) -> io::Result<()> {
        let Self {
            listeners,
            identity,
            judge,
            names,
        } = *self;
        let site = Site::new(gate.clone(), judge, names)?;
        scope(|scope| {
            for (_, listener) in listeners {
                let (site, identity) = (Arc::clone(&site), identity.clone());
                let accepting = Builder::new().name("plumb-web".to_owned());
                accepting
                    .spawn_scoped(scope, move || accept(&listener, &site, &identity))
                    .inspect_err(|_| gate.close())?;
            }
            Ok(())
        })
    }
}

/// Accepts connections until the gate is closed, which it sees within [`STOP_INTERVAL`].
fn accept(listener: &TcpListener, site: &Arc<Site>, identity: &Identity) {
    while !site.gate.is_closed() {
        let (socket, peer) = match plumb_net::tcp::accept(listener, STOP_INTERVAL) {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            // No descriptors left, or a connection that was reset while it waited.
            Err(_) => {
                sleep(STOP_INTERVAL);
                continue;
            }
        };
        let (site, identity) = (Arc::clone(site), identity.clone());
        let thread = Builder::new().name("plumb-web-c".to_owned());
        // Without a thread the connection is closed. A failed connection concerns no other.
        let _ = thread.spawn(move || connection::serve(socket, peer, &site, &identity));
    }
    sleep(FAREWELL);
}
