//! Classes of traffic by their DSCP (RFC 2474).

/// A class of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class {
    /// Its name on the command line and in Runs.
    pub name: &'static str,
    /// The code point, 0 to 63.
    pub dscp: u8,
}

/// Background: CS1, as RRUL has it. RFC 8622 has since given LE (1) to the same purpose, but
/// equipment knows CS1.
pub const BACKGROUND: Class = Class {
    name: "BK",
    dscp: 8,
};

/// Best effort: what traffic is that asks for nothing.
pub const BEST_EFFORT: Class = Class {
    name: "BE",
    dscp: 0,
};

/// Signalling, and video on Wi-Fi (RFC 8325, section 4.3).
pub const CS5: Class = Class {
    name: "CS5",
    dscp: 40,
};

/// Expedited forwarding: voice (RFC 3246).
pub const EXPEDITED: Class = Class {
    name: "EF",
    dscp: 46,
};

/// The classes of the RRUL test, as flent's `rrul.conf` marks its flows.
pub const RRUL: [Class; 4] = [BACKGROUND, BEST_EFFORT, CS5, EXPEDITED];
