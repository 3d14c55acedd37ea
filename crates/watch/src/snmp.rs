//! Asking a device by SNMP over UDP, where nothing that it answers takes more than a bounded time and memory.

#[cfg(test)]
pub(crate) mod agent;
pub(crate) mod client;
