//! What can go wrong with a laboratory.

use std::io;

use nix::errno::Errno;
use plumb_net::netlink::NetlinkError;
use plumb_net::pid_one::ForkError;
use plumb_net::sysctl::SysctlError;

use crate::scenario::ScenarioError;
use plumb_net::tc::TcError;

/// A laboratory that could not be built, run or steered.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No right to make namespaces.
    #[error("the lab may not make namespaces: {0}")]
    Privilege(#[from] ForkError),
    /// No TUN devices, or no right to make them.
    #[error("the lab cannot make TUN devices: {}", tun_obstacle(.0))]
    Tun(io::Error),
    /// The kernel refused part of the network.
    #[error("the lab {0}")]
    Netlink(#[from] NetlinkError),
    /// The kernel refused a setting.
    #[error("the lab {0}")]
    Sysctl(#[from] SysctlError),
    /// The kernel's queues could not be had.
    #[error("the lab cannot use the kernel's queues (--backend kernel): {0}")]
    Tc(#[from] TcError),
    /// A program of the scenario did not start, or ended.
    #[error("the {what} '{command}' on {node} {problem}")]
    Service {
        what: &'static str,
        command: String,
        /// Where it was to run.
        node: String,
        problem: String,
    },
    /// What was asked of a running laboratory cannot be done.
    #[error("{0}")]
    Control(String),
    /// A laboratory in virtual time could not be had, or nothing moved in it.
    #[error("{0}")]
    Virtual(String),
    /// What was seen of a running laboratory, or counted in it, could not be written down.
    #[error("{0}")]
    Output(io::Error),
    /// Something else in the operating system.
    #[error("the lab failed: {0}")]
    Io(#[from] io::Error),
}

impl LabError {
    /// The end that was asked for is not one of the link's.
    pub(crate) fn no_end(link: &str, node: &str, ends: &[&str]) -> Self {
        Self::Control(format!(
            "'{node}' is not at {link}, which joins {}",
            ends.join(", ")
        ))
    }
}

/// What stands between the laboratory and TUN devices, and what to do about it
/// (`Documentation/networking/tuntap.rst`: the mode of the device decides nothing but who may ask).
fn tun_obstacle(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => {
            "there is no /dev/net/tun: load its module (sudo modprobe tun), or add it to the container (--device /dev/net/tun)".to_owned()
        }
        Some(Errno::EACCES) => {
            "this user may not open /dev/net/tun: run it as root (sudo), or let everybody open it (sudo chmod 0666 /dev/net/tun, until the next boot); making devices stays a matter of privilege".to_owned()
        }
        Some(Errno::EPERM) => {
            "the system forbids /dev/net/tun, as a container does: run it as root (sudo), in a container with --cap-add NET_ADMIN --device /dev/net/tun".to_owned()
        }
        _ => format!("{error}: run it as root (sudo)"),
    }
}
