//! What listens to exporters, without the socket: it is shown each datagram, and sums up the flows in it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plumb_wire::flow_export::exporter::Exporter;

use super::minute::{Minute, Tops};
use super::settings::FlowSource;
use super::state::{ExporterState, State};

/// Exporters of one place: a large network has as many routers. One that is too much is refused, so that those who come first
/// stay, whatever addresses are forged later.
const MOST_EXPORTERS: usize = 256;

/// Addresses of those refused that are kept, to be named.
const MOST_REFUSED: usize = 8;

/// An exporter, and when its last message came, ms since 1970.
#[derive(Debug)]
struct Known {
    exporter: Exporter,
    last_ms: i64,
}

#[derive(Debug)]
pub struct Collector {
    source: FlowSource,
    since_ms: i64,
    exporters: BTreeMap<IpAddr, Known>,
    refused: u64,
    refused_from: Vec<IpAddr>,
    dropped: u64,
    sums: Minute,
}

impl Collector {
    pub fn new(source: FlowSource, now_ms: i64) -> Self {
        Self {
            source,
            since_ms: now_ms,
            exporters: BTreeMap::new(),
            refused: 0,
            refused_from: Vec::new(),
            dropped: 0,
            sums: Minute::default(),
        }
    }

    pub fn source(&self) -> &FlowSource {
        &self.source
    }

    /// Takes a datagram that came at that time of day, ms since 1970.
    pub fn hear(&mut self, from: IpAddr, datagram: &[u8], now_ms: i64) {
        let from = from.to_canonical();
        if !self.exporters.contains_key(&from) {
            if !self.source.takes(from) || self.exporters.len() >= MOST_EXPORTERS {
                return self.refuse(from);
            }
            let known = Known {
                exporter: Exporter::default(),
                last_ms: now_ms,
            };
            self.exporters.insert(from, known);
        }
        let Some(known) = self.exporters.get_mut(&from) else {
            return;
        };
        known.last_ms = now_ms;
        let (sums, source) = (&mut self.sums, &self.source);
        // What is malformed the exporter counts.
        let _ = known.exporter.hear(datagram, now_ms, |flow| {
            let one_in = flow.one_in.unwrap_or(source.one_in);
            sums.add(from, flow, one_in, source.hosts);
        });
    }

    fn refuse(&mut self, from: IpAddr) {
        self.refused += 1;
        if self.refused_from.len() < MOST_REFUSED && !self.refused_from.contains(&from) {
            self.refused_from.push(from);
        }
    }

    /// Notes how many datagrams the socket dropped since it was opened.
    pub fn note_dropped(&mut self, dropped: u64) {
        self.dropped = dropped;
    }

    /// The largest sums so far.
    pub fn tops(&self) -> Tops {
        self.sums.tops(self.source.top)
    }

    /// The largest sums so far, and begins new ones.
    pub fn take_tops(&mut self) -> Tops {
        std::mem::take(&mut self.sums).tops(self.source.top)
    }

    pub fn state(&self) -> State {
        let exporters = self.exporters.iter();
        let exporters = exporters
            .map(|(address, known)| ExporterState::of(*address, &known.exporter, known.last_ms));
        State {
            since_s: self.since_ms.div_euclid(1000),
            exporters: exporters.collect(),
            refused: self.refused,
            refused_from: self.refused_from.clone(),
            dropped: self.dropped,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
