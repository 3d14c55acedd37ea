//! The configuration file of `plumb serve`. An option on the command line comes before what the file has.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use plumb_model::prefix::Prefix;
use plumb_model::units::ByteCount;
use serde::{Deserialize, Deserializer, de};

use crate::quantity;

/// What it may have; the options of the same names say what each is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) listen: Vec<IpAddr>,
    pub(super) port: Option<u16>,
    pub(super) disk: Option<PathBuf>,
    pub(super) trace: Option<bool>,
    pub(super) access: Access,
    pub(super) limits: Limits,
    /// The port of a protocol, or `false`.
    pub(super) protocols: BTreeMap<String, PortOrNot>,
    pub(super) irtt: Irtt,
    pub(super) web: Web,
    pub(super) stamp: Stamp,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Access {
    pub(super) public: bool,
    pub(super) key: Option<String>,
    #[serde(deserialize_with = "prefixes")]
    pub(super) allow: Vec<Prefix>,
    #[serde(deserialize_with = "prefixes")]
    pub(super) deny: Vec<Prefix>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    #[serde(deserialize_with = "duration")]
    pub(super) duration: Option<Duration>,
    pub(super) streams: Option<u32>,
    pub(super) clients: Option<usize>,
    pub(super) loads: Option<u32>,
    #[serde(deserialize_with = "bytes")]
    pub(super) bytes_a_day: Option<ByteCount>,
    #[serde(deserialize_with = "rate_bps")]
    pub(super) rate: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Irtt {
    pub(super) key_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Web {
    pub(super) certificate: Option<PathBuf>,
    pub(super) certificate_key: Option<PathBuf>,
    pub(super) host_names: Vec<String>,
    pub(super) runs: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Stamp {
    pub(super) key_file: Option<PathBuf>,
    pub(super) stateless: bool,
    pub(super) rate: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a port, or false")]
pub(super) enum PortOrNot {
    Port(u16),
    Served(bool),
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// Where it cannot be read or has what no such file has, with the line.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        refuse_special(path)?;
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
    }
}

impl File {
    /// Whether something differs that only a new start brings into force.
    pub(super) fn needs_restart_after(&self, before: &Self) -> bool {
        let rest = |file: &Self| Self {
            access: Access::default(),
            limits: Limits {
                bytes_a_day: None,
                rate: None,
                ..file.limits.clone()
            },
            ..file.clone()
        };
        rest(self) != rest(before)
    }
}

/// Refuses what is no file: a pipe or a device could keep who reads it waiting for ever, and a signal has it read again.
///
/// # Errors
/// Where it is none, or cannot be looked at.
pub(super) fn refuse_special(path: &Path) -> anyhow::Result<()> {
    let data = std::fs::metadata(path);
    let data = data.with_context(|| format!("cannot read {}", path.display()))?;
    anyhow::ensure!(
        data.is_file(),
        "cannot read {}: it is a pipe, a device or a directory, and has to be a file",
        path.display()
    );
    Ok(())
}

/// Text that another reader understands.
fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    reads: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let value =
        text.map(|text| reads(&text).map_err(|why| de::Error::custom(format!("'{text}': {why}"))));
    value.transpose()
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    read(deserializer, quantity::time)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteCount>, D::Error> {
    read(deserializer, |text| {
        text.parse().map_err(|why| format!("{why}"))
    })
}

fn rate_bps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    read(deserializer, |text| {
        quantity::rate(text).map(|rate| rate.bps())
    })
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Prefix>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let prefix = |text: &String| {
        let parsed = text.parse();
        parsed.map_err(|why| de::Error::custom(format!("'{text}': {why}")))
    };
    texts.iter().map(prefix).collect()
}
