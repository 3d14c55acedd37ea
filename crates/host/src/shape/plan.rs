//! The plan: what is made, in which order, so that packets pass at every step. Pure.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::shape::Scheme;
use plumb_model::units::si;
use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::queue::options::Discipline;

use super::objects::{Object, On, ifb_name};
use super::reading::{Reading, Received, Root};
use super::request::Request;
use super::{cake, htb};

/// The kernel counts rates in whole bytes a second; far below this, one packet takes a second.
const LEAST_BPS: u64 = 8_000;

/// What is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub scheme: Scheme,
    /// Name of the device for what is received.
    pub ifb: Option<String>,
    /// In the order in which it is made.
    pub objects: Vec<Object>,
    /// What the kernel lacks for its scheme, or for one that was to be preferred.
    pub lacking: Vec<Lacking>,
    /// What else must be known.
    pub notes: Vec<String>,
}

/// What a kernel lacks for a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    pub scheme: Scheme,
    /// Names of modules, one at least.
    pub modules: Vec<String>,
}

/// What cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("nothing is to be shaped: give --up, --down or both")]
    Nothing,
    #[error("two shapers are asked for one direction: give one rate for each")]
    Twice,
    #[error("a rate of {} is too small to carry a packet a second: give a rate above 8 kbit/s", si(*.0 as f64, "bit/s"))]
    Rate(u64),
    #[error(
        "{device} runs at {}, and a shaper of {} before it would never have a queue: give a rate below the line's",
        si(*.link_bps as f64, "bit/s"), si(*.rate_bps as f64, "bit/s")
    )]
    AboveLink {
        device: String,
        rate_bps: u64,
        link_bps: u64,
    },
    #[error(
        "{device} is a port of the bridge {bridge}, which forwards its packets past what plumb would put there: name the interface to the line, or {bridge}"
    )]
    BridgePort { device: String, bridge: String },
    #[error(
        "{device} is the loopback: nothing of a line passes it; name the interface to the line"
    )]
    Loopback { device: String },
    #[error("{device} has plumb's shaper already: plumb shape undo {device} first")]
    Ours { device: String },
    #[error(
        "{device} has a queueing discipline that plumb did not put there ({kind} {handle}): add --replace to put it aside until plumb shape undo, or take it away"
    )]
    Theirs {
        device: String,
        kind: String,
        handle: Handle,
    },
    #[error(
        "{device} has a queueing discipline ({kind} {handle}) that plumb could not make again exactly afterwards ({why}): take it away yourself first, and keep how it was made"
    )]
    NotRestorable {
        device: String,
        kind: String,
        handle: Handle,
        /// What stands in the way.
        why: String,
    },
    #[error(
        "{device} has filters for what it receives ({0} of them at its {1}), which would no longer see those packets, or plumb not: take them away, or shape the upload alone", .count, .kind
    )]
    Filters {
        device: String,
        kind: String,
        count: usize,
    },
}

/// Plans what is asked for, for an interface as it was read.
///
/// # Errors
/// When the request or the interface does not allow it.
pub fn plan(request: &Request, reading: &Reading) -> Result<Plan, PlanError> {
    check(request, reading)?;
    let schemes = match request.scheme {
        Some(scheme) => vec![scheme],
        None => vec![Scheme::Cake, Scheme::Htb],
    };
    let mut lacking = Vec::new();
    let whole = schemes.iter().find(|scheme| {
        let modules = lacks(&objects(request, reading, **scheme), reading);
        let is_whole = modules.is_empty();
        if !is_whole {
            let scheme = **scheme;
            lacking.push(Lacking { scheme, modules });
        }
        is_whole
    });
    let scheme = *whole.or(schemes.first()).unwrap_or(&Scheme::Cake);
    let mut notes = match scheme {
        Scheme::Cake => cake::notes(request),
        Scheme::Htb => htb::notes(request, reading),
    };
    if reading.received.is_clsact() && request.shaper(OneDirection::Down).is_some() {
        notes.push(format!(
            "{} has a clsact without filters for what it receives: plumb uses it and leaves it there.",
            request.device
        ));
    }
    Ok(Plan {
        scheme,
        ifb: request
            .shaper(OneDirection::Down)
            .map(|_| ifb_name(reading.index)),
        objects: objects(request, reading, scheme),
        lacking,
        notes,
    })
}

