//! Whether packets may be fragmented.

use std::io;

use plumb_model::vocabulary;
use socket2::Socket;

use crate::socket_options::{MTU_DISCOVERY, set_of};

vocabulary! {
    /// What becomes of packets larger than the path carries whole (ip(7), IP_MTU_DISCOVER).
    pub enum PathMtuDiscovery {
        /// Never fragment, and refuse to send more than the path MTU known here.
        Do = "do",
        /// Fragment here what is larger than the path MTU known.
        Want = "want",
        /// Routers may fragment the packets.
        Dont = "dont",
        /// Never fragment, and send whatever the path MTU known.
        Probe = "probe",
    }
}

impl PathMtuDiscovery {
    pub(crate) fn apply(self, socket: &Socket, v4: bool) -> io::Result<()> {
        let value = match self {
            Self::Do => libc::IP_PMTUDISC_DO,
            Self::Want => libc::IP_PMTUDISC_WANT,
            Self::Dont => libc::IP_PMTUDISC_DONT,
            Self::Probe => libc::IP_PMTUDISC_PROBE,
        };
        set_of(socket, v4, MTU_DISCOVERY, value)
    }
}
