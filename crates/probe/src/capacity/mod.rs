//! What the lines of a path could carry: rate, latency and queueing of each line by how round trips
//! grow with size, and the rate of the narrowest place by how trains of packets spread out.
//!
//! [`mod@hops`] decides what to probe when; [`mod@fit`] is how round trips to one hop grow, [`mod@lines`] what lies
//! between two hops. [`mod@trains`] decides which trains to send and what they say together, [`mod@dispersion`] is how
//! one arrived; [`send_trains`] opens what they are sent by. The deciding code reads the time from the network, which
//! is a trait.

pub mod dispersion;
pub mod fit;
pub mod hops;
pub mod lines;
pub mod trains;

use std::sync::atomic::AtomicBool;

use plumb_model::protocol::Protocol;
use plumb_model::results::capacity::{TrainMethod, TrainResult};

use crate::path::Target;
use crate::ping::icmp::IcmpEcho;
use crate::ping::plan::{Plan, ProbeError, Sizes};
use crate::ping::socket::local;
use crate::ping::udp::UdpEcho;
use trains::TrainsPlan;

/// Length of the IP and UDP headers; the IP and ICMP headers of an echo are as long.
const fn headers_bytes(v4: bool) -> u32 {
    if v4 { 28 } else { 48 }
}

/// Sends trains to a far end by a method until its rate is known, `stop` is set, or time or bytes are spent. `show` is
/// called with the number of trains sent. `None` where no train came through.
///
/// # Errors
/// When the far end does not answer that method, or a local system call fails.
pub fn send_trains(
    target: &Target,
    method: TrainMethod,
    plan: &TrainsPlan,
    stop: &AtomicBool,
    show: &mut dyn FnMut(u32),
) -> Result<Option<TrainResult>, ProbeError> {
    let protocol = match method {
        TrainMethod::Native => Protocol::Udp,
        TrainMethod::Echo => Protocol::Icmp,
    };
    let mut probes = Plan::new(protocol, &target.name, target.address);
    probes.outlet = target.outlet.clone();
    let payload = plan
        .packet_bytes
        .saturating_sub(headers_bytes(target.address.is_ipv4()));
    probes.sizes = Sizes::One((payload as usize).max(probes.least_size_bytes()));
    probes.check()?;
    match method {
        TrainMethod::Native => {
            let mut network = UdpEcho::open(&probes)?.with_small_answers();
            trains::trains(&mut network, plan, method, stop, show)
        }
        TrainMethod::Echo => {
            let mut network = IcmpEcho::open(&probes)?;
            trains::trains(&mut network, plan, method, stop, show)
        }
    }
    .map_err(local(&probes, "sending a train of packets"))
}
