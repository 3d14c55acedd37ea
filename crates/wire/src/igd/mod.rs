//! What a gateway reports of its line by UPnP IGD (UPnP Forum, InternetGatewayDevice:1, WANCommonInterfaceConfig:1 and
//! WANIPConnection:1): how it is found ([`ssdp`]), what it offers ([`description`]), and what it is asked ([`soap`]).
//!
//! Only what reads is here: no port is mapped, and nothing is set.

pub mod description;
pub mod soap;
pub mod ssdp;
mod xml;

pub use xml::{MAX_DOCUMENT_BYTES, XmlError};
