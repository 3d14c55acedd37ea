//! The Run: the one document that verbs write and read.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::distribution::Distribution;
use crate::finding::{Finding, Verdict};
use crate::goal::Asked;
use crate::json;
use crate::results::Outcome;
use crate::series::Series;
use crate::vocabulary;

/// Version of the document; the number rises when a reader of the old one would misread it.
pub const SCHEMA: &str = "plumb.run/2";

pub mod in_page;
pub mod kept;
mod v1;

/// One use of plumb: what was asked, what was measured, what it means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of the document, always `plumb.run/2`.
    pub schema: String,
    /// Identity of the Run, a UUIDv7 (RFC 9562).
    pub id: String,
    /// When the Run began, RFC 3339 in UTC.
    pub started: String,
    /// Version of plumb that wrote it.
    pub plumb: String,
    /// The verb and its arguments. A word in capitals replaces each secret, URLs have no user, password or query, and
    /// of `serve` there is the verb alone.
    pub command: Vec<String>,
    /// The host that measured, and the laboratory that it may be in.
    pub local: Local,
    /// The far end. Null where the verb has none, such as `plumb host`.
    pub target: Option<Target>,
    /// What a check was asked for. Null where the verb was no check, and in Runs of versions that did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// What was measured, in order.
    pub measurements: Vec<Measurement>,
    /// What limits the path, the worst first.
    pub findings: Vec<Finding>,
    /// What the findings come to. Null where the verb judges nothing.
    pub verdict: Option<Verdict>,
    /// What could not be measured, and what must be known to read the numbers.
    pub notes: Vec<String>,
}

/// The host that measured, and the laboratory that it may be in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Local {
    /// What is known of the host.
    pub host: HostFacts,
    /// The laboratory that the Run was made in. Null where it was made in none.
    pub lab: Option<LabMark>,
}

/// The far end of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Name or address of the far end as the user typed it.
    pub name: String,
    /// IP address that was used. Null where none was.
    pub address: Option<String>,
    /// What the far end reported of its host. Null where it reported nothing.
    pub host: Option<HostFacts>,
}

impl Target {
    /// Whether two far ends are one. One whose address changed still is.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let by_address = self.address.is_some() && self.address == other.address;
        by_address || self.name == other.name
    }
}

/// The name as it was typed, and the address where that is another word.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self
            .address
            .as_ref()
            .filter(|address| **address != self.name)
        {
            Some(address) => write!(f, "{} ({address})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// What bears on a measurement at one end of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Version of plumb on that host.
    pub plumb: String,
    /// Operating system and kernel release.
    pub kernel: String,
    /// Default congestion control of TCP. Null where it could not be read.
    pub congestion_control: Option<String>,
    /// Congestion controls of TCP that exist on that host.
    pub congestion_controls: Vec<String>,
    /// net.ipv4.tcp_rmem in bytes: minimum, initial and largest receive buffer. Null where it could not be read.
    pub tcp_rmem_bytes: Option<[u64; 3]>,
    /// net.ipv4.tcp_wmem in bytes: minimum, initial and largest send buffer. Null where it could not be read.
    pub tcp_wmem_bytes: Option<[u64; 3]>,
    /// Part of the receive buffer that becomes window, as net.ipv4.tcp_adv_win_scale has it. Null where it could not be
    /// read.
    pub tcp_adv_win_scale: Option<i64>,
    /// Whether windows above 64 KiB can be announced (RFC 7323). Null where it could not be read.
    pub window_scaling: Option<bool>,
    /// Whether TCP offers selective acknowledgements (RFC 2018). Null where it could not be read.
    pub sack: Option<bool>,
    /// Whether TCP offers timestamps (RFC 7323). Null where it could not be read.
    pub timestamps: Option<bool>,
    /// The kernel's clock source. Null where it could not be read.
    pub clock_source: Option<String>,
    /// Whether the kernel takes its clock to be synchronised (adjtimex). Null where it could not be read.
    pub clock_synchronised: Option<bool>,
}

/// The laboratory that a Run was made in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabMark {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the scenario's random cells.
    pub seed: u64,
    /// What was drawn of the scenario's free parameters (`--vary`): settings, as
    /// `LINK.up.CELL.KEY`, and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drawn: BTreeMap<String, String>,
    /// What was changed of the scenario's cells while the laboratory ran, before the Run or in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LabChange>,
    /// What carried the links that have cells.
    #[serde(default)]
    pub backend: LabBackend,
    /// The clock of the laboratory, and of whatever ran in it.
    #[serde(default)]
    pub clock: LabClock,
    /// How late the laboratory delivered packets while the Run was made, compared with its own schedule, in seconds; of
    /// the worst link. Null where no link is plumb's: it is unknown for the kernel's links.
    pub lateness_s: Option<Distribution>,
    /// How much later than by itself a packet left at most because large segments crossed links whole, in seconds,
    /// since the laboratory began; of the worst link. 0 where each packet crossed by itself.
    #[serde(default)]
    pub piece_error_s: f64,
    /// Share of the times, 0 to 1, at which a program at the ends of the links would have waited more than a
    /// millisecond for a processor while the Run was made. A thread of ordinary priority finds it by asking.
    #[serde(default)]
    pub starved_ratio: f64,
    /// Share of the time, 0 to 1, in which programs of this machine wanted to run while the Run was made and the hypervisor
    /// gave the processor to other machines. 0 where that is less than 2 % of all time, and in a Run of before it was counted.
    #[serde(default)]
    pub stolen_ratio: f64,
    /// Share of the time, 0 to 1, in which a packet was overdue by more than a millisecond at a link while the Run was made;
    /// of the worst link. 0 where no link is plumb's, and in a Run of before it was kept.
    #[serde(default)]
    pub behind_ratio: f64,
    /// Packets that were dropped while the Run was made at a device of which a link did not read in time; these are not the
    /// link's losses. 0 in a Run of before it was kept.
    #[serde(default)]
    pub device_drops: u64,
    /// Packets that a link delivered while the Run was made and a device did not take. 0 in a Run of before it was kept.
    #[serde(default)]
    pub write_errors: u64,
    /// Whether a device of a link went away. False in a Run of before it was kept.
    #[serde(default)]
    pub link_stopped: bool,
    /// Whether the machine could not keep up with the scenario while the Run was made: with the
    /// links, as far as plumb carried them, or with the programs at their ends.
    pub overrun: bool,
    /// What else must be known of the laboratory.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A setting of a laboratory's cell that was changed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabChange {
    /// When the setting was changed, RFC 3339 in UTC.
    pub at: String,
    /// The setting that was changed, as `LINK.up.CELL.KEY`.
    pub setting: String,
    /// Value of the setting before. Absent where there was none, as in a cell that was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value of the setting after the change.
    pub after: String,
}

