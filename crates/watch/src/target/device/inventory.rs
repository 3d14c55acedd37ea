//! What a device has: its ports, processors, memory and sensors, as it is walked now and then.

use std::collections::{BTreeMap, BTreeSet};

use plumb_wire::snmp::value::Binding;

use super::objects::{
    ENT_PHY_SENSOR_PRECISION, ENT_PHY_SENSOR_SCALE, ENT_PHY_SENSOR_TYPE, ENT_PHYSICAL_NAME,
    HR_PROCESSOR_LOAD, HR_STORAGE_RAM, HR_STORAGE_TYPE, IF_DESCR, IF_HIGH_SPEED, IF_NAME,
    IF_OPER_STATUS, IF_SPEED, IF_TYPE, Object,
};
use super::series::SensorKind;
use crate::glob;
use crate::snmp::client::{AskError, Client, gauge, identifier, integer, text};

/// Ports of a device that are watched, at most: a chassis full of line cards.
const MOST_PORTS: usize = 1000;

/// The type of a loopback interface (IANAifType-MIB, softwareLoopback).
const LOOPBACK: i64 = 24;

/// The state of a port that works (IF-MIB, ifOperStatus).
pub(super) const UP: i64 = 1;

/// A port, as it was when the device was walked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Port {
    pub(super) index: u32,
    /// Of this one alone among the device's ports.
    pub(super) name: String,
    pub(super) is_loopback: bool,
    pub(super) state: i64,
    pub(super) speed_bps: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sensor {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) kind: SensorKind,
    /// What its values are multiplied by.
    pub(super) scale: f64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Inventory {
    pub(super) ports: Vec<Port>,
    /// Where hrProcessorLoad has a row of each.
    pub(super) processors: Vec<u32>,
    /// Indexes of hrStorage that are main memory.
    pub(super) memory: Vec<u32>,
    pub(super) sensors: Vec<Sensor>,
    /// Tables that could not be read, and why; the tables of ports have to be.
    pub(super) faults: Vec<(&'static str, String)>,
}

impl Inventory {
    pub(super) fn read(client: &mut Client) -> Result<Self, AskError> {
        let mut faults = Vec::new();
        let ports = ports(client)?;
        let processors = column(client, HR_PROCESSOR_LOAD, integer);
        let processors = tolerated(processors, "processors", &mut faults)?;
        let storage = column(client, HR_STORAGE_TYPE, identifier);
        let storage = tolerated(storage, "storage", &mut faults)?.into_iter();
        let memory = storage.filter(|(_, kind)| HR_STORAGE_RAM.column().as_ref() == Some(kind));
        Ok(Self {
            ports,
            processors: processors.into_keys().collect(),
            memory: memory.map(|(index, _)| index).collect(),
            sensors: tolerated(sensors(client), "sensors", &mut faults)?,
            faults,
        })
    }

    /// The ports of these patterns, or where there is none those that are up and lead somewhere; and in any case those that
    /// were watched before.
    pub(super) fn chosen(&self, patterns: &[String], before: &BTreeSet<String>) -> Vec<Port> {
        let is_chosen = |port: &&Port| match patterns {
            [] => before.contains(&port.name) || (port.state == UP && !port.is_loopback),
            some => some
                .iter()
                .any(|pattern| glob::matches(pattern, &port.name)),
        };
        self.ports
            .iter()
            .filter(is_chosen)
            .take(MOST_PORTS)
            .cloned()
            .collect()
    }
}

/// What was read, or nothing where that table alone is wrong.
fn tolerated<T: Default>(
    read: Result<T, AskError>,
    what: &'static str,
    faults: &mut Vec<(&'static str, String)>,
) -> Result<T, AskError> {
    match read {
        Err(error) if error.is_of_question() => {
            faults.push((what, error.to_string()));
            Ok(T::default())
        }
        read => read,
    }
}

/// A column by its index, which is one number.
fn column<T>(
    client: &mut Client,
    object: Object,
    read: fn(&Binding) -> Result<Option<T>, AskError>,
) -> Result<BTreeMap<u32, T>, AskError> {
    let Some(oid) = object.column() else {
        return Ok(BTreeMap::new());
    };
    let mut found = BTreeMap::new();
    for (index, value) in client.walk(&oid)? {
        let [number] = index[..] else {
            continue;
        };
        if let Some(own) = object.of(number)
            && let Some(value) = read(&(own, value))?
        {
            found.insert(number, value);
        }
    }
    Ok(found)
}

fn ports(client: &mut Client) -> Result<Vec<Port>, AskError> {
    let states = column(client, IF_OPER_STATUS, integer)?;
    let kinds = column(client, IF_TYPE, integer)?;
    let names = column(client, IF_NAME, text)?;
    let descriptions = column(client, IF_DESCR, text)?;
    let speeds = column(client, IF_SPEED, gauge)?;
    let high_speeds = column(client, IF_HIGH_SPEED, gauge)?;
    let mut taken = BTreeSet::new();
    let port = |(index, state): (u32, i64)| {
        let name = [names.get(&index), descriptions.get(&index)];
        let name = name.into_iter().flatten().find(|name| !name.is_empty());
        let mut name = name.cloned().unwrap_or_else(|| index.to_string());
        if !taken.insert(name.clone()) {
            name += &format!(" {index}");
        }
        Port {
            index,
            name,
            is_loopback: kinds.get(&index) == Some(&LOOPBACK),
            state,
            speed_bps: speed_bps(
                high_speeds.get(&index).copied(),
                speeds.get(&index).copied(),
            ),
        }
    };
    Ok(states.into_iter().map(port).collect())
}

/// The speed of a port by ifHighSpeed, in Mbit/s, or ifSpeed, in bit/s and at its end above 4.29 Gbit/s; `None` where neither
/// is known.
pub(super) fn speed_bps(high: Option<u64>, low: Option<u64>) -> Option<f64> {
    let high = high.filter(|mbps| *mbps > 0).map(|mbps| mbps as f64 * 1e6);
    let low = low.filter(|bps| *bps > 0 && *bps < u32::MAX.into());
    high.or_else(|| low.map(|bps| bps as f64))
}

fn sensors(client: &mut Client) -> Result<Vec<Sensor>, AskError> {
    let kinds = column(client, ENT_PHY_SENSOR_TYPE, integer)?;
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let scales = column(client, ENT_PHY_SENSOR_SCALE, integer)?;
    let precisions = column(client, ENT_PHY_SENSOR_PRECISION, integer)?;
    let names = column(client, ENT_PHYSICAL_NAME, text)?;
    let mut taken = BTreeSet::new();
    let sensor = |(index, kind): (u32, i64)| {
        let kind = SensorKind::of(kind)?;
        let name = names.get(&index).filter(|name| !name.is_empty());
        let mut name = name.cloned().unwrap_or_else(|| index.to_string());
        if !taken.insert(name.clone()) {
            name += &format!(" {index}");
        }
        let scale = scale(scales.get(&index).copied(), precisions.get(&index).copied());
        Some(Sensor {
            index,
            name,
            kind,
            scale,
        })
    };
    Ok(kinds.into_iter().filter_map(sensor).collect())
}

/// What a sensor's numbers are multiplied by: thousands by its scale, of which 9 is one, and tenths by its precision
/// (RFC 3433, EntitySensorDataScale and EntitySensorPrecision).
fn scale(scale: Option<i64>, precision: Option<i64>) -> f64 {
    let thousands = scale.unwrap_or(9).clamp(1, 17) - 9;
    let tenths = precision.unwrap_or(0).clamp(-8, 9);
    10f64.powi((3 * thousands - tenths) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_are_scaled_as_their_mib_says() {
        // 365 tenths of a degree, and -12345 thousandths of dBm in ten-thousandths.
        assert!((365.0 * scale(Some(9), Some(1)) - 36.5).abs() < 1e-9);
        assert!((-23_456.0 * scale(Some(8), Some(1)) + 2.3456).abs() < 1e-9);
        assert!((4.0 * scale(Some(10), None) - 4000.0).abs() < 1e-9);
    }

    #[test]
    fn the_speed_is_the_one_that_is_known() {
        assert_eq!(speed_bps(Some(10_000), Some(u32::MAX.into())), Some(1e10));
        assert_eq!(speed_bps(Some(0), Some(64_000)), Some(64_000.0));
        assert_eq!(speed_bps(None, Some(u32::MAX.into())), None);
        assert_eq!(speed_bps(Some(0), Some(0)), None);
    }

    #[test]
    fn ports_that_are_up_are_chosen_and_stay_so() {
        let port = |name: &str, state, is_loopback| Port {
            index: 1,
            name: name.to_owned(),
            is_loopback,
            state,
            speed_bps: None,
        };
        let inventory = Inventory {
            ports: vec![
                port("lo", UP, true),
                port("eth0", UP, false),
                port("eth1", 2, false),
            ],
            ..Inventory::default()
        };
        let names = |patterns: &[&str], before: &[&str]| -> Vec<String> {
            let [patterns, before] =
                [patterns, before].map(|all| all.iter().map(|one| (*one).to_owned()));
            let chosen = inventory.chosen(&patterns.collect::<Vec<_>>(), &before.collect());
            chosen.into_iter().map(|port| port.name).collect()
        };
        assert_eq!(names(&[], &[]), ["eth0"]);
        assert_eq!(names(&[], &["eth1"]), ["eth0", "eth1"]);
        assert_eq!(names(&["eth*", "lo"], &[]), ["lo", "eth0", "eth1"]);
    }
}
