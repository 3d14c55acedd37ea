//! A device that is asked by SNMP: its own value is how long its first answer takes, and its ports, processors, memory and
//! sensors are series beside it.

mod access;
mod inventory;
mod look;
mod objects;
mod rates;
mod reading;
mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_wire::snmp::oid::Oid;
use plumb_wire::snmp::session::Credentials;

use self::access::Access;
use self::inventory::{Inventory, Port, UP};
use self::objects::{HR_SYSTEM_UPTIME, IF_NUMBER, IF_TABLE_LAST_CHANGE, SYS_UP_TIME};
use self::rates::{Counts, Rate, rates};
use self::reading::Reading;
use self::series::What;
use super::kind::{FarEnd, Kind, Probed, Seen};
use super::settings::{Settings, Wrong};
use crate::snmp::client::{AskError, Client, gauge, ticks};
use crate::unit::Unit;

pub use self::access::Login;
pub use self::look::{Look, LookError, look};

/// How often a device is asked unless the file says otherwise, and at most: agents read counters every few seconds.
const EVERY: Duration = Duration::from_secs(60);
const LEAST_EVERY: Duration = Duration::from_secs(1);

/// How often a device is walked anew.
const WALK_EVERY: Duration = Duration::from_secs(3600);

/// How long one look at a device may take, a walk with it: a thousand ports of 30 ms.
const WITHIN: Duration = Duration::from_secs(30);

/// Readings that are further apart than so many intervals say nothing of the last one.
const MOST_INTERVALS: u32 = 3;

/// Of uptimes in hundredths of a second.
const TICKS_A_DAY: f64 = 8_640_000.0;

struct Device {
    access: Access,
    state: Mutex<Option<State>>,
}

/// Its settings alone, by which one is known to be another.
impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.access.fmt(f)
    }
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    Ok(Box::new(Device {
        access: Access::read(settings)?,
        state: Mutex::new(None),
    }))
}

impl Kind for Device {
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let mut kept = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let to = far.at(self.access.port);
        if kept.as_ref().is_some_and(|state| state.to != to) {
            *kept = None;
        }
        let state = match &mut *kept {
            Some(state) => state,
            none => none.insert(State::new(to, self.access.credentials()?)?),
        };
        let mut probed = Probed::now();
        let begun = Instant::now();
        state.client.begin(WITHIN);
        match state.head() {
            Ok(head) => {
                probed.value = Some(begun.elapsed().as_secs_f64());
                probed.series = state.series(&head, &self.access.ports, far.every);
            }
            Err(error @ (AskError::Local(_) | AskError::Key)) => return Err(error.to_string()),
            Err(error) => {
                probed.why = Some(error.to_string());
                // It may have another password now, and be another engine.
                let client = Client::new(to, self.access.credentials()?);
                state.client = client.map_err(|error| error.to_string())?;
            }
        }
        Ok(probed)
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn check(&self, every: Duration) -> Result<(), String> {
        match every < LEAST_EVERY {
            true => Err("a device is asked every second at most".to_owned()),
            false => Ok(()),
        }
    }

    fn has_series(&self) -> bool {
        true
    }

    fn series(&self, name: &str) -> Option<Unit> {
        series::unit(name)
    }

    fn warning(&self) -> Option<&'static str> {
        self.access.warning()
    }
}

/// What each look begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    /// Of the agent, in hundredths of a second.
    uptime: u32,
    /// Of the host where it is known, in hundredths of a second.
    host_uptime: Option<u32>,
    /// By which a change of the ports is known: their number, and when their table changed.
    ports: (Option<u64>, Option<u32>),
}

/// What was walked, and when.
#[derive(Debug)]
struct Walked {
    inventory: Inventory,
    ports: Vec<Port>,
    head: Head,
    at: Instant,
}

/// What is known of a device between two looks.
#[derive(Debug)]
struct State {
    to: SocketAddr,
    client: Client,
    begun: Instant,
    walked: Option<Walked>,
    /// Names of ports that were watched.
    watched: BTreeSet<String>,
    /// The last readings of ports, by their index and name.
    counts: BTreeMap<(u32, String), Counts>,
}

impl State {
    fn new(to: SocketAddr, credentials: Credentials) -> Result<Self, String> {
        Ok(Self {
            to,
            client: Client::new(to, credentials).map_err(|error| error.to_string())?,
            begun: Instant::now(),
            walked: None,
            watched: BTreeSet::new(),
            counts: BTreeMap::new(),
        })
    }

