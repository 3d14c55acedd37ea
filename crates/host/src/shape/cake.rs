//! CAKE: one discipline a direction.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::shape::ShapeClasses;
use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::queue::options::{Cake, Discipline, Hosts, Tins};

use super::objects::{Object, On, SHAPER, SPLIT_BPS};
use super::request::Request;

pub(super) fn objects(request: &Request, shaper: &ShaperAction, on: On) -> Vec<Object> {
    vec![Object::Discipline {
        on,
        parent: Handle::ROOT,
        handle: Handle::new(SHAPER, 0),
        what: Discipline::Cake(settings(request, shaper)),
    }]
}

pub(super) fn settings(request: &Request, shaper: &ShaperAction) -> Cake {
    let down = shaper.direction == OneDirection::Down;
    Cake {
        rate_bps: shaper.rate_bps,
        framing: shaper.framing(),
        tins: tins(request.classes),
        // The hosts of this side: who sends up, and who receives down.
        hosts: if down {
            Hosts::Destination
        } else {
            Hosts::Source
        },
        nat: request.nat,
        ack_filter: request.ack_filter && !down,
        ingress: down,
        split: shaper.rate_bps <= SPLIT_BPS,
    }
}

const fn tins(classes: ShapeClasses) -> Tins {
    match classes {
        ShapeClasses::Besteffort => Tins::Besteffort,
        ShapeClasses::Diffserv4 => Tins::Diffserv4,
        ShapeClasses::Premium | ShapeClasses::LessThanBestEffort => Tins::Diffserv3,
    }
}

/// The names of a CAKE's tins, in its order.
pub(super) const fn tin_names(classes: ShapeClasses) -> &'static [&'static str] {
    match tins(classes) {
        Tins::Besteffort => &["best effort"],
        Tins::Diffserv3 => &["bulk", "best effort", "voice"],
        Tins::Diffserv4 => &["bulk", "best effort", "video", "voice"],
    }
}

pub(super) fn notes(request: &Request) -> Vec<String> {
    let other = match request.classes {
        ShapeClasses::Premium => "CS1 and LE behind best effort",
        ShapeClasses::LessThanBestEffort => "EF, VA, CS6 and CS7 before it",
        _ => return Vec::new(),
    };
    vec![format!(
        "CAKE has this class in its diffserv3, which also serves {other}; --scheme htb has this class alone."
    )]
}
