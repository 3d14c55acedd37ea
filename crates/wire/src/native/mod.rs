//! plumb's own protocol: a control connection over TCP and an echo over UDP, both on one port.

pub mod control;
pub mod echo;
pub mod spec;
