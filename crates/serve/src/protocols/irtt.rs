//! irtt: the sockets around [`Server`], which decides.

use std::io;
use std::time::Duration;

use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{DatagramSocket, Received};
use plumb_wire::irtt::{Arrived, Key, Limits, PORT, Server};

use crate::datagrams::{Answers, Sockets};
use crate::gate::Gate;
use crate::protocol::{Entry, Listening, Protocol};

/// The shortest time between two packets of a session: a tenth of what irtt's own server has by default.
const INTERVAL: Duration = Duration::from_millis(1);

/// The most bytes of a packet: those that fit into one of Ethernet's, with the headers of IPv4 and UDP.
const LENGTH_BYTES: usize = 1472;

pub(crate) const ENTRY: Entry = Entry {
    name: "irtt",
    about: "irtt client THIS-HOST",
    port: PORT,
    bind: |binding| {
        Ok(Box::new(Irtt {
            key: binding.settings.irtt_key.clone(),
            sockets: Sockets::bind(binding)?,
        }))
    },
};

#[derive(Debug)]
struct Irtt {
    key: Option<Key>,
    sockets: Sockets,
}

impl Protocol for Irtt {
    fn listening(&self) -> Vec<Listening> {
        self.sockets.listening()
    }

    fn run(self: Box<Self>, gate: &Gate) -> io::Result<()> {
        let Self { key, sockets } = *self;
        let limits = Limits {
            longest: gate.longest(),
            interval: INTERVAL,
            length: LENGTH_BYTES,
        };
        sockets.serve("irtt", gate, |_| Echoing {
            server: Server::new(key.clone(), limits),
            has_key: key.is_some(),
            gate,
        })
    }
}

/// The server of one port.
struct Echoing<'a> {
    server: Server,
    has_key: bool,
    gate: &'a Gate,
}

impl Answers for Echoing<'_> {
    fn answer(&mut self, socket: &DatagramSocket, received: &Received, bytes: &[u8]) {
        // A key of its own says more than an address.
        if !self.has_key && !self.gate.answers(received.from.ip()) {
            return;
        }
        let (wall, monotonic) = (realtime_ns(), monotonic_ns());
        let came = received.kernel_ns.unwrap_or(wall);
        let arrived = Arrived {
            bytes,
            from: received.from,
            wall_ns: field(came),
            // When the kernel received it, by the other clock.
            monotonic_ns: field(monotonic.saturating_sub(wall.saturating_sub(came))),
        };
        let now = Duration::from_nanos(monotonic);
        let stamp = || (field(realtime_ns()), field(monotonic_ns()));
        let token = || getrandom::u64().ok();
        if let Some(reply) = self.server.answer(now, &arrived, token, stamp) {
            // What our own machine does not send is lost, as it would be on the way.
            let _ = socket.send_from(&reply.bytes, received.to, Some(reply.dscp), received.from);
        }
    }
}

/// Nanoseconds as the wire has them; the cast would matter in the year 2262.
fn field(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
