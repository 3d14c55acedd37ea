//! Linux: CAKE, or where the kernel has none HTB with the queue in it, by tc(8).

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;

use super::rendering::{Lines, Rendering, kbit, kbit_without_ptm};

/// Length of the Ethernet header, which Linux counts as part of every packet on an Ethernet
/// device before a class adds its overhead (`qdisc_pkt_len`, `net/sched/sch_htb.c`).
const ETHERNET_HEADER_BYTES: i16 = 14;

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfAll(lines),
    source: None,
};

fn lines(actions: &[ShaperAction]) -> Vec<String> {
    let mut lines = vec![
        "# eth0: the router's interface to the modem.".to_owned(),
        "WAN=eth0".to_owned(),
    ];
    if actions
        .iter()
        .any(|action| action.direction == OneDirection::Down)
    {
        lines.extend([
            "# What is downloaded passes ifb0, which can have a queue.".to_owned(),
            "ip link add ifb0 type ifb".to_owned(),
            "ip link set ifb0 up".to_owned(),
            "tc qdisc replace dev $WAN handle ffff: ingress".to_owned(),
            "tc filter replace dev $WAN parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0".to_owned(),
        ]);
    }
    lines.push("# Where the kernel has CAKE, this is all:".to_owned());
    lines.extend(actions.iter().map(cake));
    lines.push("# Where it has not, instead:".to_owned());
    lines.extend(actions.iter().flat_map(htb));
    lines
}

/// The device on which packets of that direction leave.
fn device(action: &ShaperAction) -> &'static str {
    match action.direction {
        OneDirection::Up => "$WAN",
        OneDirection::Down => "ifb0",
    }
}

fn cake(action: &ShaperAction) -> String {
    let cells = match action.cells {
        Cells::None => "",
        Cells::Atm => " atm",
        Cells::Ptm => " ptm",
    };
    format!(
        "tc qdisc replace dev {} root cake bandwidth {}kbit overhead {} mpu {}{cells}",
        device(action),
        kbit(action),
        action.overhead_bytes,
        action.mpu_bytes
    )
}

fn htb(action: &ShaperAction) -> [String; 3] {
    let (device, rate) = (device(action), kbit_without_ptm(action));
    let overhead = action.overhead_bytes - ETHERNET_HEADER_BYTES;
    let layer = match action.cells {
        Cells::Atm => " linklayer atm",
        Cells::None | Cells::Ptm => "",
    };
    [
        format!("tc qdisc replace dev {device} root handle 1: htb default 1"),
        format!(
            "tc class replace dev {device} parent 1: classid 1:1 htb rate {rate}kbit ceil {rate}kbit overhead {overhead} mpu {}{layer}",
            action.mpu_bytes
        ),
        format!("tc qdisc replace dev {device} parent 1:1 {}", action.qdisc),
    ]
}
