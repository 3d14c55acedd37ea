//! Whether packets may be fragmented.

use std::io;

use plumb_model::vocabulary;
use socket2::Socket;

use super::set_option;

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
        let (level, option, value) = if v4 {
            let value = match self {
                Self::Do => libc::IP_PMTUDISC_DO,
                Self::Want => libc::IP_PMTUDISC_WANT,
                Self::Dont => libc::IP_PMTUDISC_DONT,
                Self::Probe => libc::IP_PMTUDISC_PROBE,
            };
            (libc::SOL_IP, libc::IP_MTU_DISCOVER, value)
        } else {
            let value = match self {
                Self::Do => libc::IPV6_PMTUDISC_DO,
                Self::Want => libc::IPV6_PMTUDISC_WANT,
                Self::Dont => libc::IPV6_PMTUDISC_DONT,
                Self::Probe => libc::IPV6_PMTUDISC_PROBE,
            };
            (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, value)
        };
        set_option(socket, level, option, &value.to_ne_bytes())
    }
}