vocabulary! {
    /// What carries the links of a laboratory that have cells.
    pub enum LabBackend default Emulated {
        /// plumb itself, between TUN devices.
        Emulated = "emulated",
        /// The kernel's queueing disciplines, at the ends of a veth pair.
        Kernel = "kernel",
    }
}

vocabulary! {
    /// The clock of a laboratory.
    pub enum LabClock default Real {
        /// The clock of the machine.
        Real = "real",
        /// The clock of a kernel of its own, which stands still while programs compute and advances at once while they
        /// wait: no figure is the machine's.
        Virtual = "virtual",
    }
}

vocabulary! {
    /// How a measurement came to its end.
    pub enum Ended default Complete {
        /// As it was asked for.
        Complete = "complete",
        /// Its part of the budget was used before its time was over.
        Budget = "budget",
        /// It had become steady, and was asked to end then.
        Steady = "steady",
        /// The file that it sent came to its end.
        SourceEnded = "source_ended",
        /// The user stopped it.
        Cancelled = "cancelled",
        /// All its streams had failed.
        StreamsFailed = "streams_failed",
        /// The far end went silent or away: only what this end saw is known.
        FarEndLost = "far_end_lost",
    }
}

/// One measurement with its result and its context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Name of the measurement, unique in its Run, such as `m1`.
    pub id: String,
    /// Kind of the measurement and its result.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When the measurement began, in seconds from the start of the Run.
    pub at_s: f64,
    /// How long the measurement took, in seconds.
    pub duration_s: f64,
    /// When and beside what it was made.
    #[serde(default)]
    pub context: Context,
    /// How the measurement came to its end.
    #[serde(default)]
    pub ended: Ended,
    /// What else was asked for, by names of this kind of measurement. For people: no part of plumb reads it.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Values over time, from the start of the measurement, by the name of the quantity.
    #[serde(default)]
    pub series: BTreeMap<String, Series>,
}

/// A text that is not a Run this version can read.
#[derive(Debug, thiserror::Error)]
pub enum ReadRunError {
    /// The text begins as JSON does, and breaks off.
    #[error("its JSON breaks off ({0}): the file may be truncated; save it again with -o")]
    Truncated(serde_json::Error),
    /// The text is something else than JSON.
    #[error("it is not JSON ({0}): a Run is what a measuring verb saves with -o FILE")]
    NotJson(serde_json::Error),
    /// The text is a page that no Run was put into.
    #[error(
        "it is a page without a Run in it: plumb report --problem -o FILE.html writes one that plumb reads again"
    )]
    Page,
    /// The document is of another kind or version.
    #[error(
        "it says schema '{found}', and this plumb reads '{SCHEMA}': use the plumb that wrote it, or measure again"
    )]
    Schema {
        /// What the document says it is.
        found: String,
    },
    /// The document says that it is a Run, but does not have the shape of one.
    #[error("it does not have the shape of a Run ({0}): see schemas/run.schema.json")]
    Shape(serde_json::Error),
}

