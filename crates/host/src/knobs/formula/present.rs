//! What values depend on beside the path.

use super::interface;
use crate::knobs::available::Available;

/// What the host has at present, as far as values depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Present<'a> {
    /// The knob's own value.
    pub value: Option<&'a str>,
    /// Whether BBR can be had.
    pub bbr: Available,
    pub cubic: Available,
    /// The one that is chosen, or will be.
    pub congestion_control: Option<&'a str>,
    /// The interface that leads to the path.
    pub interface: interface::Present<'a>,
}
