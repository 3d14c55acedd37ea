//! Tracing by the protocol that gets through: firewalls let different things pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::access::{Access, OpenError, Opened, open};
use super::target::{ProtocolAndPort, Target};
use super::trace::{self, TraceLog, TracePlan};

/// A trace, and how it was made.
#[derive(Debug)]
pub struct Through {
    /// What its probes were made of.
    pub protocol: ProtocolAndPort,
    /// What they were sent with.
    pub access: Access,
    pub log: TraceLog,
}

/// Traces by each protocol in turn until the target answers; what led furthest counts where it answers
/// none. `None` when it was stopped before anything was tried. Protocols that this process may not use
/// are left out while there are others.
///
/// # Errors
/// When none may be used, or there is no way to the target.
pub fn trace_what_gets_through(
    target: &Target,
    protocols: &[ProtocolAndPort],
    plan: &TracePlan,
    stop: &AtomicBool,
    look: &mut dyn FnMut(&TraceLog),
) -> Result<Option<Through>, OpenError> {
    let mut best: Option<Through> = None;
    let mut refused: Option<OpenError> = None;
    for protocol in protocols {
        let mut network = match open(target, *protocol) {
            Ok(network) => network,
            Err(error @ (OpenError::Icmp { .. } | OpenError::TcpNeedsRaw { .. })) => {
                refused = refused.or(Some(error));
                continue;
            }
            Err(error) => return Err(error),
        };
        let access = network.access();
        let last = protocols.last() == Some(protocol);
        // An endless trace does not switch to the next protocol by itself: one cycle shows whether a protocol gets
        // through.
        let endless_try = protocols.len() > 1 && plan.cycles.is_none();
        if endless_try && !last && !gets_through(&mut network, plan, stop) {
            continue;
        }
        let log = trace::run(&mut network, plan_for(plan, *protocol), stop, look);
        let (reached, furthest) = log.reach();
        let further = best
            .as_ref()
            .is_none_or(|best| best.log.reach().1 < furthest);
        let enough = reached || plan.cycles.is_none();
        if further || enough {
            best = Some(Through {
                protocol: *protocol,
                access,
                log,
            });
        }
        if enough || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    match (best, refused) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
    }
}

fn gets_through(network: &mut Opened, plan: &TracePlan, stop: &AtomicBool) -> bool {
    let once = TracePlan {
        cycles: Some(1),
        inspect: false,
        ..plan.clone()
    };
    trace::run(network, once, stop, &mut |_| {}).reach().0
}

/// The target needs a round trip to forget a connection that was reset.
fn plan_for(plan: &TracePlan, protocol: ProtocolAndPort) -> TracePlan {
    let fast = plan.interval < Duration::from_secs(1);
    TracePlan {
        flow_per_cycle: fast && matches!(protocol, ProtocolAndPort::Tcp { .. }),
        ..plan.clone()
    }
}
