//! Which hop to probe with which size, how often, and when it is enough. Time comes from the network,
//! which is a trait, so all of this runs in virtual time.
//!
//! `first_look` finds out who answers on the path, up to what size, and how long a full packet takes;
//! `sampling` probes until the lines are known.

mod first_look;
mod known;
mod sampling;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::AtomicBool;

use plumb_model::results::capacity::CapacityEnd;

use crate::path::{HopNetwork, Nowhere};
pub use first_look::answers;
pub use known::{HopFound, HopsPlan};
use known::{Known, nanoseconds};

#[derive(Debug, Clone, PartialEq)]
pub struct HopsFound {
    /// Every hop, from the first.
    pub hops: Vec<HopFound>,
    /// Whether the last is the far end.
    pub reached: bool,
    /// Set where a router, or this host, reports that the target cannot be reached; then hops are empty.
    pub nowhere: Option<Nowhere>,
    pub ended: CapacityEnd,
    pub sent: u64,
    /// Bytes of IP packets sent.
    pub sent_bytes: u64,
}

/// Probes hops until their lines are known, `stop` is set, or time or bytes are spent. `show` is called with the number
/// of lines known and the number of all lines. When it is stopped, it returns what it has learnt by then.
///
/// # Errors
/// Errors of the local kernel. Where no hop answers, hops are empty.
pub fn hops(
    network: &mut impl HopNetwork,
    plan: &HopsPlan,
    stop: &AtomicBool,
    show: &mut dyn FnMut(usize, usize),
) -> io::Result<HopsFound> {
    let end_ns = network.now_ns().saturating_add(nanoseconds(plan.time));
    let mut known = Known::default();
    let looked = first_look::first_look(network, plan, stop, &mut known);
    let ended = match looked {
        Ok(()) if known.nowhere.is_some() => CapacityEnd::NotBegun,
        Ok(()) => sampling::sample(network, plan, end_ns, stop, &mut known, show)?,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => CapacityEnd::Stopped,
        Err(error) => return Err(error),
    };
    known.work_out();
    Ok(HopsFound {
        reached: known.reached,
        nowhere: known.nowhere,
        ended,
        sent: known.sent,
        sent_bytes: known.sent_bytes,
        hops: known.hops.into_iter().map(|hop| hop.found).collect(),
    })
}
