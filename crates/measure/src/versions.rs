//! Round trips of both versions of IP to a name that has addresses of both.

use std::net::SocketAddr;
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_probe::Plan;

use crate::error::MeasureError;
use crate::ping::RoundTrips;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Echoes by each: a median, in half a second.
const ECHOES: u64 = 10;
const INTERVAL: Duration = Duration::from_millis(50);

/// Longer than any idle path, a satellite's among them.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Compares the two addresses of a name by ICMP.
pub struct Versions {
    /// The name as the user typed it.
    pub name: String,
    pub addresses: [SocketAddr; 2],
}

impl Step for Versions {
    fn name(&self) -> String {
        "IPv4 against IPv6".to_owned()
    }

    /// Lasts two seconds for each.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut found = Yield::default();
        let mut middles = Vec::new();
        for address in self.addresses {
            let mut plan = Plan::new(Protocol::Icmp, &self.name, address);
            plan.count = Some(ECHOES);
            plan.interval = INTERVAL;
            plan.timeout = TIMEOUT;
            let mut answers = RoundTrips { plan }.measure(session)?;
            answers.shortfall = None;
            let pings = answers.measured.iter().filter_map(|m| m.outcome.ping());
            middles.extend(pings.map(|ping| (address.ip(), ping.rtt_s)));
            found.measured.append(&mut answers.measured);
        }
        let answers = |rtt: &Option<_>| rtt.is_some();
        for (address, rtt) in &middles {
            if !answers(rtt) && middles.iter().any(|(_, rtt)| answers(rtt)) {
                found.note(format!(
                    "{} answers at its other address, and not at {address}.",
                    self.name
                ));
            }
        }
        Ok(found)
    }
}
