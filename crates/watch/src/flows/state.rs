//! What is known of exporters, for people and programs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumb_wire::flow_export::exporter::Exporter;
use serde::{Deserialize, Serialize};

/// Who exports flows to one place, and what was lost, since it was begun to listen there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// When it was begun, s since 1970.
    pub since_s: i64,
    pub exporters: Vec<ExporterState>,
    /// Datagrams of others, and some of their addresses.
    pub refused: u64,
    pub refused_from: Vec<IpAddr>,
    /// Datagrams that this host dropped, because they were not read in time.
    pub dropped: u64,
}

/// What is known of one exporter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExporterState {
    pub address: IpAddr,
    pub protocols: Vec<String>,
    /// When its last message came, s since 1970.
    pub last_s: i64,
    pub messages: u64,
    pub flows: u64,
    /// Lost on the path here, by what the protocol counts: flows, datagrams, records.
    pub lost: BTreeMap<String, u64>,
    pub malformed: u64,
    pub begun_anew: u64,
    pub templates: u64,
    pub changed_templates: u64,
    pub refused_templates: u64,
    /// Sets of records whose template did not come.
    pub without_template: u64,
    /// How far its clock is behind this host's, and the time of the path here: now, least and most.
    pub clock_behind_ms: Option<[i64; 3]>,
    /// One packet of so many is counted, at least and at most.
    pub one_in: Option<[f64; 2]>,
    /// Flows of which the exporter did not say it.
    pub sampling_unknown: u64,
}

impl State {
    /// How many flows all exporters reported.
    pub fn flows(&self) -> u64 {
        self.exporters.iter().map(|one| one.flows).sum()
    }
}

/// A clock that is so far off makes the times of flows useless, in ms.
const CLOCK_OFF_MS: i64 = 10_000;

impl ExporterState {
    pub(super) fn of(address: IpAddr, exporter: &Exporter, last_ms: i64) -> Self {
        let seen = exporter.seen();
        let lost = seen.lost.iter().filter(|(_, count)| **count > 0);
        let lost = lost.map(|(protocol, count)| {
            let name = format!("{} {}", protocol.words(), protocol.counts());
            (name, *count)
        });
        Self {
            address,
            protocols: seen
                .protocols
                .iter()
                .map(|one| one.words().into())
                .collect(),
            last_s: last_ms.div_euclid(1000),
            messages: seen.messages,
            flows: seen.records,
            lost: lost.collect(),
            malformed: seen.malformed,
            begun_anew: seen.begun_anew,
            templates: exporter.templates() as u64,
            changed_templates: seen.changed_templates,
            refused_templates: seen.refused_templates,
            without_template: seen.without_template,
            clock_behind_ms: seen
                .behind
                .map(|behind| [behind.last_ms, behind.least_ms, behind.most_ms]),
            one_in: seen.one_in.map(|(least, most)| [least, most]),
            sampling_unknown: seen.sampling_unknown,
        }
    }

    /// How its flows are sampled, in words.
    pub fn sampling(&self) -> String {
        match self.one_in {
            Some([_, most]) if most <= 1.0 => "every packet".to_owned(),
            Some([least, most]) if least == most => format!("1 of {most}"),
            Some([least, most]) => format!("1 of {least} to {most}"),
            None => "not said".to_owned(),
        }
    }

    /// What is wrong with what it exports, in words; empty where nothing is.
    pub fn faults(&self) -> String {
        let lost = self.lost.iter();
        let lost = lost.map(|(what, count)| (*count, format!("lost ({what})")));
        let others = [
            (self.malformed, "malformed messages"),
            (self.begun_anew, "restarts"),
            (self.without_template, "sets without a template"),
            (self.changed_templates, "changed templates"),
            (self.refused_templates, "impossible templates"),
        ];
        let others = others.map(|(count, what)| (count, what.to_owned()));
        let counted = lost.chain(others).filter(|(count, _)| *count > 0);
        let mut faults: Vec<String> = counted
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if let Some([last_ms, ..]) = self.clock_behind_ms
            && last_ms.abs() >= CLOCK_OFF_MS
        {
            let off = if last_ms < 0 { "ahead" } else { "behind" };
            faults.push(format!("its clock is {} s {off}", last_ms.abs() / 1000));
        }
        faults.join(", ")
    }
}
