//! What is asked for: an interface, a shaper for one direction or both, and how.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::shape::{Scheme, ShapeClasses};
use serde::{Deserialize, Serialize};

/// What is to be done to an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The interface to the line.
    pub device: String,
    /// The typed actions that findings carry too, at most one a direction.
    pub shapers: Vec<ShaperAction>,
    /// Absent: CAKE where the kernel has it, else HTB.
    pub scheme: Option<Scheme>,
    pub classes: ShapeClasses,
    /// Whether hosts are known by their addresses before the translation.
    pub nat: bool,
    /// Whether acknowledgements that others make superfluous are dropped, upwards.
    pub ack_filter: bool,
    /// Whether an existing configuration may be replaced until this is undone.
    pub replace: bool,
}

impl Request {
    /// The shaper of a direction.
    pub fn shaper(&self, direction: OneDirection) -> Option<&ShaperAction> {
        self.shapers
            .iter()
            .find(|shaper| shaper.direction == direction)
    }
}
