//! Settings of an interface other than its queueing discipline: reading and changing one.

use std::fs;
use std::io;
use std::path::PathBuf;

use plumb_net::ethtool::Ethtool;
use plumb_net::netlink::driver::Drivers;
use plumb_net::netlink::link::links;
use plumb_net::netlink::{Netlink, NetlinkError, interface_index};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Setting {
    /// An offload by the kernel's name, `on` or `off`.
    Offload(String),
    /// Packets that the receive ring holds.
    ReceiveRing,
    /// Packets that a queueing discipline without a limit of its own holds.
    QueueLength,
    /// Whether the driver fits its interrupts to what arrives, `on` or `off`.
    AdaptiveReceive,
    /// The most bytes that the driver's queue of that number may hold.
    DriverQueue(u32),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offload(feature) => f.write_str(feature),
            Self::ReceiveRing => f.write_str("the receive ring"),
            Self::QueueLength => f.write_str("the length of the transmit queue"),
            Self::AdaptiveReceive => f.write_str("adaptive interrupt coalescing"),
            Self::DriverQueue(queue) => write!(f, "the limit of driver queue tx-{queue}"),
        }
    }
}

/// A setting that could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// What the kernel or the driver said over netlink.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// What it said otherwise.
    #[error("the driver of {interface} does not take or report {setting}: {source}")]
    Driver {
        interface: String,
        setting: String,
        source: io::Error,
    },
    /// Not a value of this setting.
    #[error("'{value}' is no value of {setting}")]
    Value {
        setting: String,
        /// What was to be set.
        value: String,
    },
}

/// What an interface is set to at present.
///
/// # Errors
/// When the driver does not report it, or has no such thing.
pub(super) fn read(interface: &str, setting: &Setting) -> Result<String, SettingError> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let error = |source: io::Error| SettingError::Driver {
        interface: interface.to_owned(),
        setting: setting.to_string(),
        source,
    };
    let absent = || error(io::ErrorKind::NotFound.into());
    match setting {
        Setting::Offload(feature) => {
            let mut ethtool = Ethtool::open().map_err(error)?;
            let names = ethtool.offload_names(interface).map_err(error)?;
            let offloads = ethtool.offloads(interface, &names).map_err(error)?;
            let offload = offloads.iter().find(|o| o.name == *feature);
            Ok(word(offload.ok_or_else(absent)?.on))
        }
        Setting::ReceiveRing => {
            let rings = Ethtool::open().and_then(|mut ethtool| ethtool.rings(interface));
            Ok(rings.map_err(error)?.receive_packets.to_string())
        }
        Setting::AdaptiveReceive => {
            let coalescing = Ethtool::open().and_then(|mut ethtool| ethtool.coalescing(interface));
            Ok(word(coalescing.map_err(error)?.adaptive_receive))
        }
        Setting::QueueLength => {
            let link = links()?.into_iter().find(|link| link.name == interface);
            let packets = link.and_then(|link| link.tx_queue_packets);
            Ok(packets.ok_or_else(absent)?.to_string())
        }
        Setting::DriverQueue(queue) => {
            let text = fs::read_to_string(driver_queue(interface, *queue)).map_err(error)?;
            Ok(text.trim().to_owned())
        }
    }
}

/// Sets it to another value.
///
/// # Errors
/// When the driver cannot, or not to that value.
pub(super) fn write(interface: &str, setting: &Setting, value: &str) -> Result<(), SettingError> {
    let error = |source: io::Error| SettingError::Driver {
        interface: interface.to_owned(),
        setting: setting.to_string(),
        source,
    };
    let wrong = || SettingError::Value {
        setting: setting.to_string(),
        value: value.to_owned(),
    };
    let on = || match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(wrong()),
    };
    let number = || value.parse::<u32>().map_err(|_| wrong());
    match setting {
        Setting::Offload(feature) => Drivers::open()?.set_offload(interface, feature, on()?)?,
        Setting::ReceiveRing => Drivers::open()?.set_receive_ring(interface, number()?)?,
        Setting::AdaptiveReceive => Drivers::open()?.set_adaptive_receive(interface, on()?)?,
        Setting::QueueLength => {
            let index = interface_index(interface).map_err(error)?;
            Netlink::open()?.set_queue_length(index, number()?)?;
        }
        Setting::DriverQueue(queue) => {
            let most = number()?.to_string();
            fs::write(driver_queue(interface, *queue), most).map_err(error)?;
        }
    }
    Ok(())
}

/// Where BQL's limit of a queue is (Documentation/ABI/testing/sysfs-class-net-queues).
fn driver_queue(interface: &str, queue: u32) -> PathBuf {
    format!("/sys/class/net/{interface}/queues/tx-{queue}/byte_queue_limits/limit_max").into()
}