/// What a scheme is made of, in the order in which it is made.
fn objects(request: &Request, reading: &Reading, scheme: Scheme) -> Vec<Object> {
    let of = |shaper: &ShaperAction, on| match scheme {
        Scheme::Cake => cake::objects(request, shaper, on),
        Scheme::Htb => htb::objects(request, shaper, reading, on),
    };
    let mut objects = Vec::new();
    if let Some(up) = request.shaper(OneDirection::Up) {
        objects.extend(of(up, On::Line));
    }
    // The redirection is last: until then packets are received as before, and from then on the queue is managed.
    if let Some(down) = request.shaper(OneDirection::Down) {
        objects.push(Object::Ifb);
        objects.extend(of(down, On::Ifb));
        if reading.received == Received::Nothing {
            objects.push(Object::Discipline {
                on: On::Line,
                parent: Handle::INGRESS,
                handle: Handle::INGRESS_DISCIPLINE,
                what: Discipline::Ingress,
            });
        }
        objects.push(Object::Redirect);
    }
    objects
}

/// The modules that objects need and the kernel is known to lack, each once.
fn lacks(objects: &[Object], reading: &Reading) -> Vec<String> {
    let mut lacks: Vec<String> = Vec::new();
    for module in objects.iter().flat_map(Object::modules) {
        if reading.modules.has(&module) == Some(false) && !lacks.contains(&module) {
            lacks.push(module);
        }
    }
    lacks
}

fn check(request: &Request, reading: &Reading) -> Result<(), PlanError> {
    let device = || request.device.clone();
    if request.shapers.is_empty() {
        return Err(PlanError::Nothing);
    }
    let both = [OneDirection::Up, OneDirection::Down].map(|d| request.shaper(d).is_some());
    if request.shapers.len() > both.iter().filter(|there| **there).count() {
        return Err(PlanError::Twice);
    }
    for shaper in &request.shapers {
        if shaper.rate_bps < LEAST_BPS {
            return Err(PlanError::Rate(shaper.rate_bps));
        }
        if let Some(link_bps) = reading.link_bps.filter(|link| shaper.rate_bps > *link) {
            return Err(PlanError::AboveLink {
                device: device(),
                rate_bps: shaper.rate_bps,
                link_bps,
            });
        }
    }
    if reading.loopback {
        return Err(PlanError::Loopback { device: device() });
    }
    if let Some(bridge) = &reading.bridge {
        return Err(PlanError::BridgePort {
            device: device(),
            bridge: bridge.clone(),
        });
    }
    if request.shaper(OneDirection::Up).is_some() {
        check_root(request, &reading.root)?;
    }
    match &reading.received {
        Received::Filters { kind, count } if request.shaper(OneDirection::Down).is_some() => {
            Err(PlanError::Filters {
                device: device(),
                kind: kind.clone(),
                count: *count,
            })
        }
        _ => Ok(()),
    }
}

fn check_root(request: &Request, root: &Root) -> Result<(), PlanError> {
    let device = request.device.clone();
    match root {
        Root::Default { .. } => Ok(()),
        Root::Ours => Err(PlanError::Ours { device }),
        Root::Theirs { kind, handle, .. } if !request.replace => Err(PlanError::Theirs {
            device,
            kind: kind.clone(),
            handle: *handle,
        }),
        Root::Theirs {
            kind,
            handle,
            again: Err(why),
        } => Err(PlanError::NotRestorable {
            device,
            kind: kind.clone(),
            handle: *handle,
            why: why.clone(),
        }),
        Root::Theirs { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests;
