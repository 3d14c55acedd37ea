//! Sending alarms. A kind of delivery is a file and a line in [`kinds`]; what is to be sent waits in the database.

mod alertmanager;
pub mod delivery;
mod exec;
pub mod kinds;
mod mail;
pub mod message;
pub mod retry;
pub(crate) mod trust;
mod webhook;
