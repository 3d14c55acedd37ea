//! HTTP and WebSocket on plain threads: the state machines of hyper and tungstenite on our own sockets.

mod channel;
mod drive;
mod tasks;

pub use channel::Channel;
pub use drive::{Driver, Wire};
pub use tasks::Tasks;
