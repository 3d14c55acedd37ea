//! What one member measured, its row of the matrix: as its own history has it, and as `/mesh.json` hands it to the others.
//! Documents of others are untrusted: what is not of this mesh, or no number that can be, is left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Mesh;
use crate::distribution::Distribution;
use crate::metrics::NOW_S;
use crate::store::{Store, StoreError};

/// The version of the document.
pub(crate) const SCHEMA: &str = "plumb.mesh/1";

/// What is no longer than four intervals ago counts as now.
const INTERVALS: i64 = 4;

/// What was measured from one member to another by one probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Why a row is none of this mesh.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRow {
    #[error("its page answers something else than a row of a mesh")]
    Other,
    #[error("it has another version of plumb, whose rows this one does not read")]
    Version,
    #[error("it is another member, or of another mesh: correct its page in the file")]
    Member,
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
    /// Reads what the page of that member answered.
    ///
    /// # Errors
    /// When it is no row of that member of this mesh.
    pub(crate) fn read(mesh: &Mesh, member: &str, text: &[u8]) -> Result<Self, NotRow> {
        #[derive(Deserialize)]
        struct Version {
            schema: String,
        }
        let version: Version = serde_json::from_slice(text).map_err(|_| NotRow::Other)?;
        if version.schema != SCHEMA {
            return match version.schema.starts_with("plumb.mesh/") {
                true => Err(NotRow::Version),
                false => Err(NotRow::Other),
            };
        }
        let mut row: Self = serde_json::from_slice(text).map_err(|_| NotRow::Other)?;
        if row.mesh != mesh.name || row.member != member {
            return Err(NotRow::Member);
        }
        let mut seen = std::collections::BTreeSet::new();
        row.cells.retain(|cell| {
            let is_known = cell.to != member
                && mesh.members.iter().any(|to| to.name == cell.to)
                && mesh.probes.iter().any(|probe| probe.label == cell.probe);
            let can_be = cell.lost <= cell.count
                && cell.median.is_none_or(f64::is_finite)
                && cell.median.is_some() == (cell.lost < cell.count);
            is_known && can_be && seen.insert((cell.to.clone(), cell.probe.clone()))
        });
        Ok(row)
    }

    pub(crate) fn cell(&self, to: &str, probe: &str) -> Option<&Cell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.to == to && cell.probe == probe)
    }
}
