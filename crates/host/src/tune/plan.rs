//! The planner: what should change on a host for a path, and what should not. Pure: hosts and paths are
//! arguments.

use plumb_model::finding::{Action, Actor, InterfaceAction, InterfaceChange, SysctlAction};
use plumb_model::results::host::{Duplex, FAST_BPS, Interface};
use plumb_model::tune::{HostPlan, Kind, Left, Os, PlannedChange, Refused, Role, Scope};
use plumb_model::units::si;

use super::at_boot;
use super::judge::Judge;
use super::memory;
use super::snapshot::Snapshot;
use crate::knobs::formula::{Advice, Formula, Present, advise, interface};
use crate::knobs::situation::Situation;
use crate::knobs::{Catalogue, Knob};

/// A part that was to be left out is none of the plan's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan has no change of '{knob}' to leave out; it has: {there}")]
pub struct NoSuchChange {
    knob: String,
    there: String,
}

/// Plans for one host. `settings` is advice to be judged on the way.
pub fn plan_host(
    catalogue: &Catalogue,
    host: &Snapshot,
    situation: &Situation,
    on: Actor,
    settings: &[(String, String)],
) -> HostPlan {
    let mut plan = HostPlan {
        on,
        os: host.os,
        role: situation.role,
        facts_from: host.from.clone(),
        changes: Vec::new(),
        refused: Vec::new(),
        left: Vec::new(),
        judged: Vec::new(),
        memory_bytes: None,
        notes: Vec::new(),
    };
    let situation = &Situation {
        memory_bytes: situation.memory_bytes.or(host.memory_bytes),
        mtu_bytes: situation
            .mtu_bytes
            .or(host.interface.as_ref().map(|i| i.mtu_bytes))
            .filter(|mtu| *mtu != 0),
        release: situation.release.clone().or(host.release.clone()),
        ..situation.clone()
    };
    let chosen = chosen_congestion_control(catalogue, host, situation);
    let advised = |knob: &Knob, value: Option<&str>| {
        let present = present(knob, host, chosen.as_deref());
        let value = value.or(present.value);
        advise(knob, situation, Present { value, ..present })
    };
    for knob in in_order(catalogue, host.os) {
        let value = current(knob, host);
        match advised(knob, None) {
            Advice::Leave { why } => {
                let looked_at = knob.value != Formula::Leave && value.is_some();
                if looked_at {
                    plan.left.push(Left {
                        knob: knob.name.clone(),
                        value,
                        why,
                    });
                }
            }
            Advice::Set {
                value: to,
                why,
                effect,
                memory_bytes,
            } => {
                if let Some(why) = forbidden(knob, host, value.as_deref()) {
                    plan.refused.push(Refused {
                        knob: knob.name.clone(),
                        to,
                        why,
                    });
                    continue;
                }
                plan.changes.push(PlannedChange {
                    action: action(knob, host, &to),
                    at_boot: None,
                    knob: knob.name.clone(),
                    kind: knob.kind,
                    from: value,
                    to,
                    scope: knob.scope,
                    why,
                    effect,
                    risk: knob.risk.clone(),
                    memory_bytes,
                    source: knob.source.clone(),
                });
            }
        }
    }
    follow(&mut plan, host, situation);
    plan.judged = Judge {
        catalogue,
        host,
        situation,
        advise: advised,
        forbidden: |knob: &Knob| forbidden(knob, host, current(knob, host).as_deref()),
    }
    .all(settings);
    plan
}

/// Leaves parts out of a plan that [`plan_host`] made for the same host and path: knobs as the plan names them, or
/// the last parts of their names.
///
/// # Errors
/// When one is not among the changes, so that a typing error changes nothing.
pub fn leave_out(
    plan: &mut HostPlan,
    knobs: &[String],
    host: &Snapshot,
    situation: &Situation,
) -> Result<(), NoSuchChange> {
    for knob in knobs {
        let named = |name: &str| name == knob || name.rsplit('.').next() == Some(knob.as_str());
        let asked = "as asked (--except)";
        let is_left = |left: &Left| named(&left.knob) && left.why == asked;
        if plan.left.iter().any(is_left) {
            continue;
        }
        let before = plan.changes.len();
        let taken = plan.changes.extract_if(.., |change| named(&change.knob));
        plan.left.extend(taken.map(|change| Left {
            knob: change.knob,
            value: change.from,
            why: asked.to_owned(),
        }));
        if plan.changes.len() == before {
            let there: Vec<_> = plan.changes.iter().map(|c| c.knob.as_str()).collect();
            return Err(NoSuchChange {
                knob: knob.clone(),
                there: if there.is_empty() {
                    "none".to_owned()
                } else {
                    there.join(", ")
                },
            });
        }
    }
    follow(plan, host, situation);
    Ok(())
}

