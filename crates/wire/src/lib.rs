//! Bytes to types and back, for every protocol that plumb speaks, and the sessions of its own
//! protocol as state machines. Nothing here does I/O; whatever comes in is treated as hostile.

#[cfg(not(feature = "schema"))]
extern crate plumb_schemaless as schemars;

pub mod anonymous;
pub mod certificate;
pub mod checksum;
pub mod dns;
pub mod flow_export;
pub mod fragment;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod http_client;
pub mod http_head;
pub mod icmp;
pub mod icmp_report;
pub mod igd;
pub mod ip;
pub mod iperf3;
pub mod irtt;
pub mod keyed;
pub mod mail;
pub mod native;
pub mod ntp;
pub mod page;
pub mod path_probe;
pub mod pcapng;
pub mod probe_key;
pub mod radius;
pub mod recent;
pub mod remote_write;
pub mod rewrite;
pub mod share;
pub mod snmp;
pub mod stamp;
pub mod tcp_options;
pub mod tls;
pub mod too_big;
pub mod url;
pub mod virtio;
pub mod web;
