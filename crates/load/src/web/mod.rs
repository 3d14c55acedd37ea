//! HTTP and WebSocket on plain threads: the state machines of hyper and tungstenite on our own sockets, for servers and for
//! the clients of others' servers.

mod channel;
mod drive;
mod exchange;
mod fetch;
mod http_load;
mod http_server;
mod in_band;
mod ndt7;
mod site;
mod tasks;
pub mod visited;

pub use channel::Channel;
pub use drive::{Driver, Wire};
pub use fetch::{Fetched, fetch};
pub use http_server::HttpServer;
pub use ndt7::Ndt7;
pub use site::{Security, Site};
pub use tasks::Tasks;
