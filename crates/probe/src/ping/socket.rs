//! What opening the network of a protocol has in common with the others.

use std::io;
use std::net::{IpAddr, SocketAddr};

use plumb_net::datagram::DatagramSocket;
use plumb_net::egress::Outlet;
use plumb_net::path_mtu::known_bytes;

use crate::ping::plan::{Plan, ProbeError};

/// Random numbers that distinguish this probing from others.
pub(crate) fn random_u32(far_end: &str) -> Result<u32, ProbeError> {
    getrandom::u32().map_err(|error| ProbeError::Local {
        far_end: far_end.to_owned(),
        what: "drawing a random number",
        source: std::io::Error::other(error.to_string()),
    })
}

/// What the plan asks of the packets that a socket sends.
pub(crate) fn prepare(socket: &DatagramSocket, plan: &Plan) -> Result<(), ProbeError> {
    if let Some(dscp) = plan.dscp {
        socket
            .set_dscp(dscp)
            .map_err(local(plan, "marking its packets with a DSCP"))?;
    }
    if let Some(hops) = plan.hop_limit {
        socket
            .set_hop_limit(hops)
            .map_err(local(plan, "limiting how far its packets go"))?;
    }
    if let Some(mode) = plan.path_mtu {
        socket
            .set_path_mtu_discovery(mode)
            .map_err(local(plan, "saying whether its packets may be fragmented"))?;
    }
    Ok(())
}

/// A local failure, said with the name that the user typed.
pub(crate) fn local(plan: &Plan, what: &'static str) -> impl FnOnce(io::Error) -> ProbeError {
    move |source| ProbeError::local(plan, what, source)
}

/// Why the kernel did not take a packet to `to`: where it is too large, with the size that is not.
pub(crate) fn not_sent(error: io::Error, to: IpAddr, outlet: &Outlet) -> io::Error {
    const EMSGSIZE: i32 = 90;
    if error.raw_os_error() != Some(EMSGSIZE) {
        return error;
    }
    match known_bytes(SocketAddr::new(to, 0), outlet) {
        Ok(bytes) => io::Error::other(format!(
            "it is larger than the {bytes} bytes, headers included, that this host knows the path to carry whole"
        )),
        Err(_) => error,
    }
}
