//! Emulated networks: real programs over the real kernel's TCP, in network namespaces joined by
//! links whose every queue, delay and loss is known.
//!
//! A [`scenario`] is a network in TOML, and `layout` plans what it gives to each node. An
//! [`instance`] is one that exists: nodes are namespaces, and each direction of an emulated link is a chain of cells (`plumb-link`)
//! between two TUN devices, served by a driver. [`supervise`] runs a command in it and
//! cleans up whatever happens; [`background`] keeps one running, and [`client`] finds it again,
//! changes it ([`control`]) and enters its nodes; [`truth`] holds a Run against what the links
//! recorded.

#[cfg(not(feature = "schema"))]
extern crate plumb_schemaless as schemars;

pub mod background;
mod buffers;
pub mod client;
pub mod control;
pub mod disturbance;
mod driver;
mod driver_counters;
mod epoch;
pub mod error;
mod graph;
mod groups;
pub mod igd;
pub mod impair;
pub mod instance;
pub mod kernel;
mod layout;
pub mod list;
mod nearest;
mod network;
mod node;
pub mod observe;
mod plan;
mod problem;
mod program;
pub mod proxy;
mod reconfigure;
mod routes;
pub mod scenario;
mod service;
mod starvation;
pub mod stats;
mod stolen;
pub mod supervise;
pub mod topology;
mod traffic;
pub mod truth;
pub mod twin;
pub mod vary;
pub mod virtual_time;
