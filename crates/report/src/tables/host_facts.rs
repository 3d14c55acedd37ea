//! All that was read of this machine, by section, for whom what `tables/host.rs` sums up is too little.

mod counters;
mod interfaces;
mod limits;
mod processors;
mod settings;
mod sockets;
mod wifi;

use plumb_model::results::host::HostResult;
use plumb_model::run::Run;

use super::Kind::{Sentence, Text};
use super::Table;
use super::host::{self, queues_of, results};
use crate::number;

/// A part of what is known of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSection {
    /// The machine, its clock and its memory.
    Machine,
    /// Hardware, driver, link, offloads, rings, counters of each interface.
    Interfaces,
    /// Radios.
    Wifi,
    /// Queueing disciplines.
    Queues,
    /// Counters of IP, TCP and UDP, with their meaning.
    Counters,
    /// Connections with what TCP knows of them, listeners, and who owns them.
    Sockets,
    /// What TCP remembers of addresses.
    Cached,
    /// Kernel variables.
    Sysctls,
    /// Processors: power saving, interrupts, received packets.
    Processors,
    /// What a busy machine runs out of, and fragments.
    Limits,
}

impl HostSection {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Machine,
        Self::Interfaces,
        Self::Wifi,
        Self::Queues,
        Self::Counters,
        Self::Sockets,
        Self::Cached,
        Self::Sysctls,
        Self::Processors,
        Self::Limits,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Interfaces => "interfaces",
            Self::Wifi => "wifi",
            Self::Queues => "queues",
            Self::Counters => "counters",
            Self::Sockets => "sockets",
            Self::Cached => "cached",
            Self::Sysctls => "sysctls",
            Self::Processors => "processors",
            Self::Limits => "limits",
        }
    }

    /// What stands for it where this machine has none.
    fn nothing(self) -> &'static str {
        match self {
            Self::Machine => "The machine told nothing of itself.",
            Self::Interfaces => "No interface is here.",
            Self::Wifi => "No interface here is a radio.",
            Self::Queues => "No interface has a queueing discipline.",
            Self::Counters => "No counter has counted.",
            Self::Sockets => "There is no socket.",
            Self::Cached => "TCP remembers no address.",
            Self::Sysctls => "No kernel variable could be read.",
            Self::Processors => "The processors told nothing.",
            Self::Limits => "No limit could be read.",
        }
    }

    fn tables(self, run: &Run) -> Vec<Table> {
        let each = |tables: fn(&HostResult) -> Vec<Table>| -> Vec<Table> {
            results(run).flat_map(tables).collect()
        };
        match self {
            Self::Machine => [vec![host::machine(run)], each(around)].concat(),
            Self::Interfaces => each(interfaces::tables),
            Self::Wifi => each(wifi::tables),
            Self::Queues => each(queues),
            Self::Counters => each(counters::tables),
            Self::Sockets => [each(sockets::tables), vec![host::listeners(run)]].concat(),
            Self::Cached => each(sockets::cached),
            Self::Sysctls => each(settings::tables),
            Self::Processors => each(processors::tables),
            Self::Limits => each(limits::tables),
        }
    }
}

/// The tables of one section, or of all.
pub(crate) fn tables(run: &Run, only: Option<HostSection>) -> Vec<Table> {
    let sections = HostSection::ALL.into_iter();
    sections
        .filter(|section| only.is_none_or(|only| only == *section))
        .flat_map(|section| {
            let mut tables = section.tables(run);
            tables.retain(|table| !table.rows.is_empty());
            if tables.is_empty() {
                tables.push(Table::new(section.nothing(), &[]));
            }
            tables.into_iter().map(Table::without_empty_columns)
        })
        .collect()
}

/// The clock, what this namespace shares, and what could not be read.
fn around(host: &HostResult) -> Vec<Table> {
    let mut facts = Facts::new("Clock");
    let clock = &host.clock;
    facts.fact("source", clock.source.clone());
    let estimated = clock.estimated_error_s.map(number::seconds);
    facts.fact("estimated error", estimated);
    facts.fact(
        "corrected by",
        clock
            .frequency_ppm
            .map(|ppm| format!("{} parts of a million", number::plain(ppm))),
    );
    let mut shared = Facts::new("Of the whole machine, not of this network namespace");
    shared.fact("facts", host.of_the_machine.join(", "));
    let mut unread = Facts::new("Not read");
    for missing in &host.unread {
        unread.fact(&missing.what, missing.why.clone());
    }
    [facts, shared, unread].map(Facts::into_table).into()
}

/// Queueing disciplines, and which others this kernel has.
fn queues(host: &HostResult) -> Vec<Table> {
    let mut kinds = Facts::new("Kinds of queues");
    let there = host.queue_kinds.as_ref().map(|kinds| kinds.join(", "));
    kinds.fact("this kernel has", there);
    vec![queues_of(host.qdiscs.iter()), kinds.into_table()]
}

/// A table of names and what is said of them.
struct Facts(Table);

impl Facts {
    fn new(title: impl Into<String>) -> Self {
        Self(Table::new(title, &[("", Text), ("", Sentence)]))
    }

    /// A fact, where it is known.
    fn fact(&mut self, name: &str, text: impl Into<Option<String>>) {
        if let Some(text) = text.into().filter(|text| !text.is_empty()) {
            self.0.row([name.to_owned(), text]);
        }
    }

    fn into_table(self) -> Table {
        self.0
    }
}

/// A switch in words.
fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// What is known of several things, parted by commas.
fn list(parts: impl IntoIterator<Item = Option<String>>) -> String {
    let known: Vec<_> = parts.into_iter().flatten().collect();
    known.join(", ")
}
