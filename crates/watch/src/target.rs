//! What can be watched: a file for each kind of target, and a line in the list of them (`kinds.rs`).

mod certificate;
mod command;
pub mod device;
pub mod kind;
pub(crate) mod kinds;
mod load;
mod loading;
mod mtu;
mod ntp;
mod one_way;
mod page;
mod path;
mod radius;
mod rate;
mod round_trip;
pub(crate) mod series;
pub(crate) mod settings;
mod smtp;
