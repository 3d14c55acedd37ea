//! Processors: power saving, which of them serves which interrupt, what they did with received packets.

use plumb_model::results::host::{HostResult, InterruptLine};
use plumb_model::units::si;

use super::{Facts, list};
use crate::number;
use crate::tables::Kind::{Number, Sentence, Text};
use crate::tables::Table;

pub(super) fn tables(host: &HostResult) -> Vec<Table> {
    vec![power(host), interrupts(host), softnet(host)]
}

fn power(host: &HostResult) -> Table {
    let cpus = &host.cpus;
    let mut facts = Facts::new("Processors");
    facts.fact(
        "online",
        format!(
            "{} × {}",
            cpus.online,
            cpus.model.as_deref().unwrap_or("unknown")
        ),
    );
    let frequency = |what: &str, hz: Option<f64>| hz.map(|hz| format!("{what} {}", si(hz, "Hz")));
    let chosen = cpus.frequency_driver.as_ref();
    facts.fact(
        "frequency",
        match chosen {
            None => "not this kernel's to choose".to_owned(),
            Some(driver) => list([
                Some(format!("driver {driver}")),
                (!cpus.governors.is_empty())
                    .then(|| format!("governor {}", cpus.governors.join(" and "))),
                frequency("lowest now", cpus.frequency_hz),
                frequency("at most", cpus.max_frequency_hz),
            ]),
        },
    );
    facts.fact("energy preference", cpus.energy_preferences.join(", "));
    facts.fact(
        "sleep",
        list([
            cpus.idle_driver
                .as_ref()
                .map(|driver| format!("driver {driver}")),
            cpus.wake_s
                .map(|wake| format!("wakes from the deepest within {}", number::seconds(wake))),
        ]),
    );
    facts.into_table()
}

fn interrupts(host: &HostResult) -> Table {
    let mut table = Table::new(
        "Interrupts of interfaces, by processor",
        &[
            ("", Number),
            ("of", Text),
            ("name", Text),
            ("may be served by", Text),
            ("served", Sentence),
        ],
    );
    for line in &host.interrupts {
        table.row([
            line.number.to_string(),
            line.interface.clone(),
            line.name.clone(),
            line.allowed_cpus.clone().unwrap_or_default(),
            served(line),
        ]);
    }
    table
}

/// By whom an interrupt was served.
fn served(line: &InterruptLine) -> String {
    let counts = line.counts.iter().enumerate();
    let served = list(
        counts.map(|(cpu, count)| (*count > 0).then(|| format!("{count} by processor {cpu}"))),
    );
    if served.is_empty() {
        "never".to_owned()
    } else {
        served
    }
}

fn softnet(host: &HostResult) -> Table {
    let mut table = Table::new(
        "Received packets, by processor",
        &[
            ("", Text),
            ("processed", Number),
            ("dropped", Number),
            ("squeezed", Number),
            ("steered", Number),
            ("flow-limited", Number),
            ("waiting", Number),
        ],
    );
    for cpu in &host.softnet {
        table.row([
            format!("processor {}", cpu.cpu),
            cpu.processed.to_string(),
            cpu.dropped.to_string(),
            cpu.squeezed.to_string(),
            cpu.steered.to_string(),
            cpu.flow_limited.to_string(),
            cpu.backlog_packets.to_string(),
        ]);
    }
    table.note = Some(
        "Dropped: the backlog was full. Squeezed: the budget ended before the packets did. Steered: woken by another processor (RPS)."
            .to_owned(),
    );
    table
}
