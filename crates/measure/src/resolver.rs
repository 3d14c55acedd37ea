//! The resolvers that this machine asks for names: their round trips.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_probe::Plan;

use crate::error::MeasureError;
use crate::ping::RoundTrips;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Where the resolvers stand (resolv.conf(5)).
const FILE: &str = "/etc/resolv.conf";

/// The library asks no more than these (resolv.conf(5), MAXNS).
const MOST: usize = 3;

/// The port of DNS (RFC 1035, section 4.2).
const PORT: u16 = 53;

/// Questions to each: a median, in a second.
const QUESTIONS: u64 = 5;
const INTERVAL: Duration = Duration::from_millis(200);

/// A resolver that takes longer is of no use: programs ask the next after 5 s.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Asks each resolver for the servers of the root, which every one knows.
pub struct Resolvers;

impl Step for Resolvers {
    fn name(&self) -> String {
        "the resolver".to_owned()
    }

    /// Lasts two seconds for each of three resolvers.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let mut found = Yield::default();
        let servers = match of_this_host() {
            Ok(servers) => servers,
            Err(error) => {
                found.note(format!("The resolver was not measured: {FILE}: {error}."));
                return Ok(found);
            }
        };
        for address in servers {
            let target = SocketAddr::new(address, PORT);
            let mut plan = Plan::new(Protocol::Dns, address.to_string(), target);
            plan.count = Some(QUESTIONS);
            plan.interval = INTERVAL;
            plan.timeout = TIMEOUT;
            match (RoundTrips { plan }).measure(session) {
                Ok(answers) => {
                    if answers.shortfall.is_some() {
                        found.note(format!("The resolver {address} answered no question."));
                    }
                    found.measured.extend(answers.measured);
                }
                Err(MeasureError::Cancelled) => return Err(MeasureError::Cancelled),
                Err(why) => found.note(format!("The resolver {address} was not measured: {why}.")),
            }
            if session.is_stopped() {
                break;
            }
        }
        Ok(found)
    }
}

/// The addresses of the resolvers that this machine asks, in its order.
///
/// # Errors
/// When the file that names them cannot be read.
pub fn of_this_host() -> std::io::Result<Vec<IpAddr>> {
    Ok(servers(&std::fs::read_to_string(FILE)?))
}

/// The addresses of the name servers in resolv.conf's text.
fn servers(text: &str) -> Vec<IpAddr> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words
            .next()
            .filter(|word| *word == "nameserver")
            .and(words.next())?;
        address.parse().ok()
    };
    text.lines().filter_map(of_line).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_servers_are_asked() {
        let text = "# by dhcp\nsearch home\nnameserver 192.168.1.1\nnameserver\n\
                    nameserver fe80::1%eth0\nnameserver 2001:db8::1 # x\nnameserver 9.9.9.9\nnameserver 1.1.1.1\n";
        let found: Vec<String> = servers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["192.168.1.1", "2001:db8::1", "9.9.9.9"]);
        assert_eq!(servers("\u{0}nameserver x\n"), Vec::<IpAddr>::new());
    }
}
