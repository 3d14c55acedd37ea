//! A radio as nl80211 tells of it (`linux/nl80211.h`).

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The radio of an interface, and its link to the access point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wifi {
    /// Name of the network.
    pub network: Option<String>,
    /// `station`, `access point`, `monitor` …
    pub mode: String,
    /// Centre of the control channel.
    pub frequency_hz: Option<f64>,
    /// Width of the channel.
    pub width_hz: Option<f64>,
    /// Signal of the last frame, in decibels over a milliwatt.
    pub signal_dbm: Option<i32>,
    /// Signal, averaged by the driver.
    pub average_signal_dbm: Option<i32>,
    /// Noise on the channel.
    pub noise_dbm: Option<i32>,
    /// Share of the time that the channel was busy, ours and others'.
    pub busy_ratio: Option<f64>,
    /// How frames are sent.
    pub send: Option<WifiRate>,
    /// How frames are received.
    pub receive: Option<WifiRate>,
    /// Frames sent.
    pub sent: Option<u64>,
    /// Times that a frame was sent again.
    pub retries: Option<u64>,
    /// Frames given up.
    pub failed: Option<u64>,
    /// Beacons of the access point that did not come.
    pub beacons_lost: Option<u64>,
    /// How long the radio has been connected.
    pub connected_s: Option<f64>,
    /// The radio sleeps between frames.
    pub power_save: Option<bool>,
}

/// How frames are modulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WifiRate {
    /// Physical rate; a TCP connection gets about half to two thirds of it.
    pub bps: Option<f64>,
    /// Generation.
    pub protocol: WifiProtocol,
    /// Modulation and coding, by its number in that generation.
    pub mcs: Option<u8>,
    /// Spatial streams.
    pub streams: Option<u8>,
    /// Width used.
    pub width_hz: Option<f64>,
}

vocabulary! {
    /// Generations of IEEE 802.11.
    pub enum WifiProtocol default Legacy {
        /// 802.11a, b or g.
        Legacy = "802.11a/b/g",
        /// 802.11n.
        N = "802.11n",
        /// 802.11ac.
        Ac = "802.11ac",
        /// 802.11ax.
        Ax = "802.11ax",
        /// 802.11be.
        Be = "802.11be",
    }
}

impl Wifi {
    /// The band of its frequency.
    pub fn band(&self) -> Option<&'static str> {
        match self.frequency_hz? {
            f if (2.4e9..2.5e9).contains(&f) => Some("2.4 GHz"),
            f if (4.9e9..5.925e9).contains(&f) => Some("5 GHz"),
            f if (5.925e9..7.13e9).contains(&f) => Some("6 GHz"),
            f if (57e9..72e9).contains(&f) => Some("60 GHz"),
            _ => None,
        }
    }
}
