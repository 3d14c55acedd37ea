//! What a device has, once, for people and programs.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use plumb_wire::snmp::oid::Oid;
use serde::Serialize;

use super::access::Login;
use super::inventory::{Inventory, Port};
use super::objects::{HR_SYSTEM_UPTIME, SYS_DESCR, SYS_NAME, SYS_UP_TIME};
use super::rates::{Counts, Rate, Rates, rates};
use super::{WITHIN, reading};
use crate::columns::table;
use crate::page::words::time;
use crate::snmp::client::{AskError, Client, text, ticks};
use crate::unit::Unit;

/// Between the two readings that a use is of.
const BETWEEN: Duration = Duration::from_secs(1);

/// The version of the document.
const SCHEMA: &str = "plumb.device/1";

/// Why a device cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error("{0}")]
    Secret(String),
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// What a device has.
#[derive(Debug, Clone, Serialize)]
pub struct Look {
    schema: &'static str,
    address: SocketAddr,
    /// The name that it has itself, and its maker's description.
    name: Option<String>,
    description: Option<String>,
    uptime_s: Option<f64>,
    ports: Vec<LookedPort>,
    /// Processors, memory and sensors.
    values: Vec<LookedValue>,
    /// What could not be read, and why.
    notes: Vec<String>,
}

/// A port; rates are over one second, and null where they are not known.
#[derive(Debug, Clone, Serialize)]
struct LookedPort {
    name: String,
    state: &'static str,
    speed_bps: Option<f64>,
    in_bps: Option<f64>,
    out_bps: Option<f64>,
    in_errors: Option<u64>,
    out_errors: Option<u64>,
    in_discards: Option<u64>,
    out_discards: Option<u64>,
}

/// A value of the node, such as a temperature.
#[derive(Debug, Clone, Serialize)]
struct LookedValue {
    name: String,
    value: f64,
    words: String,
}

/// Looks at a device within a bounded time. Without patterns all of its ports are shown.
///
/// # Errors
/// When a secret cannot be read, or the device does not answer.
pub fn look(to: SocketAddr, login: &Login, patterns: &[String]) -> Result<Look, LookError> {
    let credentials = login.credentials().map_err(LookError::Secret)?;
    let mut client = Client::new(to, credentials)?;
    let begun = Instant::now();
    client.begin(WITHIN);
    let objects = [SYS_NAME, SYS_DESCR, SYS_UP_TIME, HR_SYSTEM_UPTIME];
    let objects: Vec<Oid> = objects.iter().filter_map(|object| object.of(0)).collect();
    let values = client.get(&objects)?.values;
    let mut bindings = objects.into_iter().zip(values);
    let mut next = || bindings.next().ok_or(AskError::Other);
    let (name, description) = (text(&next()?)?, text(&next()?)?);
    let (agent, host) = (ticks(&next()?)?, ticks(&next()?)?);
    let inventory = Inventory::read(&mut client)?;
    let every: &[String] = &["*".to_owned()];
    let patterns = if patterns.is_empty() { every } else { patterns };
    let ports = inventory.chosen(patterns, &BTreeSet::new());
    let mut look = Look {
        schema: SCHEMA,
        address: to,
        name,
        description,
        uptime_s: host.or(agent).map(|ticks| f64::from(ticks) / 100.0),
        ports: Vec::new(),
        values: Vec::new(),
        notes: Vec::new(),
    };
    let faults = inventory.faults.iter();
    look.notes
        .extend(faults.map(|(what, why)| format!("{what}: {why}")));
    for seen in reading::of_node(&mut client, &inventory) {
        match seen.value {
            Ok(value) => {
                let unit = super::series::unit(&seen.name).unwrap_or(Unit::Number);
                look.values.push(LookedValue {
                    words: unit.words(value),
                    name: seen.name,
                    value,
                });
            }
            Err(why) => look.notes.push(format!("{}: {why}", seen.name)),
        }
    }
    look.read_ports(&mut client, &ports, begun);
    Ok(look)
}