/// What follows from the changes of a plan: the memory that they may take, what brings them back at boot, and what
/// else must be known.
fn follow(plan: &mut HostPlan, host: &Snapshot, situation: &Situation) {
    at_boot::say(&mut plan.changes, host.value(at_boot::DEFAULT_QUEUE));
    plan.memory_bytes = memory::of_one_connection(&plan.changes);
    plan.notes.clear();
    system_notes(host.os, situation, plan);
    plan.notes.extend(
        host.interface
            .as_ref()
            .and_then(|i| link_note(i, situation)),
    );
    plan.notes
        .extend(memory::too_little_for(plan.memory_bytes, host));
}

/// A note where the link that leads to the path is what holds it back, whatever is set.
fn link_note(interface: &Interface, situation: &Situation) -> Option<String> {
    // What is no card names a speed that means nothing.
    let link = interface
        .link
        .as_ref()
        .filter(|_| interface.kind.is_none())?;
    // No hardware of 1 Gbit/s or more works in half duplex: a driver that reports it is wrong.
    let half = link.duplex == Some(Duplex::Half) && link.speed_bps.is_none_or(|bps| bps < FAST_BPS);
    let slow = link.speed_bps.filter(|bps| *bps < situation.rate_bps);
    if !half && slow.is_none() {
        return None;
    }
    let (name, device) = match interface.name.as_str() {
        "" => ("The interface", "DEV"),
        name => (name, name),
    };
    let fixed = if link.autonegotiation == Some(false) {
        format!(", with negotiation switched off (ethtool -s {device} autoneg on)")
    } else {
        String::new()
    };
    let speed = link
        .speed_bps
        .map_or_else(|| "unknown speed".to_owned(), |bps| si(bps, "bit/s"));
    Some(format!(
        "{name} is a link of {speed}{}{fixed}. {}",
        if half { ", half duplex" } else { "" },
        if slow.is_some() {
            format!(
                "No more than that passes: {} cannot be reached by it.",
                si(situation.rate_bps, "bit/s")
            )
        } else {
            "It sends or receives, and loses packets where both ends begin at once.".to_owned()
        }
    ))
}

/// Interfaces first and ceilings before what they clip, so that undoing in reverse puts back the default
/// for interfaces before the interface that falls back to it.
fn in_order(catalogue: &Catalogue, os: Os) -> Vec<&Knob> {
    let mut knobs: Vec<_> = catalogue.of(os).collect();
    knobs.sort_by_key(|knob| match (knob.kind, knob.value) {
        (Kind::Interface, _) => 0,
        (_, Formula::SocketCeiling) => 1,
        _ => 2,
    });
    knobs
}

/// The congestion control that there will be.
fn chosen_congestion_control(
    catalogue: &Catalogue,
    host: &Snapshot,
    situation: &Situation,
) -> Option<String> {
    let name = "net.ipv4.tcp_congestion_control";
    let knob = catalogue.find(host.os, name)?;
    match advise(knob, situation, present(knob, host, None)) {
        Advice::Set { value, .. } if forbidden(knob, host, host.value(name)).is_none() => {
            Some(value)
        }
        _ => host.value(name).map(str::to_owned),
    }
}

fn present<'a>(knob: &Knob, host: &'a Snapshot, chosen: Option<&'a str>) -> Present<'a> {
    Present {
        value: match knob.value {
            Formula::FairQueueDevice => host.root_qdisc().map(|q| q.kind.as_str()),
            _ => host.value(&knob.name),
        },
        bbr: host.congestion_control("bbr"),
        cubic: host.congestion_control("cubic"),
        congestion_control: chosen,
        interface: interface::Present {
            interface: host.interface.as_ref(),
            qdiscs: &host.qdiscs,
        },
    }
}

