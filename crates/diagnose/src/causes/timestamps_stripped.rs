//! Something on the path strips timestamps from TCP's handshakes.
//!
//! Round trips are then measured once a window, and a segment whose sequence number has wrapped passes for a new one
//! (RFC 7323, sections 4 and 5).

use plumb_model::finding::{Cause, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::options::TcpOption;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "a tunnel around that box, or another path, passes them",
    needs: &[Need::Upload, Need::BothHosts],
    examine: |case| OPTION.stripped(case),
    ..Entry::PLAIN
};

const OPTION: TcpOption = TcpOption {
    cause: Cause::TimestampsStripped,
    name: "timestamps",
    field: "timestamps",
    had: |tcp| tcp.timestamps,
    offered: |host| host.timestamps,
    // Windows has them off.
    is_usual: false,
    costs: |_| {
        let costs = "retransmission timeouts are less exact, and above some Gbit/s old segments may pass for new ones";
        (Severity::Info, costs.to_owned())
    },
};
