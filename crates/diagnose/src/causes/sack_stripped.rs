//! Something on the path strips selective acknowledgements from TCP's handshakes.
//!
//! A sender then learns of one loss a round trip (RFC 2018, section 1).

use plumb_model::finding::{Cause, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::evidence::Carried;
use crate::loss::LOSS_WARNING;
use crate::options::TcpOption;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "a tunnel around that box, or another path, recovers from several losses in one round trip",
    needs: &[Need::Upload, Need::BothHosts],
    examine: |case| OPTION.stripped(case),
    ..Entry::PLAIN
};

const OPTION: TcpOption = TcpOption {
    cause: Cause::SackStripped,
    name: "selective acknowledgements",
    field: "sack",
    had: |tcp| tcp.sack,
    offered: |host| host.sack,
    is_usual: true,
    costs,
};

fn costs(carried: Carried<'_>) -> (Severity, String) {
    let segments = carried.segments().filter(|_| carried.shows_rate());
    let again = segments.map_or(0.0, |segments| segments.ratio());
    let costs = "where several segments of a window are lost, each takes a round trip of its own";
    match again >= LOSS_WARNING {
        true => (Severity::Warning, costs.to_owned()),
        false => (Severity::Info, costs.to_owned()),
    }
}