fn current(knob: &Knob, host: &Snapshot) -> Option<String> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let present = present(knob, host, None);
    interface::value(knob, present.interface).or_else(|| present.value.map(words))
}

/// Why a change may not be made on this host, though it would help.
fn forbidden(knob: &Knob, host: &Snapshot, current: Option<&str>) -> Option<String> {
    if knob.scope == Scope::Machine && !host.whole_machine {
        return Some(
            "it belongs to the whole machine, and this is a network namespace of it (a container, or a node of a laboratory)"
                .to_owned(),
        );
    }
    let queue = matches!(knob.value, Formula::FairQueue | Formula::FairQueueDevice);
    if queue && let Some(why) = host.queue("fq").why_not("fq") {
        return Some(format!("{why}; BBR paces its packets without it"));
    }
    match knob.value {
        Formula::CongestionControl if !host.whole_machine => {
            let current = current?;
            let why = host.congestion_control(current).why_not(current)?;
            Some(format!("{current} could not be put back: {why}"))
        }
        Formula::FairQueueDevice => {
            let Some(interface) = &host.interface else {
                return Some(
                    "the interface that leads to the path is not known: tc qdisc replace dev DEV root fq"
                        .to_owned(),
                );
            };
            match host.root_qdisc() {
                Some(root) if root.handle != "0:" => Some(format!(
                    "another program or user chose {} for {}, which plumb could not put back",
                    root.kind, interface.name
                )),
                _ => None,
            }
        }
        _ => None,
    }
}

fn action(knob: &Knob, host: &Snapshot, to: &str) -> Option<Action> {
    match (host.os, knob.kind, knob.value) {
        (Os::Linux, Kind::Sysctl, _) => Some(Action::Sysctl(SysctlAction {
            key: knob.name.clone(),
            value: to.to_owned(),
        })),
        (Os::Linux, Kind::Interface, _) => host.interface.as_ref().and_then(|interface| {
            Some(Action::Interface(InterfaceAction {
                interface: interface.name.clone(),
                change: interface_change(knob, interface, to)?,
            }))
        }),
        _ => None,
    }
}

fn interface_change(knob: &Knob, interface: &Interface, to: &str) -> Option<InterfaceChange> {
    Some(match knob.value {
        Formula::FairQueueDevice => InterfaceChange::Qdisc(to.to_owned()),
        Formula::ReceiveRing => InterfaceChange::ReceiveRingPackets(to.parse().ok()?),
        Formula::QueueLength => InterfaceChange::TransmitQueuePackets(to.parse().ok()?),
        Formula::Offload => InterfaceChange::Offload {
            feature: knob.feature.clone()?,
            on: to == "on",
        },
        Formula::Coalescing => InterfaceChange::AdaptiveReceive(to == "on"),
        Formula::DriverQueue => InterfaceChange::DriverQueueMostBytes {
            queues: u32::try_from(interface.byte_limits.len()).ok()?,
            bytes: to.parse().ok()?,
        },
        _ => return None,
    })
}

fn system_notes(os: Os, situation: &Situation, plan: &mut HostPlan) {
    let congestion = plan
        .changes
        .iter()
        .any(|change| change.knob == "congestionprovider");
    if congestion {
        plan.notes.push(
            "To undo it, should loopback or an application suffer: the same commands with cubic (Compat: newreno)."
                .to_owned(),
        );
    }
    if os == Os::Openbsd && situation.bdp_bytes() > 1_000_000.0 {
        plan.notes.push(
            "OpenBSD lets buffers grow to 2 MB, which no sysctl changes: use several connections on this path."
                .to_owned(),
        );
    }
    let buffers = plan
        .changes
        .iter()
        .any(|change| change.memory_bytes.is_some());
    if buffers && situation.role == Role::Server {
        plan.notes.push(
            "A server may have many connections: the largest buffer is a ceiling for each of those that need it, and tcp_mem bounds them all."
                .to_owned(),
        );
    }
}

#[cfg(test)]
pub(super) mod tests;
