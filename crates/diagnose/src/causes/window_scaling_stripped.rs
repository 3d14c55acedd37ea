//! Something on the path strips window scaling from TCP's handshakes.
//!
//! Without it a window is at most 65,535 bytes (RFC 7323, section 2), however large the buffers are.

use plumb_model::finding::{Cause, Finding, Severity};
use plumb_model::need::Need;
use plumb_model::units::{human_seconds, si};

use crate::captured;
use crate::entry::{Entry, Family};
use crate::evidence::Carried;
use crate::options::TcpOption;
use crate::signs::{Kind, Sign, WINDOW_RATIO};

/// The largest window without scaling (RFC 9293, section 3.1).
const WINDOW_BYTES: f64 = 65_535.0;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "a tunnel around that box, or another path, carries more over one connection",
    needs: &[Need::Upload, Need::BothHosts],
    resembles: &[(
        Cause::ReceiveBufferSmall,
        "there windows above 64 KiB can be announced, and the receiver announces less",
    )],
    examine: |case| {
        let mut found = OPTION.stripped(case);
        found.extend(captured::window(case, true));
        found
    },
    explains: |_: &Finding, sign: &Sign| sign.kind == Kind::Window,
    ..Entry::PLAIN
};

const OPTION: TcpOption = TcpOption {
    cause: Cause::WindowScalingStripped,
    name: "window scaling",
    field: "window_scaling",
    had: |tcp| tcp.window_scaling,
    offered: |host| host.window_scaling,
    is_usual: true,
    costs,
};

fn costs(carried: Carried<'_>) -> (Severity, String) {
    let tcp = &carried.result.tcp;
    let waits = tcp.limited.rwnd_ratio;
    let most = tcp.min_rtt_s.map_or_else(String::new, |rtt| {
        format!(
            ", which over {} is {}",
            human_seconds(rtt),
            si(WINDOW_BYTES * 8.0 / rtt, "bit/s")
        )
    });
    match waits >= WINDOW_RATIO && carried.shows_rate() {
        true => (
            Severity::Critical,
            format!(
                "a connection has at most 64 KiB in flight{most}, and {}loads wait for that {:.0} % of the time",
                carried.result.direction.name(),
                waits * 100.0
            ),
        ),
        false => (
            Severity::Warning,
            format!("a connection has at most 64 KiB in flight{most}"),
        ),
    }
}
