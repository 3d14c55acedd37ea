//! All flows of a stretch of time, summed up in every dimension.

use std::net::IpAddr;

use plumb_wire::flow_export::record::FlowRecord;

use super::dimension::Dimension;
use super::estimate::Sums;
use super::table::{Table, Top};

/// A stretch of time: a minute where flows are watched.
#[derive(Debug, Default)]
pub(super) struct Minute {
    tables: [Table; Dimension::ALL.len()],
}

/// What is left of it: of each dimension the largest sums.
pub type Tops = Vec<(Dimension, Top)>;

impl Minute {
    /// Adds a flow of an exporter, of which one packet of `one_in` was counted. Of which host it is, is forgotten unless `hosts`.
    pub(super) fn add(&mut self, exporter: IpAddr, flow: &FlowRecord, one_in: f64, hosts: bool) {
        let sums = Sums::of(flow, one_in);
        for (dimension, table) in Dimension::ALL.into_iter().zip(&mut self.tables) {
            table.add(dimension.key(exporter, flow, hosts), &sums);
        }
    }

    /// So many of the largest of each dimension, by bytes.
    pub(super) fn tops(&self, most: usize) -> Tops {
        let tables = Dimension::ALL.into_iter().zip(&self.tables);
        tables
            .map(|(dimension, table)| (dimension, table.top(most)))
            .collect()
    }
}
