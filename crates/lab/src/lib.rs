//! Emulated networks: real programs over the real kernel's TCP, in network namespaces joined by
//! links whose every queue, delay and loss is known.
//!
//! A [`scenario`] is a network in TOML, and [`layout`] what it gives to each node. An [`instance`]
//! is one that exists: nodes are
//! namespaces, and each direction of an emulated link is a chain of cells (`plumb-link`)
//! between two TUN devices, served by a driver. [`supervise`] runs a command in it and
//! cleans up whatever happens; [`background`] keeps one running, and [`reach`] finds it again,
//! steers it ([`control`]) and enters its nodes; [`truth`] holds a Run against what the links
//! recorded.

pub mod background;
mod buffers;
pub mod control;
mod driver;
mod ends;
pub mod error;
mod graph;
mod groups;
pub mod impair;
pub mod instance;
pub mod kernel;
pub mod layout;
pub mod list;
mod nearest;
mod network;
mod node;
pub mod observe;
pub mod proxy;
pub mod reach;
pub mod routes;
pub mod scenario;
mod service;
pub mod stats;
mod steer;
mod stretch;
pub mod supervise;
pub mod topology;
mod traffic;
pub mod truth;
pub mod vary;
