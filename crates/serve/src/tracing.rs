//! Tracing the path towards a client, that it may see the reverse path: only to the address from which it
//! speaks TCP with us, so often, and so many at once.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_net::egress::Outlet;
use plumb_probe::path::remote_trace::tell;
use plumb_probe::path::through::trace_what_gets_through;
use plumb_probe::path::trace::TracePlan;
use plumb_probe::path::{OpenError, ProtocolAndPort, Target, UDP_PORT};
use plumb_wire::native::control::trace::TraceRequest;
use plumb_wire::native::control::{Refusal, ServerMessage};
use plumb_wire::native::spec::TRACE_PROBE_TIMEOUT;

/// Whom a connection comes from, as an IPv4 address where it is one.
pub(crate) fn towards(socket: &TcpStream) -> std::io::Result<SocketAddr> {
    let mut peer = socket.peer_addr()?;
    if peer.ip().to_canonical().is_ipv4() {
        peer.set_ip(peer.ip().to_canonical());
    }
    Ok(peer)
}

/// Traces the path, and returns the message for the client: within
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
        // No probe that a host would take for an attempt to connect.
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
