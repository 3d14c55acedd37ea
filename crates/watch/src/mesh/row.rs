//! What one member measured, its row of the matrix: as its own history has it, and as `/mesh.json` hands it to the others.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Mesh;
use crate::distribution::Distribution;
use crate::metrics::NOW_S;
use crate::store::{Store, StoreError};

/// The version of the document.
pub(crate) const SCHEMA: &str = "plumb.mesh/1";

/// What is no longer than four intervals ago counts as now.
const INTERVALS: i64 = 4;

/// What was measured from one member to another by one probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cell {
    pub(crate) to: String,
    pub(crate) probe: String,
    /// Probes that were sent, in the last five minutes or four intervals.
    pub(crate) count: u64,
    pub(crate) lost: u64,
    /// The median, in the unit of the probe; without it nothing answered.
    pub(crate) median: Option<f64>,
}

/// A row of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) schema: String,
    pub(crate) mesh: String,
    pub(crate) member: String,
    /// Of the file, so that members with other ones are seen.
    pub(crate) digest: String,
    /// When it was made, s since 1970.
    pub(crate) at_s: i64,
    pub(crate) cells: Vec<Cell>,
}

/// The row of this member.
pub(crate) fn own(
    mesh: &Mesh,
    config: &crate::config::Config,
    store: &Store,
    now_s: i64,
) -> Result<Row, StoreError> {
    let own = mesh.own_member().map_or("", |own| own.name.as_str());
    let targets: BTreeMap<&str, _> = config
        .targets
        .iter()
        .map(|target| (target.name.as_str(), target))
        .collect();
    let mut cells = Vec::new();
    for to in mesh.members.iter().filter(|to| to.name != own) {
        for probe in &mesh.probes {
            let name = Mesh::target_name(own, &to.name, &probe.label);
            let Some(target) = targets.get(name.as_str()) else {
                continue;
            };
            let every_s = i64::try_from(target.every.as_secs()).unwrap_or(i64::MAX);
            let back_s = NOW_S.max(every_s.saturating_mul(INTERVALS));
            let samples = store.samples(&name, now_s.saturating_sub(back_s))?;
            let seen = Distribution::of(&samples);
            cells.push(Cell {
                to: to.name.clone(),
                probe: probe.label.clone(),
                count: seen.count,
                lost: seen.lost,
                median: seen.times.map(|times| times.p50_s),
            });
        }
    }
    Ok(Row {
        schema: SCHEMA.to_owned(),
        mesh: mesh.name.clone(),
        member: own.to_owned(),
        digest: mesh.digest.clone(),
        at_s: now_s,
        cells,
    })
}

impl Row {
    pub(crate) fn cell(&self, to: &str, probe: &str) -> Option<&Cell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.to == to && cell.probe == probe)
    }
}
