//! Bytes to types and back, for every protocol that plumb speaks, and the sessions of its own
//! protocol as state machines. Nothing here does I/O; whatever comes in is treated as hostile.

pub mod certificate;
pub mod checksum;
pub mod dns;
pub mod fragment;
pub mod http_head;
pub mod icmp;
pub mod icmp_report;
pub mod ip;
pub mod native;
pub mod path_probe;
pub mod pcapng;
pub mod probe_key;
pub mod recent;
pub mod rewrite;
pub mod stamp;
pub mod tcp_options;
pub mod tls;
pub mod too_big;
pub mod virtio;
