//! A radio as nl80211 reports it (`linux/nl80211.h`).

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The radio of an interface, and its link to the access point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wifi {
    /// Name of the network (SSID). Null where it is connected to none.
    pub network: Option<String>,
    /// Mode of the radio, such as `station`, `access point` and `monitor`.
    pub mode: String,
    /// Centre of the control channel in Hz. Null where the radio is on none.
    pub frequency_hz: Option<f64>,
    /// Width of the channel in Hz. Null where the driver does not report it.
    pub width_hz: Option<f64>,
    /// Signal of the last frame in dBm. Null where the driver does not report it.
    pub signal_dbm: Option<i32>,
    /// Signal in dBm, averaged by the driver. Null where the driver does not report it.
    pub average_signal_dbm: Option<i32>,
    /// Noise on the channel in dBm. Null where the driver does not report it.
    pub noise_dbm: Option<i32>,
    /// Share of the time, 0 to 1, that the channel was busy with frames of ours and of others. Null where the driver
    /// does not report it.
    pub busy_ratio: Option<f64>,
    /// How the radio has spent its time on the channel. Null where the driver does not report it.
    pub airtime: Option<WifiAirtime>,
    /// Modulation of the frames that are sent. Null where the driver does not report it.
    pub send: Option<WifiRate>,
    /// Modulation of the frames that are received. Null where the driver does not report it.
    pub receive: Option<WifiRate>,
    /// Frames that were sent. Null where the driver does not report it.
    pub sent: Option<u64>,
    /// Times that a frame was retransmitted. Null where the driver does not report it.
    pub retries: Option<u64>,
    /// Frames that were given up. Null where the driver does not report it.
    pub failed: Option<u64>,
    /// Beacons of the access point that did not come. Null where the driver does not report it.
    pub beacons_lost: Option<u64>,
    /// How long the radio has been connected, in seconds. Null where it is not.
    pub connected_s: Option<f64>,
    /// How long ago the radio last heard an access point on another channel, in seconds: it listens there only to scan.
    /// Null where it has heard none.
    pub scanned_ago_s: Option<f64>,
    /// Whether the radio sleeps between frames. Null where the driver does not report it.
    pub power_save: Option<bool>,
}

/// How a radio has spent its time on its channel, as its driver counts since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WifiAirtime {
    /// Time in seconds for which the radio listened to the channel or sent on it.
    pub all_s: f64,
    /// Time in seconds for which the channel was busy with frames of ours, of others, or with noise.
    pub busy_s: f64,
    /// Time in seconds for which this radio sent. Null where the driver does not report it.
    pub sent_s: Option<f64>,
    /// Time in seconds for which it received frames of its own network. Null where the driver does not report it.
    pub own_received_s: Option<f64>,
}

impl WifiAirtime {
    /// Share of the time that the channel was busy without this radio's own frames; `None` where the driver does not
    /// report what was its own.
    pub fn others_ratio(&self) -> Option<f64> {
        let own_s = self.sent_s? + self.own_received_s?;
        (self.all_s > 0.0).then(|| ((self.busy_s - own_s) / self.all_s).clamp(0.0, 1.0))
    }
}

/// How frames are modulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WifiRate {
    /// Physical rate in bit/s; a TCP connection gets about half to two thirds of it. Null where the driver does not
    /// report it.
    pub bps: Option<f64>,
    /// Generation of IEEE 802.11.
    pub protocol: WifiProtocol,
    /// Modulation and coding, by its number in that generation. Null where the driver reports none.
    pub mcs: Option<u8>,
    /// Number of spatial streams. Null where the driver reports none.
    pub streams: Option<u8>,
    /// Width of the channel in use, in Hz. Null where the driver does not report it.
    pub width_hz: Option<f64>,
}

vocabulary! {
    /// Generations of IEEE 802.11.
    pub enum WifiProtocol default Legacy {
        /// The generations before Wi-Fi 4.
        Legacy = "802.11a/b/g",
        /// Wi-Fi 4: IEEE 802.11n.
        N = "802.11n",
        /// Wi-Fi 5: IEEE 802.11ac.
        Ac = "802.11ac",
        /// Wi-Fi 6: IEEE 802.11ax.
        Ax = "802.11ax",
        /// Wi-Fi 7: IEEE 802.11be.
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
