//! Tracing the path towards a client, that it may see the way back: only to the address from which it
//! speaks TCP with us, so often, and so many at once.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plumb_model::protocol::Protocol;
use plumb_net::egress::Outlet;
use plumb_probe::path::remote_trace::tell;
use plumb_probe::path::through::trace_what_gets_through;
use plumb_probe::path::trace::TracePlan;
use plumb_probe::path::{OpenError, ProtocolAndPort, Target, UDP_PORT};
use plumb_wire::native::control::trace::TraceRequest;
use plumb_wire::native::control::{Refusal, ServerMessage};
use plumb_wire::native::spec::{
    MAX_TRACES, TRACE_BURST, TRACE_EVERY, TRACE_PROBE_TIMEOUT, TRACE_TIME,
};

/// Which traces may begin. Pure: the time is an argument.
#[derive(Debug)]
pub(crate) struct Budget {
    under_way: HashSet<IpAddr>,
    /// Traces that may begin at once, and when that was so.
    left: u32,
    at: Option<Instant>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            under_way: HashSet::new(),
            left: TRACE_BURST,
            at: None,
        }
    }
}

impl Budget {
    /// Whether a trace towards that address may begin now; it is then under way.
    pub(crate) fn begin(&mut self, peer: IpAddr, now: Instant) -> Result<(), (Refusal, String)> {
        let busy = |message: &str| Err((Refusal::Busy, message.to_owned()));
        self.refill(now);
        if self.under_way.contains(&peer) {
            busy("a trace towards this address is under way: wait until it ends")
        } else if self.under_way.len() >= MAX_TRACES {
            let after = TRACE_TIME.as_secs();
            busy(&format!(
                "it traces {MAX_TRACES} paths, as many as it may at once: try again in {after} s"
            ))
        } else if self.left == 0 {
            let after = TRACE_EVERY.as_secs();
            busy(&format!(
                "it begins no more traces than one in {after} s: try again in {after} s"
            ))
        } else {
            self.left -= 1;
            self.under_way.insert(peer);
            Ok(())
        }
    }

    pub(crate) fn end(&mut self, peer: IpAddr) {
        self.under_way.remove(&peer);
    }

    fn refill(&mut self, now: Instant) {
        let since = *self.at.get_or_insert(now);
        let passed = now.saturating_duration_since(since);
        let more = u32::try_from(passed.as_nanos() / TRACE_EVERY.as_nanos()).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(more).min(TRACE_BURST);
        self.at = Some(since + TRACE_EVERY * more.min(u32::from(u16::MAX)));
        if self.left == TRACE_BURST {
            // Nothing is saved up while there is nothing to want.
            self.at = Some(now);
        }
    }
}

/// Whom a connection comes from, as an IPv4 address where it is one.
pub(crate) fn towards(socket: &TcpStream) -> std::io::Result<SocketAddr> {
    let mut peer = socket.peer_addr()?;
    if peer.ip().to_canonical().is_ipv4() {
        peer.set_ip(peer.ip().to_canonical());
    }
    Ok(peer)
}

/// Traces the path, and gives what the client is to be told: within
/// [`TRACE_TIME`](plumb_wire::native::spec::TRACE_TIME), or [`TRACE_PROBE_TIMEOUT`] after `stop` is set.
pub(crate) fn trace(
    towards: SocketAddr,
    request: &TraceRequest,
    stop: &AtomicBool,
) -> ServerMessage {
    let icmp = ProtocolAndPort::Icmp;
    let udp = ProtocolAndPort::Udp { port: UDP_PORT };
    let protocols = match request.protocol {
        Some(Protocol::Icmp) => vec![icmp],
        Some(Protocol::Udp) => vec![udp],
        // Nothing that a host would take for somebody who connects to it.
        _ => vec![icmp, udp],
    };
    let plan = TracePlan {
        last_hop: request.max_hops,
        cycles: Some(request.cycles.into()),
        timeout: TRACE_PROBE_TIMEOUT,
        inspect: false,
        interval: Duration::from_millis(20),
        ..TracePlan::new(towards.ip())
    };
    let target = Target {
        name: towards.ip().to_string(),
        address: towards,
        outlet: Outlet::default(),
    };
    let refused = |reason, message| ServerMessage::TraceRefused {
        id: request.id,
        reason,
        message,
    };
    match trace_what_gets_through(&target, &protocols, &plan, stop, &mut |_| ()) {
        Ok(Some(through)) => ServerMessage::Traced(Box::new(tell(request, &through))),
        Ok(None) => refused(Refusal::Failed, "it was stopped".to_owned()),
        Err(error @ (OpenError::Icmp { .. } | OpenError::TcpNeedsRaw { .. })) => refused(
            Refusal::NotPermitted,
            format!("on the responder's machine: {error}"),
        ),
        Err(error) => refused(
            Refusal::Failed,
            format!("on the responder's machine: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_trace_an_address_and_few_in_all() {
        let (mut budget, now) = (Budget::default(), Instant::now());
        for last in 0..MAX_TRACES as u8 {
            assert!(budget.begin(address(last), now).is_ok());
            assert_eq!(
                budget.begin(address(last), now).unwrap_err().0,
                Refusal::Busy
            );
        }
        assert_eq!(budget.begin(address(99), now).unwrap_err().0, Refusal::Busy);
        budget.end(address(0));
        assert!(budget.begin(address(99), now).is_ok());
    }

    #[test]
    fn traces_begin_no_faster_than_they_may() {
        let (mut budget, start) = (Budget::default(), Instant::now());
        let mut begun = 0;
        for tick in 0..1000 {
            let now = start + tick * TRACE_EVERY / 100;
            if budget.begin(address(1), now).is_ok() {
                begun += 1;
                budget.end(address(1));
            }
        }
        // Those at once, and one for each of the ten periods less the last moment of it.
        assert_eq!(begun, TRACE_BURST + 9);
        let later = start + 1000 * TRACE_EVERY;
        let at_once = (0..100).filter(|_| {
            let allowed = budget.begin(address(1), later).is_ok();
            budget.end(address(1));
            allowed
        });
        assert_eq!(at_once.count(), TRACE_BURST as usize);
    }
}
