//! Memory that TCP may hold: of one connection after a plan, and of all connections together.

use plumb_model::formula::buffer_for;
use plumb_model::tune::{PlannedChange, Role, Worth};
use plumb_model::units::si;

use super::snapshot::Snapshot;
use crate::knobs::Knob;
use crate::knobs::situation::Situation;

/// The variable that bounds all of TCP.
pub(super) const TCP_MEM: &str = "net.ipv4.tcp_mem";

/// A page of x86 and of most others: taken for one of a host of which it is not known.
const PAGE_BYTES: u64 = 4096;

/// The share of memory at which the kernel puts the third number at boot (`tcp_init_mem`).
const BOOT_SHARE: f64 = 0.094;

/// The share of memory from which on kernel memory, which cannot be swapped, leaves programs too little.
const MOST_SHARE: f64 = 0.25;

/// Both buffers of one connection; ceilings above them hold nothing of their own.
pub(super) fn of_one_connection(changes: &[PlannedChange]) -> Option<u64> {
    changes
        .iter()
        .filter(|change| !change.knob.ends_with("sockbuf") && !change.knob.ends_with("max_buf"))
        .filter_map(|change| change.memory_bytes)
        .reduce(u64::saturating_add)
}

/// What all of TCP may hold, in bytes.
pub(super) fn of_all(host: &Snapshot) -> Option<u64> {
    total(host.value(TCP_MEM)?, host)
}

/// A note where the buffers of a plan do not fit into what all of TCP may hold.
pub(super) fn too_little_for(plan_bytes: Option<u64>, host: &Snapshot) -> Option<String> {
    let (one, all) = (plan_bytes?, of_all(host)?);
    (one > all).then(|| {
        format!(
            "{TCP_MEM} lets all of TCP hold {}, less than these buffers of one connection ({}): they cannot grow so far until it is raised.",
            si(all as f64, "B"),
            si(one as f64, "B")
        )
    })
}

fn total(value: &str, host: &Snapshot) -> Option<u64> {
    let pages: u64 = value.split_whitespace().nth(2)?.parse().ok()?;
    Some(pages.saturating_mul(host.page_bytes.unwrap_or(PAGE_BYTES)))
}

/// What such a bound is worth, which guides copy from machine to machine.
pub(super) fn judge(
    knob: &Knob,
    value: &str,
    host: &Snapshot,
    situation: &Situation,
) -> Option<(Worth, String)> {
    let then = total(value, host)?;
    let pages = match host.page_bytes {
        Some(_) => "its numbers are pages",
        None => "its numbers are pages, taken to have 4 KiB",
    };
    let now = of_all(host);
    let words = format!("all of TCP may then hold {}", si(then as f64, "B"));
    let needed = buffer_for(situation.bdp_bytes());
    if then < needed {
        return Some((
            Worth::Harmful,
            format!(
                "{words} ({pages}), and one connection of this path needs a buffer of {}",
                si(needed as f64, "B")
            ),
        ));
    }
    if let Some(now) = now.filter(|now| then < *now && situation.role == Role::Server) {
        return Some((
            Worth::Harmful,
            format!(
                "{words} instead of {}: connections of a busy server fail sooner",
                si(now as f64, "B")
            ),
        ));
    }
    // The kernel computed the present value from the memory there is.
    let memory = situation
        .memory_bytes
        .map(|bytes| bytes as f64)
        .or(now.map(|now| now as f64 / BOOT_SHARE));
    Some(match memory {
        None => (
            Worth::Unknown,
            format!("{words}, and what memory the host has is not known"),
        ),
        Some(memory) if then as f64 > MOST_SHARE * memory => (
            Worth::Harmful,
            format!(
                "{words} of this host's {}: programs run out of memory before TCP holds back",
                si(memory, "B")
            ),
        ),
        Some(_) => (
            Worth::NoEffect,
            format!("{words}. Matters: {} Does not: {}", knob.when, knob.not),
        ),
    })
}
