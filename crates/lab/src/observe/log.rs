//! The log: a line of JSON for each packet that left a link or was dropped in it.

use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use plumb_link::outcome::{End, Outcome};
use plumb_model::printable;
use serde::Serialize;

use super::tap::{Observation, Seen};
use crate::scenario::LinkEnd;
use plumb_model::direction::OneDirection;

/// Version of the log, in its first line.
const SCHEMA: &str = "plumb.lab-log/1";

/// A log of some directions.
pub(crate) struct Log(pub(crate) Observation);

#[derive(Serialize)]
struct Header<'a> {
    schema: &'a str,
    scenario: &'a str,
    seed: u64,
    /// CLOCK_REALTIME when the laboratory's clock was at zero.
    started_unix_ns: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    link: &'a str,
    way: OneDirection,
    /// The packet's number among those that came to this direction.
    packet: u64,
    entered_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_s: Option<f64>,
    /// Why it was dropped, and in which cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    marked: bool,
    /// Packets of the wire: a large segment is several.
    packets: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_port: Option<u16>,
}

/// In the place of lines that were not written in time.
#[derive(Serialize)]
struct Missed {
    missed: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Log {
    /// Writes the first line.
    pub(crate) fn begin(
        &self,
        out: &mut impl Write,
        scenario: &str,
        seed: u64,
        started_unix_ns: u64,
    ) -> io::Result<()> {
        let header = Header {
            schema: SCHEMA,
            scenario,
            seed,
            started_unix_ns,
        };
        line(out, &header)
    }

    /// Writes what comes within a time; `false` when that was nothing.
    pub(crate) fn write(&self, out: &mut impl Write, within: Duration) -> io::Result<bool> {
        let mut missed = self.0.missed();
        let next = self.0.next(within);
        let some = next.is_some();
        if let Some(Seen::Outcomes {
            of,
            outcomes,
            missed: not_kept,
        }) = next
        {
            missed += not_kept;
            for outcome in &outcomes {
                line(out, &Line::of(&of, outcome))?;
            }
        }
        if missed > 0 {
            line(out, &Missed { missed })?;
        }
        Ok(some)
    }
}

fn line(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(what)?;
    out.write_all(printable::json(&text).as_bytes())?;
    out.write_all(b"\n")
}

impl<'a> Line<'a> {
    fn of(end: &'a LinkEnd, outcome: &'a Outcome) -> Self {
        let (left, dropped, cell, marked) = match &outcome.end {
            End::Left { at, marked } => (Some(at.as_secs_f64()), None, None, *marked),
            End::Dropped { cell, cause } => (None, Some(cause.name()), Some(cell.as_str()), false),
        };
        let flow = outcome.flow;
        Self {
            link: &end.link,
            way: end.way,
            packet: outcome.number,
            entered_s: outcome.arrived.as_secs_f64(),
            left_s: left,
            dropped,
            cell,
            marked,
            packets: outcome.what.packets,
            bytes: outcome.what.bytes,
            source: flow.map(|f| f.source),
            destination: flow.map(|f| f.destination),
            protocol: flow.map(|f| f.protocol),
            source_port: flow.map(|f| f.source_port),
            destination_port: flow.map(|f| f.destination_port),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::observe::Wants;
    use plumb_link::stats::{Count, DropCause};
    use plumb_link::time::Time;

    fn outcome(number: u64) -> Outcome {
        Outcome {
            number,
            arrived: Time::from_nanos(1_500_000_000),
            flow: None,
            what: Count {
                packets: 1,
                bytes: 1500,
            },
            end: End::Dropped {
                cell: "modem".to_owned(),
                cause: DropCause::Overflow,
            },
        }
    }

    #[test]
    fn a_line_for_each_and_one_for_those_that_were_missed() {
        let log = Log(Observation::new());
        let mut tap = log
            .0
            .tap("line.up".to_owned().try_into().unwrap(), Wants::Outcomes);
        // More than the channel holds, and none is taken out.
        let too_many = crate::observe::tap::MOST_WAITING as u64 + 3;
        for number in 0..too_many {
            tap.outcomes(vec![outcome(number)], 0);
        }
        let mut out = Vec::new();
        log.write(&mut out, Duration::ZERO).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines[0],
            serde_json::json!({"link": "line", "way": "up", "packet": 0, "entered_s": 1.5,
                "dropped": "overflow", "cell": "modem", "packets": 1, "bytes": 1500})
        );
        assert_eq!(lines[1], serde_json::json!({"missed": 3}));
        assert!(tap.is_live());
        drop(log);
        tap.outcomes(vec![outcome(0)], 0);
        assert!(!tap.is_live());
    }
}
