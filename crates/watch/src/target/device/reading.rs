//! What a device counts and measures at one time.

use std::time::Instant;

use plumb_wire::snmp::oid::Oid;
use plumb_wire::snmp::value::Binding;

use super::inventory::{Inventory, speed_bps};
use super::objects::{
    ENT_PHY_SENSOR_VALUE, HR_PROCESSOR_LOAD, HR_STORAGE_SIZE, HR_STORAGE_USED,
    IF_COUNTER_DISCONTINUITY_TIME, IF_HC_IN_OCTETS, IF_HC_OUT_OCTETS, IF_HIGH_SPEED,
    IF_IN_DISCARDS, IF_IN_ERRORS, IF_IN_OCTETS, IF_OPER_STATUS, IF_OUT_DISCARDS, IF_OUT_ERRORS,
    IF_OUT_OCTETS, IF_SPEED, Object, SYS_UP_TIME,
};
use super::rates::{Counts, Width};
use super::series;
use crate::snmp::client::{AskError, Client, counter32, counter64, gauge, integer, ticks};
use crate::target::kind::Seen;

/// Values of a node that are asked for together: of 20 bytes each they fit a datagram that is not fragmented.
const AT_ONCE: usize = 32;

/// A port at one time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) counts: Counts,
    /// The number of ifOperStatus.
    pub(super) state: i64,
}

/// The word of an operational state (IF-MIB, ifOperStatus).
pub(super) fn state_words(number: i64) -> &'static str {
    match number {
        1 => "up",
        2 => "down",
        3 => "testing",
        5 => "dormant",
        6 => "not present",
        7 => "down, as the layer below it",
        _ => "unknown",
    }
}

/// Reads the counters of a port in one question, so that they are of one time.
pub(super) fn of_port(
    client: &mut Client,
    index: u32,
    begun: Instant,
) -> Result<Reading, AskError> {
    let columns = [
        IF_OPER_STATUS,
        IF_HC_IN_OCTETS,
        IF_HC_OUT_OCTETS,
        IF_IN_OCTETS,
        IF_OUT_OCTETS,
        IF_IN_ERRORS,
        IF_OUT_ERRORS,
        IF_IN_DISCARDS,
        IF_OUT_DISCARDS,
        IF_HIGH_SPEED,
        IF_SPEED,
        IF_COUNTER_DISCONTINUITY_TIME,
    ];
    let columns = columns.iter().filter_map(|column| column.of(index));
    let objects: Vec<Oid> = SYS_UP_TIME.of(0).into_iter().chain(columns).collect();
    let answered = client.get(&objects)?;
    let mut bindings = objects.into_iter().zip(answered.values);
    let mut next = || bindings.next().ok_or(AskError::Other);
    let (uptime, state) = (next()?, next()?);
    let (wide_in, wide_out) = (counter64(&next()?)?, counter64(&next()?)?);
    let (narrow_in, narrow_out) = (counter32(&next()?)?, counter32(&next()?)?);
    let (width, bytes) = match wide_in.is_some() || wide_out.is_some() {
        true => (Width::Bits64, [wide_in, wide_out]),
        false => (Width::Bits32, [narrow_in, narrow_out]),
    };
    let errors = [counter32(&next()?)?, counter32(&next()?)?];
    let discards = [counter32(&next()?)?, counter32(&next()?)?];
    let (high_speed, speed) = (gauge(&next()?)?, gauge(&next()?)?);
    Ok(Reading {
        counts: Counts {
            at: answered.at.saturating_duration_since(begun),
            uptime: ticks(&uptime)?.unwrap_or_default(),
            began: ticks(&next()?)?,
            width,
            bytes,
            errors,
            discards,
            speed_bps: speed_bps(high_speed, speed),
        },
        state: integer(&state)?.unwrap_or_default(),
    })
}

/// Processors, memory and sensors of a device.
pub(super) fn of_node(client: &mut Client, inventory: &Inventory) -> Vec<Seen> {
    let mut seen = Vec::new();
    if !inventory.processors.is_empty() {
        let load = values(client, HR_PROCESSOR_LOAD, &inventory.processors, integer);
        let mean = load.map(|load| match load.len() {
            0 => Err("it has no load of its processors any more".to_owned()),
            count => {
                Ok(load.iter().map(|(_, percent)| *percent as f64).sum::<f64>() / count as f64)
            }
        });
        let value = mean.unwrap_or_else(|error| Err(error.to_string()));
        seen.push(Seen::of(series::PROCESSOR, value));
    }
    if !inventory.memory.is_empty() {
        let value = memory_percent(client, &inventory.memory);
        seen.push(Seen::of(series::MEMORY, value));
    }
    let sensors: Vec<u32> = inventory
        .sensors
        .iter()
        .map(|sensor| sensor.index)
        .collect();
    match values(client, ENT_PHY_SENSOR_VALUE, &sensors, integer) {
        Ok(found) => {
            for (index, value) in found {
                let sensor = inventory
                    .sensors
                    .iter()
                    .find(|sensor| sensor.index == index);
                seen.extend(sensor.map(|sensor| {
                    let name = format!("{} {}", sensor.kind.word(), sensor.name);
                    Seen::of(&name, Ok(value as f64 * sensor.scale))
                }));
            }
        }
        Err(error) => seen.push(Seen::of("sensors", Err(error.to_string()))),
    }
    seen
}

/// How much of its main memory is in use, with what it uses as a cache, in percent.
fn memory_percent(client: &mut Client, indexes: &[u32]) -> Result<f64, String> {
    let sum = |client: &mut Client, column| -> Result<u64, String> {
        let found = values(client, column, indexes, gauge).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|(_, units)| *units).sum())
    };
    let (size, used) = (sum(client, HR_STORAGE_SIZE)?, sum(client, HR_STORAGE_USED)?);
    match size {
        0 => Err("it has no size of its memory".to_owned()),
        size => Ok(used as f64 / size as f64 * 100.0),
    }
}

/// The values of a column at these indexes, of those that are there.
fn values<T>(
    client: &mut Client,
    column: Object,
    indexes: &[u32],
    read: fn(&Binding) -> Result<Option<T>, AskError>,
) -> Result<Vec<(u32, T)>, AskError> {
    let mut found = Vec::new();
    for some in indexes.chunks(AT_ONCE) {
        let objects: Vec<Oid> = some.iter().filter_map(|index| column.of(*index)).collect();
        let values = client.get(&objects)?.values;
        for ((index, oid), value) in some.iter().zip(objects).zip(values) {
            if let Some(value) = read(&(oid, value))? {
                found.push((*index, value));
            }
        }
    }
    Ok(found)
}
