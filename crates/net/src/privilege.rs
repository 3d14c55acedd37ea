//! How this program is let do more than its user may: capabilities(7).

use std::io::ErrorKind;
use std::path::Path;

use socket2::{Domain, Protocol, Socket, Type};

/// Lets every group open ping sockets (icmp(7)): the largest range that the kernel takes.
pub const ALLOW_PING_SOCKETS: &str = "sudo sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"";

/// What the kernel puts behind the path of a program whose file is no more (proc_pid_exe(5)).
const DELETED: &str = " (deleted)";

/// The command that lets this program's file open raw sockets for every user that runs it.
pub fn allow_raw_sockets() -> String {
    let program = std::env::current_exe();
    allow(program.as_deref().unwrap_or(Path::new("plumb")))
}

/// Whether this user may open any socket for ICMP echo, raw or ping, of IPv4 (`v4`) or IPv6. Obstacles other than
/// privileges do not matter here.
pub fn may_echo(v4: bool) -> bool {
    let (domain, protocol) = match v4 {
        true => (Domain::IPV4, Protocol::ICMPV4),
        false => (Domain::IPV6, Protocol::ICMPV6),
    };
    [Type::RAW, Type::DGRAM].into_iter().any(|kind| {
        let opened = Socket::new(domain, kind, Some(protocol));
        !opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    })
}

fn allow(program: &Path) -> String {
    let path = program.to_string_lossy();
    let path = path.strip_suffix(DELETED).unwrap_or(&path);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@".contains(c);
    let path = if path.chars().all(plain) {
        path.to_owned()
    } else {
        // As a shell reads it back (POSIX, 2.2.2).
        format!("'{}'", path.replace('\'', r"'\''"))
    };
    format!("sudo setcap cap_net_raw+ep {path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_can_be_pasted_into_a_shell() {
        for (path, line) in [
            (
                "/usr/bin/plumb",
                "sudo setcap cap_net_raw+ep /usr/bin/plumb",
            ),
            ("/a/plumb (deleted)", "sudo setcap cap_net_raw+ep /a/plumb"),
            (
                "/it's here/plumb",
                r"sudo setcap cap_net_raw+ep '/it'\''s here/plumb'",
            ),
        ] {
            assert_eq!(allow(Path::new(path)), line);
        }
        assert!(allow_raw_sockets().starts_with("sudo setcap cap_net_raw+ep /"));
    }
}
