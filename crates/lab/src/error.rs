//! What can go wrong with a laboratory.

use std::io;

use plumb_net::netlink::NetlinkError;
use plumb_net::sysctl::SysctlError;

use crate::scenario::ScenarioError;

/// A laboratory that could not be built, run or steered.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No right to make namespaces.
    #[error("the lab may not make network namespaces ({0}): run it as root (sudo plumb lab …)")]
    Privilege(io::Error),
    /// No right to make TUN devices.
    #[error("the lab cannot make TUN devices ({0}): it needs /dev/net/tun (modprobe tun) and root")]
    Tun(io::Error),
    /// The kernel refused part of the network.
    #[error("the lab {0}")]
    Netlink(#[from] NetlinkError),
    /// The kernel refused a setting.
    #[error("the lab {0}")]
    Sysctl(#[from] SysctlError),
    /// A service did not start.
    #[error("the service '{command}' on {node} {problem}")]
    Service {
        /// Its command line.
        command: String,
        /// Where it was to run.
        node: String,
        /// What happened.
        problem: String,
    },
    /// What was asked of a running laboratory cannot be done.
    #[error("{0}")]
    Control(String),
    /// Something else in the operating system.
    #[error("the lab failed: {0}")]
    Io(#[from] io::Error),
}
