//! Counters as rates: interfaces first, then what is lost, refused or repaired, with its meaning.

use std::collections::{BTreeMap, BTreeSet};

use plumb_model::counter::{Sense, meaning};
use plumb_model::results::host::RatesResult;
use plumb_model::run::Run;

use crate::number;
use crate::registry::{Found, all};
use crate::show::{Place, Show, Tables};
use crate::table::Kind::{Number, Sentence, Text};
use crate::table::Table;

/// Ordinary counters that the others are compared with.
const TRAFFIC: [&str; 6] = [
    "TcpInSegs",
    "TcpOutSegs",
    "UdpInDatagrams",
    "UdpOutDatagrams",
    "TcpActiveOpens",
    "TcpPassiveOpens",
];

/// Owners of counters that are no interfaces, though their counters are named in the same form.
const NO_INTERFACES: [&str; 4] = ["softnet", "processor", "control_group", "connections"];

impl Show for RatesResult {
    /// The averages of the last.
    fn tables(&self, run: &Run, tables: &mut Tables) {
        // Those beside a load are for the rules.
        let by_themselves = |found: &Found<'_, Self>| found.measurement.context.phase.is_none();
        let last = all::<Self>(run).filter(by_themselves).last();
        let averages = last.map(|found| {
            let title = format!(
                "Counters as rates, average of {} in {}",
                match found.result.intervals {
                    1 => "one interval".to_owned(),
                    several => format!("{several} intervals"),
                },
                number::seconds(found.measurement.duration_s)
            );
            of(title, &found.result.per_s)
        });
        tables.add(Place::CounterRates, averages);
    }
}

/// One interval, or an average of several.
pub(crate) fn of(title: String, per_s: &BTreeMap<String, f64>) -> Table {
    let mut table = Table::new(title, &[("", Text), ("", Number), ("", Sentence)]);
    // An interface's name may have points of its own; its counters' have none.
    let parts: Vec<(&str, &str)> = per_s
        .keys()
        .filter_map(|name| name.rsplit_once('.'))
        .filter(|(owner, _)| {
            let first = owner.split('.').next().unwrap_or_default();
            !NO_INTERFACES.contains(&first)
        })
        .collect();
    let interfaces: BTreeSet<&str> = parts.iter().map(|(owner, _)| *owner).collect();
    for interface in interfaces {
        let value = |counter: &str| {
            per_s
                .get(&format!("{interface}.{counter}"))
                .copied()
                .unwrap_or(0.0)
        };
        for (way, prefix) in [("in", "rx"), ("out", "tx")] {
            let packets = value(&format!("{prefix}_packets"));
            if packets > 0.0 {
                table.row([
                    format!("{interface} {way}"),
                    number::rate(value(&format!("{prefix}_bytes")) * 8.0),
                    format!("{} packets/s", number::plain(packets.round())),
                ]);
            }
        }
        let others = parts.iter().filter(|(owner, counter)| {
            *owner == interface
                && !counter.ends_with("_packets")
                && !counter.ends_with("_bytes")
                && *counter != "multicast"
        });
        for (_, counter) in others {
            table.row([
                format!("{interface} {counter}"),
                each_second(value(counter)),
                "of the interface: errors, drops".to_owned(),
            ]);
        }
    }
    for (name, value) in per_s {
        if let Some(counter) = name
            .strip_prefix("softnet.")
            .filter(|name| !name.ends_with(".processed"))
        {
            table.row([
                format!("softnet {counter}"),
                each_second(*value),
                "received packets dropped at, or rounds cut short on, that processor".to_owned(),
            ]);
        }
    }
    for (name, value) in per_s {
        let Some(counter) = meaning(name) else {
            continue;
        };
        if counter.sense != Sense::Normal || TRAFFIC.contains(&name.as_str()) {
            table.row([
                name.clone(),
                each_second(*value),
                counter.meaning.to_owned(),
            ]);
        }
    }
    if table.rows.is_empty() {
        table.row([
            "nothing".to_owned(),
            String::new(),
            "no interface carried anything, no counter that is shown changed".to_owned(),
        ]);
    }
    table
}

fn each_second(value: f64) -> String {
    let digits = if value < 10.0 { 1 } else { 0 };
    format!("{value:.digits$} /s")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_interface_is_two_lines_and_its_losses() {
        let per_s = [
            ("eth0.100.rx_bytes", 1.25e6),
            ("eth0.100.rx_packets", 900.4),
            ("eth0.100.rx_dropped", 3.0),
            ("softnet.cpu1.dropped", 20.0),
            ("softnet.cpu1.processed", 900.0),
            ("TcpRetransSegs", 0.5),
            ("TcpExtTCPRcvCoalesce", 700.0),
        ];
        let per_s = per_s.map(|(name, value)| (name.to_owned(), value)).into();
        let table = of("now".into(), &per_s);
        let cells: Vec<_> = table
            .rows
            .iter()
            .map(|r| (r.cells[0].as_str(), r.cells[1].as_str()))
            .collect();
        assert_eq!(
            cells,
            [
                ("eth0.100 in", "10.0 Mbit/s"),
                ("eth0.100 rx_dropped", "3.0 /s"),
                ("softnet cpu1.dropped", "20 /s"),
                ("TcpRetransSegs", "0.5 /s"),
            ]
        );
    }
}
