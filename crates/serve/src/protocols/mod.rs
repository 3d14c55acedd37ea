//! The protocols of others' clients: a folder or file each, and a line here.

mod iperf3;
mod irtt;
mod stamp;
mod web;

use crate::protocol::Entry;

/// All of them, in the order in which they are listed to users.
pub const ALL: &[&Entry] = &[&iperf3::ENTRY, &irtt::ENTRY, &stamp::ENTRY, &web::ENTRY];

/// The one of that name.
pub fn named(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name).copied()
}
