//! A plan as commands for a shell, which do what is done over netlink.

use plumb_model::framing::Cells;
use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::queue::filter::{Filter, IpVersion};
use plumb_net::netlink::queue::options::{Cake, Discipline, FqCodel, Hosts, HtbClass, Tins};

use super::objects::{Object, On, REDIRECT_PRIORITY};
use super::plan::Plan;
use super::reading::{Reading, Root};

/// Commands that do a plan.
pub fn commands(plan: &Plan, device: &str, reading: &Reading) -> Vec<String> {
    let ifb = plan.ifb.as_deref().unwrap_or_default();
    let name = |on: &On| match on {
        On::Line => device,
        On::Ifb => ifb,
    };
    let replaces = matches!(reading.root, Root::Theirs { .. });
    let mut lines = Vec::new();
    for object in &plan.objects {
        match object {
            Object::Ifb => {
                lines.push(format!("ip link add {ifb} type ifb"));
                lines.push(format!("ip link set {ifb} up"));
            }
            Object::Discipline {
                on,
                parent,
                handle,
                what,
            } => {
                let verb = match replaces && *on == On::Line && *parent == Handle::ROOT {
                    true => "replace",
                    false => "add",
                };
                let at = place(*parent);
                let settings = discipline(what);
                lines.push(match what {
                    Discipline::Ingress => {
                        format!("tc qdisc add dev {} handle ffff: ingress", name(on))
                    }
                    _ => format!(
                        "tc qdisc {verb} dev {} {at} handle {handle} {settings}",
                        name(on)
                    ),
                });
            }
            Object::Class {
                on,
                parent,
                handle,
                what,
            } => lines.push(format!(
                "tc class add dev {} parent {parent} classid {handle} {}",
                name(on),
                class(what)
            )),
            Object::Hosts {
                on,
                parent,
                first,
                count,
                each,
                disciplines,
                queue,
            } => {
                let dev = name(on);
                let major = first.0 >> 16;
                lines.push(format!(
                    "for n in $(seq 0 {}); do tc class add dev {dev} parent {parent} classid {major:x}:$(printf %x $((0x{:x} + n))) {}; tc qdisc add dev {dev} parent {major:x}:$(printf %x $((0x{:x} + n))) handle $(printf %x $((0x{:x} + n))): {}; done",
                    count - 1,
                    first.minor(),
                    class(each),
                    first.minor(),
                    disciplines.0 >> 16,
                    fq_codel(queue),
                ));
            }
            Object::Filter {
                on,
                parent,
                priority,
                what,
            } => lines.push(format!(
                "tc filter add dev {} parent {parent} prio {priority} {}",
                name(on),
                filter(what)
            )),
            Object::Redirect => lines.push(format!(
                "tc filter add dev {device} ingress prio {REDIRECT_PRIORITY} protocol all matchall action mirred egress redirect dev {ifb}"
            )),
        }
    }
    lines
}

/// Commands that undo it.
pub fn undo(plan: &Plan, device: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let makes = |parent: Handle, device: On| {
        plan.objects.iter().any(|object| {
            matches!(object, Object::Discipline { on, parent: at, .. } if *at == parent && *on == device)
        })
    };
    if let Some(ifb) = &plan.ifb {
        lines.push(match makes(Handle::INGRESS, On::Line) {
            true => format!("tc qdisc del dev {device} ingress"),
            false => format!("tc filter del dev {device} ingress prio {REDIRECT_PRIORITY}"),
        });
        lines.push(format!("ip link del {ifb}"));
    }
    if makes(Handle::ROOT, On::Line) {
        lines.push(format!("tc qdisc del dev {device} root"));
    }
    lines
}

fn place(parent: Handle) -> String {
    match parent {
        Handle::ROOT => "root".to_owned(),
        parent => format!("parent {parent}"),
    }
}

/// A rate in tc's words: whole bits a second.
fn bit(bps: u64) -> String {
    match bps % 1000 {
        0 => format!("{}kbit", bps / 1000),
        _ => format!("{bps}bit"),
    }
}

fn discipline(what: &Discipline) -> String {
    match what {
        Discipline::Cake(settings) => cake(settings),
        Discipline::Htb => "htb".to_owned(),
        Discipline::Tbf(tbf) => format!(
            "tbf rate {} burst {} limit {}",
            bit(tbf.rate_bps),
            tbf.burst_bytes,
            tbf.limit_bytes
        ),
        Discipline::FqCodel(settings) => fq_codel(settings),
        Discipline::Ingress => "ingress".to_owned(),
        Discipline::Recorded { kind, .. } => kind.clone(),
    }
}

/// CAKE's settings in the words of tc-cake(8).
fn cake(cake: &Cake) -> String {
    let flag = |on: bool, yes: &'static str, no: &'static str| if on { yes } else { no };
    let tins = match cake.tins {
        Tins::Besteffort => "besteffort",
        Tins::Diffserv3 => "diffserv3",
        Tins::Diffserv4 => "diffserv4",
    };
    let hosts = match cake.hosts {
        Hosts::Source => "dual-srchost",
        Hosts::Destination => "dual-dsthost",
    };
    let cells = match cake.framing.cells {
        Cells::None => "noatm",
        Cells::Atm => "atm",
        Cells::Ptm => "ptm",
    };
    [
        "cake bandwidth",
        &bit(cake.rate_bps),
        tins,
        hosts,
        flag(cake.nat, "nat", "nonat"),
        flag(cake.ingress, "ingress", "egress"),
        flag(cake.ack_filter, "ack-filter", "no-ack-filter"),
        flag(cake.split, "split-gso", "no-split-gso"),
        cells,
        &format!("overhead {}", cake.framing.overhead_bytes),
        &format!("mpu {}", cake.framing.mpu_bytes),
    ]
    .join(" ")
}

fn fq_codel(queue: &FqCodel) -> String {
    format!(
        "fq_codel target {}us interval {}us flows {} quantum {} memory_limit {} ecn",
        queue.target_us, queue.interval_us, queue.flows, queue.quantum_bytes, queue.memory_bytes
    )
}

fn class(class: &HtbClass) -> String {
    let mut text = format!(
        "htb rate {} ceil {} burst {}b cburst {}b quantum {} overhead {}",
        bit(class.rate_bps),
        bit(class.ceil_bps),
        class.burst_bytes,
        class.burst_bytes,
        class.quantum_bytes,
        class.overhead_bytes,
    );
    if class.mpu_bytes != 0 {
        text += &format!(" mpu {}", class.mpu_bytes);
    }
    if class.atm {
        text += " linklayer atm";
    }
    text
}

fn filter(what: &Filter) -> String {
    match what {
        Filter::Redirect { to } => {
            format!("protocol all matchall action mirred egress redirect dev {to}")
        }
        Filter::Hosts { by, first, classes } => format!(
            "protocol all handle {} flow map key {} divisor {classes} baseclass {first}",
            what.number().unwrap_or_default(),
            by.word()
        ),
        Filter::Marked {
            version,
            value,
            mask,
            class,
        } => match version {
            // The DSCP is the upper six bits of the second byte, and in IPv6 lies across the first two.
            IpVersion::V4 => format!(
                "protocol ip u32 match u8 {:#x} {:#x} at 1 flowid {class}",
                value << 2,
                mask << 2
            ),
            IpVersion::V6 => format!(
                "protocol ipv6 u32 match u16 {:#x} {:#x} at 0 flowid {class}",
                u16::from(*value) << 6,
                u16::from(*mask) << 6
            ),
        },
    }
}
