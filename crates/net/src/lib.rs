//! The edge of the kernel: sockets, timestamps, TCP_INFO, netlink, TUN devices, namespaces.
//!
//! The only crate that may contain `unsafe`; each block says why it is sound. It knows no
//! protocol of the network, only those between a program and its kernel.
#![allow(unsafe_code)]

#[cfg(not(feature = "schema"))]
extern crate plumb_schemaless as schemars;

pub mod bulk;
pub mod clock;
pub mod datagram;
pub mod descriptor_passing;
pub mod egress;
pub mod error_queue;
pub mod ethtool;
pub mod file;
pub mod intercept;
mod link_address;
pub mod missing;
pub mod mmap;
pub mod multicast;
pub mod names;
pub mod namespace;
pub mod netlink;
pub mod packet_capture;
pub mod packet_ring;
pub mod packet_spray;
pub mod path_mtu;
pub mod pid_one;
pub mod privilege;
pub mod process;
pub mod raw_listener;
pub mod route;
pub mod sched;
mod socket_options;
pub mod sysctl;
pub mod tc;
pub mod tcp;
pub mod terminal;
pub mod timestamp;
pub mod tun;
pub mod udp_counters;
pub mod unconnected;
pub mod user_namespace;
pub mod wait;
