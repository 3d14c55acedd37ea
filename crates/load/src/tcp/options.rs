//! The options of a stream on its socket, and what the kernel made of them.

use std::io;
use std::net::TcpStream;

use plumb_net::sysctl;
use plumb_net::tcp::{self, Negotiated, TcpOptions};
use plumb_wire::native::control::flow::TcpFlow;

/// What the socket of a stream is to be.
pub(crate) fn options(flow: &TcpFlow) -> TcpOptions {
    TcpOptions {
        cc: Some(flow.congestion_control().to_owned()),
        window_bytes: flow.window_bytes,
        mss_bytes: flow.mss_bytes,
        pacing_bytes_per_s: flow.pacing_bps.map(|bps| bps / 8),
        dscp: flow.dscp,
        no_delay: flow.no_delay,
        fast_open: flow.fast_open,
        mptcp: flow.mptcp,
        ..TcpOptions::default()
    }
}

/// Sets on a connected socket what the stream asks for; returns what this end did not get.
pub(super) fn apply(socket: &TcpStream, flow: &TcpFlow) -> Vec<String> {
    let refused = options(flow).set(&socket);
    let became = tcp::negotiated(&socket).unwrap_or_default();
    let refused = refused
        .iter()
        .map(|refused| format!("the kernel refused {} ({})", refused.option, refused.error));
    refused.chain(small_buffers(flow, &became)).collect()
}

/// Buffers that are smaller than was asked for.
fn small_buffers(flow: &TcpFlow, became: &Negotiated) -> Vec<String> {
    let wanted = flow.window_bytes.unwrap_or(0);
    [
        ("send", became.send_buffer_bytes, "wmem_max"),
        ("receive", became.receive_buffer_bytes, "rmem_max"),
    ]
    .into_iter()
    .filter(|(_, granted, _)| *granted < wanted)
    .map(|(name, granted, limit)| {
        format!(
            "of a {name} buffer of {wanted} bytes the kernel granted {granted}: raise net.core.{limit}"
        )
    })
    .collect()
}

/// What the two ends were to agree on and did not, and what to set where.
pub(super) fn not_agreed(flow: &TcpFlow, became: &Negotiated) -> Vec<String> {
    let mut notes = Vec::new();
    if flow.ecn && !became.ecn {
        notes.push(
            "ECN was not negotiated: a program cannot ask for it; set net.ipv4.tcp_ecn=1 on the client (the server's 2, the default, accepts it), or look for a box that strips it"
                .to_owned(),
        );
    }
    if flow.mptcp && !became.mptcp {
        notes.push(
            "Multipath TCP fell back to TCP: both kernels need it (net.mptcp.enabled=1), and boxes on the path must pass its options"
                .to_owned(),
        );
    }
    if flow.fast_open && !became.fast_open {
        notes.push(
            "Fast Open was not used: set net.ipv4.tcp_fastopen=3 on the server (the client needs 1, the default), or look for a box that strips it"
                .to_owned(),
        );
    }
    notes
}

/// Why the sender of a stream does not run the congestion control that it asks for, if so.
pub(super) fn congestion_control(socket: &TcpStream, flow: &TcpFlow) -> Option<String> {
    let wanted = flow.congestion_control();
    let error = tcp::set_congestion_control(&socket, wanted).err()?;
    let runs = tcp::congestion_control(&socket).unwrap_or_default();
    let available = sysctl::read("net.ipv4.tcp_available_congestion_control")
        .unwrap_or_else(|_| "the kernel did not say which".to_owned());
    (runs != wanted).then(|| refused(wanted, &runs, &error, &available))
}

/// That the kernel refused the congestion control `cc` and ran `got`, why, and what to do.
fn refused(cc: &str, got: &str, error: &io::Error, available: &str) -> String {
    let (why, advice) = match error.kind() {
        // ENOENT: no such congestion control is built in or loaded.
        io::ErrorKind::NotFound => (
            format!("this kernel does not have the congestion control '{cc}'"),
            format!(
                "load its module (modprobe tcp_{cc}) or choose one of those available: {available}"
            ),
        ),
        // EPERM: it is there, and only privileged processes may use it.
        io::ErrorKind::PermissionDenied => (
            format!("the congestion control '{cc}' may not be used without privilege"),
            "allow it with net.ipv4.tcp_allowed_congestion_control".to_owned(),
        ),
        _ => (
            format!("the kernel refused the congestion control '{cc}' ({error})"),
            format!("choose one of those available: {available}"),
        ),
    };
    format!("{why}, and '{got}' ran: queues that '{cc}' would fill may not show; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_that_is_absent_is_told_from_one_that_is_not_allowed() {
        let note = |errno| {
            refused(
                "bbr",
                "cubic",
                &io::Error::from_raw_os_error(errno),
                "reno cubic",
            )
        };
        let absent = note(2); // ENOENT
        assert!(
            absent.contains("does not have") && absent.contains("available: reno cubic"),
            "{absent}"
        );
        assert!(
            !absent.contains("tcp_allowed_congestion_control"),
            "{absent}"
        );
        let forbidden = note(1); // EPERM
        assert!(
            forbidden.contains("may not be used")
                && forbidden.contains("net.ipv4.tcp_allowed_congestion_control"),
            "{forbidden}"
        );
    }

    #[test]
    fn what_was_asked_for_and_not_had_is_said() {
        let flow = TcpFlow {
            window_bytes: Some(1_000_000),
            ecn: true,
            mptcp: true,
            ..TcpFlow::default()
        };
        let had = Negotiated {
            ecn: true,
            mptcp: true,
            send_buffer_bytes: 1_000_000,
            receive_buffer_bytes: 1_000_000,
            ..Negotiated::default()
        };
        let all = |flow: &TcpFlow, became: &Negotiated| {
            [small_buffers(flow, became), not_agreed(flow, became)].concat()
        };
        assert_eq!(all(&flow, &had), Vec::<String>::new());
        assert_eq!(
            all(&TcpFlow::default(), &Negotiated::default()),
            Vec::<String>::new()
        );
        let notes = all(
            &flow,
            &Negotiated {
                receive_buffer_bytes: 1_000_000,
                send_buffer_bytes: 212_992,
                ..Negotiated::default()
            },
        );
        let has = |words: &[&str]| {
            notes
                .iter()
                .any(|note| words.iter().all(|word| note.contains(word)))
        };
        assert!(notes.len() == 3 && has(&["send buffer", "212992", "net.core.wmem_max"]));
        assert!(has(&["net.ipv4.tcp_ecn=1"]) && has(&["net.mptcp.enabled"]));
    }
}
