//! The kinds of targets that there are: a file and a line each.

use super::kind::Kind;
use super::settings::{Settings, Wrong};
use super::{
    certificate, command, device, load, mtu, ntp, one_way, page, path, radius, rate, round_trip,
    smtp,
};

/// Reads the settings of a target, without those that all kinds have.
type Read = fn(&mut Settings) -> Result<Box<dyn Kind>, Wrong>;

/// A kind with its settings, and its name.
type Named = (&'static str, Box<dyn Kind>);

const KINDS: [(&str, Read); 20] = [
    ("icmp", round_trip::icmp),
    ("tcp", round_trip::tcp),
    ("dns", round_trip::dns),
    ("http", round_trip::http),
    ("https", round_trip::https),
    ("udp", round_trip::udp),
    ("udp-port", round_trip::udp_port),
    ("stamp", round_trip::stamp),
    ("irtt", round_trip::irtt),
    ("one-way", one_way::read),
    ("path", path::read),
    ("mtu", mtu::read),
    ("rate", rate::read),
    ("load", load::read),
    ("certificate", certificate::read),
    ("smtp", smtp::read),
    ("ntp", ntp::read),
    ("radius", radius::read),
    ("page", page::read),
    ("command", command::read),
];

/// The kinds that have a section of their own in the file, because they are many series each.
const SOURCES: [(&str, Read); 1] = [("device", device::read)];

/// The kind of the sections of that name.
pub(crate) fn source(name: &str, settings: &mut Settings) -> Result<Option<Named>, Wrong> {
    found(&SOURCES, name, settings)
}

/// The kind of that name with its settings, and its name; `Ok(None)` where there is none of that name.
pub(crate) fn kind(name: &str, settings: &mut Settings) -> Result<Option<Named>, Wrong> {
    found(&KINDS, name, settings)
}

fn found(
    kinds: &[(&'static str, Read)],
    name: &str,
    settings: &mut Settings,
) -> Result<Option<Named>, Wrong> {
    match kinds.iter().find(|(known, _)| *known == name) {
        Some((known, read)) => read(settings).map(|kind| Some((*known, kind))),
        None => Ok(None),
    }
}

/// The names of all kinds of targets, for people.
pub(crate) fn names() -> String {
    let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
    match names.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
