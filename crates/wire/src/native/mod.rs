//! plumb's own protocol: a control connection over TCP, data over TCP and UDP, and an echo over
//! UDP, all on one port.

pub mod control;
pub mod datagram;
pub mod echo;
pub mod key;
pub mod record;
pub mod spec;
