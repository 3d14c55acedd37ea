//! `--capture` of the verbs that load the path: the packets that passed meanwhile, in a file.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plumb_capture::Filter;
use plumb_measure::announcement;
use plumb_measure::capture::{self, Files, Wanted};

use super::live::why_not;

/// As many bytes of a packet hold the headers of Ethernet with two tags, IPv6, and TCP with all options: the load itself is
/// of no interest.
const HEADERS_BYTES: u32 = 160;

/// The interface of what this host sends to itself.
const LOOPBACK: &str = "lo";

/// A capture beside a test.
pub(crate) struct Beside {
    capture: capture::Beside,
    path: PathBuf,
}

impl Beside {
    /// Begins to capture what this host and a far end send each other, and ICMP, which routers between them send.
    pub(crate) fn begin(path: &Path, far_end: IpAddr) -> anyhow::Result<Self> {
        let interface = announcement::interface(far_end).unwrap_or_else(|| LOOPBACK.to_owned());
        let filter = Filter::parse(&format!("host {far_end} or icmp or icmp6"))?;
        let wanted = Wanted {
            interface: &interface,
            filter: Some(filter),
            snaplen: HEADERS_BYTES,
            promiscuous: false,
            length: None,
            files: Some(Files::new(path, None)),
        };
        let capture = capture::Beside::begin(wanted).map_err(|error| why_not(&interface, error))?;
        Ok(Self {
            capture,
            path: path.to_owned(),
        })
    }

    /// Ends the capture; what there is to say of it in the Run.
    pub(crate) fn finish(self) -> String {
        let path = self.path.display();
        match self.capture.finish() {
            Ok(kept) => format!(
                "{path} has {} packets that passed between here and the far end, and ICMP; {} were not taken in time. Read them: \
                 plumb capture {path}",
                kept.packets, kept.dropped
            ),
            Err(why) => format!("{path} has not all packets: {why}"),
        }
    }
}
