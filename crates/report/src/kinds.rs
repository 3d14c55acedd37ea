//! What each kind of result shows: its tables, numbers and charts, a file a kind.

mod app;
mod available_bandwidth;
mod capacity;
mod capture;
mod gateway;
pub(crate) mod host;
mod host_cipher;
mod host_disk;
pub(crate) mod host_rates;
pub(crate) mod loaded_latency;
mod mtu;
mod owd;
mod page_load;
pub(crate) mod path;
mod ping;
mod port;
mod quic;
mod rehearsal;
mod responsiveness;
mod shaping;
mod sweep;
mod tcp_windows;
mod throughput;
mod transactions;
mod tune;
mod udp;
