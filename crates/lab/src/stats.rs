//! What the links of a laboratory did: the truth that measurements are compared with.

use std::collections::BTreeMap;

use plumb_link::record::ProbeRecord;
use plumb_link::spec::ChainSpec;
use plumb_link::stats::ChainStats;
use plumb_model::distribution::Distribution;
use plumb_model::run::LabChange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use plumb_model::direction::OneDirection;
use plumb_net::tc::Qdisc;

/// Version of the document.
pub const SCHEMA: &str = "plumb.lab-stats/1";

/// What a laboratory did, from its start until now.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabStats {
    /// Version of the document, always `plumb.lab-stats/1`.
    pub schema: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the scenario's random cells.
    pub seed: u64,
    /// What was drawn of the scenario's free parameters (`--vary`): settings, as
    /// `LINK.up.CELL.KEY`, and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drawn: BTreeMap<String, String>,
    /// Changes of its cells since it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LabChange>,
    /// When the laboratory's clock was at zero, in nanoseconds of CLOCK_REALTIME.
    pub started_unix_ns: u64,
    /// How long the laboratory has run, in seconds.
    pub duration_s: f64,
    /// The links that plumb carries, and their two directions.
    pub links: BTreeMap<String, BTreeMap<OneDirection, WayStats>>,
    /// With `--backend kernel`, what the kernel counted on the links that it carries, from the
    /// outermost queueing discipline inwards.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel: BTreeMap<String, BTreeMap<OneDirection, Vec<Qdisc>>>,
    /// Share of the times, 0 to 1, at which a program at the ends of the links would have waited more than a
    /// millisecond for a processor. A thread of ordinary priority finds it by asking.
    #[serde(default)]
    pub starved_ratio: f64,
    /// Share of the time, 0 to 1, in which programs of this machine wanted to run and the hypervisor gave the processor to
    /// other machines. 0 where that is less than 2 % of all time.
    #[serde(default)]
    pub stolen_ratio: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

/// What one direction of a link did.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WayStats {
    /// Counters of the direction as a whole and of its cells.
    pub chain: ChainStats,
    /// The cells in the order in which packets pass them, with their settings as they are now.
    #[serde(default)]
    pub settings: Vec<CellSettings>,
    /// How well the packets were carried.
    pub driver: DriverStats,
    /// Probe packets and when they crossed, by the laboratory's clock.
    pub probes: Vec<ProbeRecord>,
}

/// A cell and its settings.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellSettings {
    /// Name of the cell.
    pub name: String,
    /// Type and settings of the cell, as a scenario has them. Lists of more than 100 entries, such as the samples of a
    /// delay, are left out.
    pub settings: Map<String, Value>,
}

/// The longest list that the settings of a cell show.
const MOST_LISTED: usize = 100;

impl CellSettings {
    /// The cells of a direction.
    pub(crate) fn of(chain: &ChainSpec) -> Vec<Self> {
        let settings = |cell| match serde_json::to_value(cell) {
            Ok(Value::Object(settings)) => short(settings),
            _ => Map::new(),
        };
        let each = chain.0.iter().map(|named| Self {
            name: named.name.clone(),
            settings: settings(&named.cell),
        });
        each.collect()
    }
}

fn short(settings: Map<String, Value>) -> Map<String, Value> {
    let each = settings.into_iter().filter_map(|(key, value)| match value {
        Value::Array(list) if list.len() > MOST_LISTED => None,
        Value::Object(inner) => Some((key, Value::Object(short(inner)))),
        other => Some((key, other)),
    });
    each.collect()
}

/// How well the driver kept to the chain's schedule.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriverStats {
    /// How late packets were written compared with their due time, in seconds; with the time that packets waited then
    /// at the sending device, unread, where that had not been empty for a millisecond. Null where none was written.
    pub lateness_s: Option<Distribution>,
    /// Share of the time, 0 to 1, in which a packet was overdue by more than a millisecond, to be read from the sending
    /// device or to be written.
    pub behind_ratio: f64,
    /// Packets that the receiving device did not take.
    pub write_errors: u64,
    /// Packets dropped at the sending device because the driver did not read in time; these
    /// are not the link's losses.
    pub device_drops: u64,
    /// Packets that were neither IPv4 nor IPv6, which no link carries.
    pub unreadable: u64,
    /// Processor time that carrying took, in seconds, and the kernel's meanwhile, which includes the receiving
    /// host's network stack. Absent where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Whether the thread ran with real-time priority.
    pub realtime: bool,
    /// Whether the device that packets come from went away, so that nothing is carried any more.
    pub stopped: bool,
    /// Whether the machine failed to keep up, or packets were lost that the link did not drop.
    pub overrun: bool,
}
