//! Linux: HTB with the queue in it, or CAKE, by tc(8).

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;

use super::rendering::{Rendering, kbit, kbit_without_ptm};

/// Length of the Ethernet header, which Linux counts as part of every packet on an Ethernet
/// device before a class adds its overhead (`qdisc_pkt_len`, `net/sched/sch_htb.c`).
const ETHERNET_HEADER_BYTES: i16 = 14;

pub(super) const RENDERING: Rendering = Rendering {
    lines,
    source: None,
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let ShaperAction {
        direction,
        overhead_bytes,
        mpu_bytes,
        cells,
        qdisc,
        ..
    } = action;
    let rate = format!("{}kbit", kbit(action));
    let htb_rate = format!("{}kbit", kbit_without_ptm(action));
    let overhead = overhead_bytes - ETHERNET_HEADER_BYTES;
    let (layer, cells) = match cells {
        Cells::None => ("", ""),
        Cells::Atm => (" linklayer atm", " atm"),
        Cells::Ptm => ("", " ptm"),
    };
    let mut lines = vec!["WAN=eth0   # the router's interface to the modem".to_owned()];
    let device = match direction {
        OneDirection::Up => "$WAN",
        OneDirection::Down => {
            lines.extend([
                "ip link add ifb0 type ifb && ip link set ifb0 up".to_owned(),
                "tc qdisc replace dev $WAN handle ffff: ingress".to_owned(),
                "tc filter replace dev $WAN parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0".to_owned(),
            ]);
            "ifb0"
        }
    };
    lines.extend([
        format!("tc qdisc replace dev {device} root handle 1: htb default 1"),
        format!("tc class replace dev {device} parent 1: classid 1:1 htb rate {htb_rate} ceil {htb_rate} overhead {overhead} mpu {mpu_bytes}{layer}"),
        format!("tc qdisc replace dev {device} parent 1:1 {qdisc}"),
        format!("# or, where the kernel has CAKE: tc qdisc replace dev {device} root cake bandwidth {rate} overhead {overhead_bytes} mpu {mpu_bytes}{cells}"),
    ]);
    lines
}
