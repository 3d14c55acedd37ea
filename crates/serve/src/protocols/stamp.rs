//! The STAMP reflector: the sockets around [`Reflector`], which decides. It answers any sender of
//! STAMP or TWAMP Light.

use std::io;
use std::time::Duration;

use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{DatagramSocket, Received};
use plumb_wire::stamp::{Arrived, PORT, Reflector};

use crate::clock::Clock;
use crate::datagrams::{Answers, Sockets};
use crate::gate::Gate;
use crate::protocol::{Entry, Listening, Protocol};
use crate::settings::StampSettings;

pub(crate) const ENTRY: Entry = Entry {
    name: "stamp",
    about: "STAMP and TWAMP Light senders (RFC 8762)",
    port: PORT,
    bind: |binding| {
        Ok(Box::new(Stamp {
            settings: binding.settings.stamp.clone(),
            sockets: Sockets::bind(binding)?,
        }))
    },
};

#[derive(Debug)]
struct Stamp {
    settings: StampSettings,
    sockets: Sockets,
}

impl Protocol for Stamp {
    fn listening(&self) -> Vec<Listening> {
        self.sockets.listening()
    }

    fn run(self: Box<Self>, gate: &Gate) -> io::Result<()> {
        let Self { settings, sockets } = *self;
        sockets.serve("stamp", gate, |port| Reflecting {
            reflector: Reflector::new(
                port,
                settings.key.clone(),
                settings.counting,
                settings.max_rate_pps,
            ),
            clock: Clock::at(monotonic_ns()),
            has_key: settings.key.is_some(),
            gate,
        })
    }
}

/// The reflector of one port.
struct Reflecting<'a> {
    reflector: Reflector,
    clock: Clock,
    has_key: bool,
    gate: &'a Gate,
}

impl Answers for Reflecting<'_> {
    fn answer(&mut self, socket: &DatagramSocket, received: &Received, bytes: &[u8]) {
        let clock = self.clock.state(monotonic_ns());
        // A key of its own says more than an address.
        if !self.has_key && !self.gate.answers(received.from.ip()) {
            return;
        }
        let arrived = Arrived {
            bytes,
            from: received.from,
            ns: clock_field(received.kernel_ns.unwrap_or_else(realtime_ns)),
            dscp: received.dscp,
            ecn: received.ecn,
            hops: received.hop_limit,
        };
        let now = Duration::from_nanos(monotonic_ns());
        let Some(mut reflected) = self.reflector.reflect(now, clock, &arrived) else {
            return;
        };
        let departs = clock_field(realtime_ns());
        let bytes = self.reflector.depart(&mut reflected, departs);
        // What our own machine does not send is lost, as it would be on the way.
        if socket
            .send_from(&bytes, received.to, reflected.dscp, received.from)
            .is_ok()
        {
            self.reflector
                .departed(&reflected, clock_field(realtime_ns()));
        }
    }
}

/// Nanoseconds as the wire has them; the cast would matter in the year 2262.
fn clock_field(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