    fn head(&mut self) -> Result<Head, AskError> {
        let objects = [
            SYS_UP_TIME,
            HR_SYSTEM_UPTIME,
            IF_NUMBER,
            IF_TABLE_LAST_CHANGE,
        ];
        let objects: Vec<Oid> = objects.iter().filter_map(|object| object.of(0)).collect();
        let values = self.client.get(&objects)?.values;
        let mut bindings = objects.into_iter().zip(values);
        let mut next = || bindings.next().ok_or(AskError::Other);
        let uptime = next()?;
        Ok(Head {
            uptime: ticks(&uptime)?.ok_or(AskError::Type(
                uptime.0,
                uptime.1.type_words(),
                "TimeTicks",
            ))?,
            host_uptime: ticks(&next()?)?,
            ports: (gauge(&next()?)?, ticks(&next()?)?),
        })
    }

    /// Walks the device where that is due.
    fn walk(&mut self, head: &Head, patterns: &[String]) -> Result<(), AskError> {
        let is_fresh = self.walked.as_ref().is_some_and(|walked| {
            walked.at.elapsed() < WALK_EVERY
                && walked.head.ports == head.ports
                && walked.head.uptime <= head.uptime
        });
        if is_fresh {
            return Ok(());
        }
        // What was walked before serves no more where this fails: indexes may be of other ports now.
        self.walked = None;
        let inventory = Inventory::read(&mut self.client)?;
        let ports = inventory.chosen(patterns, &self.watched);
        self.watched = ports.iter().map(|port| port.name.clone()).collect();
        self.counts.retain(|(index, name), _| {
            ports
                .iter()
                .any(|port| (port.index, &port.name) == (*index, name))
        });
        self.walked = Some(Walked {
            inventory,
            ports,
            head: *head,
            at: Instant::now(),
        });
        Ok(())
    }

    /// All series of this look.
    fn series(&mut self, head: &Head, patterns: &[String], every: Duration) -> Vec<Seen> {
        let mut seen = Vec::new();
        let uptime = f64::from(head.host_uptime.unwrap_or(head.uptime));
        seen.push(Seen::of(series::UPTIME, Ok(uptime / TICKS_A_DAY)));
        if let Err(error) = self.walk(head, patterns) {
            seen.push(Seen::of("ports", Err(error.to_string())));
            return seen;
        }
        if let Some(walked) = &self.walked {
            for (what, why) in &walked.inventory.faults {
                seen.push(Seen::of(what, Err(why.clone())));
            }
            seen.extend(reading::of_node(&mut self.client, &walked.inventory));
            for port in &walked.ports {
                let read = reading::of_port(&mut self.client, port.index, self.begun);
                let key = (port.index, port.name.clone());
                match read {
                    Ok(read) => {
                        let before = self.counts.insert(key, read.counts.clone());
                        of_port(&port.name, &read, before.as_ref(), every, &mut seen);
                    }
                    Err(error) if error.is_of_question() => {
                        let name = format!("port {}", port.name);
                        seen.push(Seen::of(&name, Err(error.to_string())));
                    }
                    Err(error) => {
                        // The others would each take as long.
                        seen.push(Seen::of("ports", Err(error.to_string())));
                        break;
                    }
                }
            }
        }
        seen
    }
}

/// The series of a port from a reading and the one before it.
fn of_port(
    name: &str,
    read: &Reading,
    before: Option<&Counts>,
    every: Duration,
    seen: &mut Vec<Seen>,
) {
    let is_up = read.state == UP;
    let state = Seen::of(&series::state_of(name), Ok(f64::from(u8::from(is_up))));
    seen.push(Seen {
        state: Some(reading::state_words(read.state).to_owned()),
        ..state
    });
    // Without a reading before this one there is no interval yet, which is no fault.
    let Some(before) = before else {
        return;
    };
    let now = &read.counts;
    let found = match now.at.saturating_sub(before.at) > every * MOST_INTERVALS {
        true => Err("it was not read for more than three intervals"),
        false => rates(before, now),
    };
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            seen.push(Seen::of(&format!("port {name}"), Err(why.to_owned())));
            return;
        }
    };
    let mut add = |direction: &str, what: What, rate: &Rate, factor: f64| {
        if let Some(rate) = rate {
            let value = rate.map(|rate| rate * factor).map_err(str::to_owned);
            seen.push(Seen::of(&series::of_port(name, direction, what), value));
        }
    };
    let each = series::DIRECTIONS.iter().zip(&found.bps);
    let each = each.zip(found.errors_per_s.iter().zip(&found.discards_per_s));
    for ((direction, bps), (errors, discards)) in each {
        add(direction, What::Rate, bps, 1.0);
        if let (Some(speed), Some(Ok(_))) = (now.speed_bps, bps) {
            add(direction, What::Use, bps, 100.0 / speed);
        }
        add(direction, What::Errors, errors, 1.0);
        add(direction, What::Discards, discards, 1.0);
    }
}

#[cfg(test)]
mod tests;