impl Run {
    /// Reads a Run from its JSON, or from a page that holds it. What older versions kept of a command line and no Run keeps any
    /// more is left out.
    ///
    /// # Errors
    /// When the text is no JSON, of another version, or not of the shape of a Run.
    pub fn from_json(text: &str) -> Result<Self, ReadRunError> {
        let text = match in_page::is_page(text) {
            true => in_page::json(text).ok_or(ReadRunError::Page)?,
            false => text,
        };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| match error.is_eof() {
                true => ReadRunError::Truncated(error),
                false => ReadRunError::NotJson(error),
            })?;
        let value = match value.get("schema").and_then(|s| s.as_str()) {
            Some(SCHEMA) => value,
            Some(v1::SCHEMA) => v1::upgrade(value, SCHEMA),
            found => {
                return Err(ReadRunError::Schema {
                    found: found.unwrap_or("nothing").chars().take(80).collect(),
                });
            }
        };
        let mut run: Self = json::from_value(&value).map_err(ReadRunError::Shape)?;
        run.leave_out_secrets();
        Ok(run)
    }

    fn leave_out_secrets(&mut self) {
        self.command = kept::command(std::mem::take(&mut self.command));
        for measurement in &mut self.measurements {
            for url in measurement.outcome.urls() {
                *url = kept::url(url);
            }
        }
    }

    /// The measurement of that id.
    pub fn measurement(&self, id: &str) -> Option<&Measurement> {
        self.measurements.iter().find(|m| m.id == id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_versions_and_fragments_are_told_apart() {
        let error = |text: &str| Run::from_json(text).map(|_| ()).map_err(|e| e.to_string());
        assert!(error(r#"{"schema": "plumb.run/2", "id""#).is_err_and(|e| e.contains("truncated")));
        assert!(error(r#"{"schema": "plumb.run/9"}"#).is_err_and(|e| e.contains("plumb.run/9")));
        assert!(error(r#"{"schema": "plumb.run/2"}"#).is_err_and(|e| e.contains("shape")));
        assert!(error("[]").is_err_and(|e| e.contains("nothing")));
        assert!(error("<!doctype html>").is_err_and(|e| e.contains("without a Run")));
        let other = "root:x:0:0:root:/root:/bin/bash\n";
        assert!(error(other).is_err_and(|e| e.contains("not JSON") && !e.contains("truncated")));
    }

    #[test]
    fn a_run_of_every_published_version_is_read() {
        use crate::context::{LoadShape, Phase};
        let [first, present] = [
            include_str!("../fixtures/run-1.json"),
            include_str!("../fixtures/run-2.json"),
        ]
        .map(|text| Run::from_json(text).unwrap());
        assert_eq!(
            (first.schema.as_str(), present.schema.as_str()),
            (SCHEMA, SCHEMA)
        );
        for run in [&first, &present] {
            let loaded = |m: &&Measurement| m.context.phase == Some(Phase::Both);
            let both: Vec<_> = run.measurements.iter().filter(loaded).collect();
            assert!(both.len() >= 3, "{} of {}", both.len(), run.id);
            for measurement in both {
                let load = measurement.context.load.as_ref().unwrap();
                assert_eq!(
                    (load.shape, load.streams, load.flows.len()),
                    (LoadShape::Rrul, 4, 1)
                );
                assert_eq!(measurement.context.applications, ["voice"]);
            }
            let idle = |m: &&Measurement| m.context.phase == Some(Phase::Idle);
            let probed = |m: &Measurement| !m.context.probes.is_empty();
            assert!(run.measurements.iter().filter(idle).any(probed));
        }
    }

    #[test]
    fn a_run_that_holds_secrets_is_read_without_them() {
        let text = include_str!("../fixtures/run-2.json");
        let mut older: serde_json::Value = serde_json::from_str(text).unwrap();
        older["command"] = serde_json::json!(["rate", "box", "--key", "correct-horse"]);
        let page = in_page::element(&older).unwrap();
        for text in [older.to_string(), format!("<!doctype html>{page}")] {
            let run = Run::from_json(&text).unwrap();
            assert_eq!(run.command, ["rate", "box", "--key", "KEY"]);
        }
        older["command"] = serde_json::json!(["serve", "--key", "s3cret", "--runs", "/srv"]);
        let run = Run::from_json(&older.to_string()).unwrap();
        assert_eq!(run.command, ["serve"]);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,200}") {
            let _ = Run::from_json(&text);
        }
    }
}
