//! All that was read of this machine, by section, for whom what `kinds/host.rs` sums up is too little.

mod counters;
mod interfaces;
mod limits;
mod processors;
mod settings;
mod sockets;
mod wifi;

use plumb_model::results::host::{Clock, Unread};
use plumb_model::run::Run;
use plumb_model::vocabulary;
use plumb_model::vocabulary::Vocabulary as _;

use crate::kinds::host::{self, hosts};
use crate::number;
use crate::table::{Facts, Table};

vocabulary! {
    /// A part of what is known of a machine, in the order in which they are shown.
    pub enum HostSection {
        /// The machine, its clock and its memory.
        Machine = "machine",
        /// Hardware, driver, link, offloads, rings, counters of each interface.
        Interfaces = "interfaces",
        /// Radios, their stations and rates.
        Wifi = "wifi",
        /// Queueing disciplines of the interfaces.
        Queues = "queues",
        /// Counters of IP, TCP and UDP, with their meaning.
        Counters = "counters",
        /// Connections with what TCP knows of them, listeners, and who owns them.
        Sockets = "sockets",
        /// What TCP remembers of addresses.
        Cached = "cached",
        /// Kernel variables and their values.
        Sysctls = "sysctls",
        /// Processors: power saving, interrupts, received packets.
        Processors = "processors",
        /// What a busy machine runs out of, and fragments.
        Limits = "limits",
    }
}

impl HostSection {
    /// The sentence in its place where this machine has none.
    fn nothing(self) -> &'static str {
        match self {
            Self::Machine => "Nothing could be read of the machine.",
            Self::Interfaces => "No interface is here.",
            Self::Wifi => "No interface here is a radio.",
            Self::Queues => "No interface has a queueing discipline.",
            Self::Counters => "No counter has counted.",
            Self::Sockets => "There is no socket.",
            Self::Cached => "TCP remembers no address.",
            Self::Sysctls => "No kernel variable could be read.",
            Self::Processors => "Nothing could be read of the processors.",
            Self::Limits => "No limit could be read.",
        }
    }

    fn tables(self, run: &Run) -> Vec<Table> {
        let all: Vec<_> = hosts(run).collect();
        let each = all.iter();
        match self {
            Self::Machine => {
                let around = each.flat_map(|h| around(&h.clock, &h.of_the_machine, &h.unread));
                [host::machine(&all)].into_iter().chain(around).collect()
            }
            Self::Interfaces => each
                .flat_map(|h| interfaces::tables(&h.interfaces))
                .collect(),
            Self::Wifi => each.flat_map(|h| wifi::tables(&h.interfaces)).collect(),
            Self::Queues => each
                .flat_map(|h| {
                    [
                        host::queues(h.qdiscs.iter()),
                        kinds(h.queue_kinds.as_deref()),
                    ]
                })
                .collect(),
            Self::Counters => each.map(|h| counters::table(&h.counters)).collect(),
            Self::Sockets => {
                let listeners = all.iter().flat_map(|h| &h.sockets.listeners);
                let sockets = each.flat_map(|h| sockets::tables(&h.sockets, &h.socket_memory));
                sockets.chain([host::listeners(listeners)]).collect()
            }
            Self::Cached => each.map(|h| sockets::cached(&h.cached_metrics)).collect(),
            Self::Sysctls => each.flat_map(|h| settings::tables(&h.sysctls)).collect(),
            Self::Processors => each
                .flat_map(|h| processors::tables(&h.cpus, &h.interrupts, &h.softnet))
                .collect(),
            Self::Limits => each
                .flat_map(|h| {
                    let variable = |key: &str| h.sysctl(key);
                    [
                        limits::limits(&h.files, &h.neighbours, variable),
                        limits::fragments(&h.socket_memory, &h.counters, variable),
                    ]
                })
                .collect(),
        }
    }
}

/// The tables of one section, or of all.
pub(crate) fn tables(run: &Run, only: Option<HostSection>) -> Vec<Table> {
    let sections = HostSection::WORDS.iter();
    sections
        .map(|(section, _)| *section)
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
fn around(clock: &Clock, of_the_machine: &[String], unread: &[Unread]) -> [Table; 3] {
    let mut facts = Facts::new("Clock");
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
    shared.fact("facts", of_the_machine.join(", "));
    let mut missing = Facts::new("Not read");
    for one in unread {
        missing.fact(&one.what, one.why.clone());
    }
    [facts, shared, missing].map(Facts::into_table)
}

/// Which kinds of queueing disciplines this kernel has.
fn kinds(all: Option<&[String]>) -> Table {
    let mut kinds = Facts::new("Kinds of queues");
    kinds.fact("this kernel has", all.map(|kinds| kinds.join(", ")));
    kinds.into_table()
}