impl Look {
    /// Reads each port twice, a second apart.
    fn read_ports(&mut self, client: &mut Client, ports: &[Port], begun: Instant) {
        let mut first = Vec::with_capacity(ports.len());
        for port in ports {
            match reading::of_port(client, port.index, begun) {
                Ok(reading) => first.push((port, reading)),
                Err(error) => {
                    self.notes.push(format!("port {}: {error}", port.name));
                    if !error.is_of_question() {
                        break;
                    }
                }
            }
        }
        thread::sleep(BETWEEN);
        let mut is_same = true;
        for (port, before) in first {
            let now = reading::of_port(client, port.index, begun);
            let found = match &now {
                Ok(now) => {
                    is_same &= now.counts.bytes == before.counts.bytes;
                    rates(&before.counts, &now.counts).map_err(str::to_owned)
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(why) = &found {
                self.notes.push(format!("port {}: {why}", port.name));
            }
            let last = now.as_ref().unwrap_or(&before);
            let state = reading::state_words(last.state);
            self.ports
                .push(LookedPort::new(port, state, &last.counts, found.ok()));
        }
        if is_same && !self.ports.is_empty() {
            for port in &mut self.ports {
                (port.in_bps, port.out_bps) = (None, None);
            }
            self.notes.push(
                "no counter changed within a second: the agent reads them more seldom, so that the use is not known".to_owned(),
            );
        }
    }

    /// One screen for people.
    pub fn text(&self) -> String {
        let name = self.name.as_deref().unwrap_or("a device without a name");
        let mut out = format!("{name} at {}\n", self.address);
        if let Some(description) = &self.description {
            out += &format!("  {description}\n");
        }
        if let Some(up) = self
            .uptime_s
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
        {
            out += &format!("  up for {}\n", time(up));
        }
        out += "\n";
        let head = [
            "port",
            "state",
            "speed",
            "in",
            "out",
            "errors in/out",
            "discards in/out",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.ports.iter().map(LookedPort::cells));
        out += &table(&rows);
        if !self.values.is_empty() {
            out += "\n";
            let rows: Vec<_> = self
                .values
                .iter()
                .map(|value| [value.name.clone(), value.words.clone()])
                .collect();
            out += &table(&rows);
        }
        for note in &self.notes {
            out += &format!("\nNote: {note}.\n");
        }
        out
    }
}

impl LookedPort {
    fn new(port: &Port, state: &'static str, counts: &Counts, rates: Option<Rates>) -> Self {
        let rate = |rate: Option<Rate>| rate.flatten().and_then(Result::ok);
        let [in_bps, out_bps] = match rates.map(|rates| rates.bps) {
            Some([down, up]) => [rate(Some(down)), rate(Some(up))],
            None => [None, None],
        };
        let ([in_errors, out_errors], [in_discards, out_discards]) =
            (counts.errors, counts.discards);
        Self {
            name: port.name.clone(),
            state,
            speed_bps: counts.speed_bps,
            in_bps,
            out_bps,
            in_errors,
            out_errors,
            in_discards,
            out_discards,
        }
    }

    fn cells(&self) -> [String; 7] {
        let unknown = || "-".to_owned();
        let rate = |bps: Option<f64>| {
            let share = |bps: f64| {
                self.speed_bps
                    .map(|speed| format!(" ({:.1} %)", bps / speed * 100.0))
            };
            bps.map_or_else(unknown, |bps| {
                Unit::BitsPerSecond.words(bps) + &share(bps).unwrap_or_default()
            })
        };
        let pair = |one: Option<u64>, other: Option<u64>| {
            let [one, other] =
                [one, other].map(|count| count.map_or_else(unknown, |count| count.to_string()));
            format!("{one}/{other}")
        };
        [
            self.name.clone(),
            self.state.to_owned(),
            self.speed_bps
                .map_or_else(unknown, |bps| Unit::BitsPerSecond.words(bps)),
            rate(self.in_bps),
            rate(self.out_bps),
            pair(self.in_errors, self.out_errors),
            pair(self.in_discards, self.out_discards),
        ]
    }
}
