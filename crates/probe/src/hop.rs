//! Who stands on the way: the router at which a packet's hop limit ends.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::{DatagramSocket, IcmpAccess, Notice};
use plumb_wire::icmp::{Echo, EchoHeader, Kind, Mark, Version};

use crate::ping::plan::{Plan, ProbeError};
use crate::ping::socket::{local, random_u32};

/// Packets sent before a hop counts as silent, and the time that each is waited for: routers may
/// answer late, but one that takes longer than this is of no use to measure with.
const TRIES: u16 = 3;
const WAIT: Duration = Duration::from_millis(400);

/// Larger than what is looked at.
const BUFFER_BYTES: usize = 2048;

/// Who answers a probe to `target` that lives for `hops` hops: a router on the path, or the target itself when it is no
/// further away; `None` without an answer within 1.2 s. With `u8::MAX` hops it shows whether the target answers echo.
///
/// # Errors
/// When there is no socket for ICMP.
pub fn answerer(target: IpAddr, hops: u8) -> Result<Option<IpAddr>, ProbeError> {
    let plan = Plan::new(
        plumb_model::protocol::Protocol::Icmp,
        target.to_string(),
        SocketAddr::new(target, 0),
    );
    let (mut socket, access) =
        DatagramSocket::icmp(plan.target).map_err(|source| ProbeError::Icmp {
            name: plan.name.clone(),
            source,
        })?;
    socket
        .set_hop_limit(hops)
        .map_err(local(&plan, "limiting how far its packets go"))?;
    let session = random_u32(&plan.far_end())?;
    let identifier = match access {
        IcmpAccess::Raw => (session >> 16) as u16,
        IcmpAccess::Ping { identifier } => identifier,
    };
    let version = if target.is_ipv4() {
        Version::V4
    } else {
        Version::V6
    };
    for sequence in 0..TRIES {
        let mark = Mark {
            session,
            sequence: sequence.into(),
        };
        let request = Echo {
            kind: Kind::Request,
            identifier,
            sequence,
            payload: &mark.payload(plan.sizes.of(0)),
        };
        // What our own machine does not send is not answered; the next may be.
        let _ = socket.send(&request.write(version));
        let until_ns = monotonic_ns() + WAIT.as_nanos() as u64;
        while monotonic_ns() < until_ns {
            if let Some(by) = look(&mut socket, version, session, identifier)
                .map_err(local(&plan, "receiving ICMP packets"))?
            {
                return Ok(Some(by));
            }
            socket
                .wait_until(until_ns)
                .map_err(local(&plan, "waiting for ICMP packets"))?;
        }
    }
    Ok(None)
}

/// The hops that have answered by now.
fn look(
    socket: &mut DatagramSocket,
    version: Version,
    session: u32,
    identifier: u16,
) -> std::io::Result<Option<IpAddr>> {
    while let Some(notice) = socket.take_notice()? {
        if let Notice::Expired(expired) = notice {
            let header = EchoHeader::parse(&expired.quoted);
            if header.code == Kind::Request.code(version) && header.identifier == identifier {
                return Ok(Some(expired.by));
            }
        }
    }
    let mut buffer = [0; BUFFER_BYTES];
    while let Some(received) = socket.recv(&mut buffer)? {
        let packet = buffer.get(..received.len).unwrap_or_default();
        let ours = Echo::parse(version, packet).is_some_and(|reply| {
            reply.kind == Kind::Reply
                && Mark::parse(reply.payload).is_some_and(|mark| mark.session == session)
        });
        if ours {
            return Ok(Some(received.from.ip()));
        }
    }
    Ok(None)
}
