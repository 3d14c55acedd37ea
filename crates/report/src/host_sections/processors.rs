//! Processors: power saving, which of them serves which interrupt, what they did with received packets.

use plumb_model::results::host::{Cpus, InterruptLine, SoftnetCpu};
use plumb_model::units::si;

use crate::number;
use crate::table::{Facts, Table, blank, list};

pub(super) fn tables(
    cpus: &Cpus,
    interrupts: &[InterruptLine],
    softnet: &[SoftnetCpu],
) -> [Table; 3] {
    [
        power(cpus),
        self::interrupts(interrupts),
        self::softnet(softnet),
    ]
}

fn power(cpus: &Cpus) -> Table {
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

fn interrupts(lines: &[InterruptLine]) -> Table {
    Table::of("Interrupts of interfaces, by processor", lines)
        .num("", |line| line.number.to_string())
        .text("of", |line| line.interface.clone())
        .text("name", |line| line.name.clone())
        .text("may be served by", |line| blank(line.allowed_cpus.as_ref()))
        .sentence("served", |line| served(line))
        .done()
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

fn softnet(cpus: &[SoftnetCpu]) -> Table {
    const NOTE: &str = "Dropped: the backlog was full. Squeezed: the budget ended before the packets did. Steered: woken by another processor (RPS).";
    Table::of("Received packets, by processor", cpus)
        .text("", |cpu| format!("processor {}", cpu.cpu))
        .num("processed", |cpu| cpu.processed.to_string())
        .num("dropped", |cpu| cpu.dropped.to_string())
        .num("squeezed", |cpu| cpu.squeezed.to_string())
        .num("steered", |cpu| cpu.steered.to_string())
        .num("flow-limited", |cpu| cpu.flow_limited.to_string())
        .num("waiting", |cpu| cpu.backlog_packets.to_string())
        .noted(NOTE)
}
