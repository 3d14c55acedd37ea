//! A few packets before the first probe, by which it is seen that the far end is there.

use std::io;

use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::Unreachable;

use crate::ping::plan::{Plan, ProbeError};
use crate::ping::socket::local;
use crate::ping::strategy::Event;

/// Asks once for each of these waits, with a number from 0 on, and listens for so long, until `listen` says that the
/// far end answered.
///
/// # Errors
/// Without an answer, the error that the last argument makes of the reason and of the number of requests that had no
/// answer at all; and an error when this host cannot ask.
pub(super) fn greet<N>(
    network: &mut N,
    plan: &Plan,
    waits_ns: &[u64],
    ask: impl Fn(&mut N, u32) -> io::Result<()>,
    listen: impl Fn(&mut N, u32, u64) -> io::Result<(bool, Option<Event>)>,
    nobody: impl Fn(String, u64) -> ProbeError,
) -> Result<(), ProbeError> {
    for (number, wait_ns) in (0..).zip(waits_ns) {
        ask(network, number).map_err(local(plan, "sending a UDP packet"))?;
        let until_ns = monotonic_ns() + wait_ns;
        while monotonic_ns() < until_ns {
            let (answered, event) =
                listen(network, number, until_ns).map_err(local(plan, "receiving UDP packets"))?;
            if answered {
                return Ok(());
            }
            match event {
                Some(Event::Failed(failure)) if failure.why == Unreachable::Port => {
                    return Err(nobody(
                        "nothing listens on that port (ICMP port unreachable)".to_owned(),
                        0,
                    ));
                }
                Some(Event::Failed(failure)) => return Err(nobody(failure.sentence(), 0)),
                Some(Event::Answered(_) | Event::Departed { .. } | Event::Told(_)) | None => {}
            }
        }
    }
    let (tries, waited_ns) = (waits_ns.len(), waits_ns.iter().sum::<u64>());
    let waited_s = waited_ns as f64 / 1e9;
    let why = format!("no answer to {tries} requests in {waited_s} s");
    Err(nobody(why, tries as u64))
}
