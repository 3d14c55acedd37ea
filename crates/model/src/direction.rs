//! Directions, named from the client.

use crate::vocabulary;

vocabulary! {
    /// One direction: of the data of a stream, of a link, of the traffic to shape.
    pub enum OneDirection {
        /// Away from the client: from a link's first end to its second, towards the provider.
        Up = "up",
        /// From the far end to the client.
        Down = "down",
    }
}

vocabulary! {
    /// Direction of the load, named from the client.
    pub enum Direction {
        /// From the far end to the client.
        Down = "down",
        /// From the client to the far end.
        Up = "up",
        /// Both directions at once.
        Both = "both",
    }
}

impl From<OneDirection> for Direction {
    fn from(one: OneDirection) -> Self {
        match one {
            OneDirection::Up => Self::Up,
            OneDirection::Down => Self::Down,
        }
    }
}

impl Direction {
    /// Whether data of that direction is part of it.
    pub fn includes(self, one: OneDirection) -> bool {
        self == Self::Both || self == one.into()
    }
}
