//! Changing the cells of a running laboratory: all that one request asks, or nothing.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use jiff::Timestamp;
use plumb_link::chain::ChainError;
use plumb_link::settings::{Difference, SettingsError};
use plumb_link::spec::CellSpec;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;
use plumb_model::run::LabChange;
use plumb_model::units::BitRate;
use plumb_net::clock;

use crate::error::LabError;
use crate::instance::Instance;
use crate::scenario::{CellPath, LinkEnd, LinkSpec, SHAPER};
use plumb_model::direction::OneDirection;

/// Changes that are remembered, the latest: every Run carries them.
const MOST_CHANGES: usize = 100;

/// A cell, and the settings that it is to have.
struct Change {
    path: CellPath,
    values: BTreeMap<String, String>,
}

impl Instance {
    /// Changes the cell `LINK.up.CELL` or `LINK.down.CELL`; a shaper that is not there is added.
    /// Says what was done.
    ///
    /// # Errors
    /// When there is no such cell or setting.
    pub(crate) fn set(
        &self,
        cell: String,
        values: BTreeMap<String, String>,
    ) -> Result<Vec<String>, LabError> {
        let path = CellPath::try_from(cell).map_err(LabError::Control)?;
        self.change(&[Change { path, values }])
    }

    /// Puts shapers where the scenario's router would have them. Says what was done.
    ///
    /// # Errors
    /// When the scenario has no router that shapes, or a queue discipline is not emulated.
    pub(crate) fn shape(&self, actions: &[ShaperAction]) -> Result<Vec<String>, LabError> {
        let scenario = self.scenario();
        let router = scenario.router_shaper.as_ref().ok_or_else(|| {
            LabError::Control(format!(
                "the scenario '{}' has no router that could shape (router_shaper)",
                scenario.name
            ))
        })?;
        let changes: Vec<Change> = actions
            .iter()
            .map(|action| Change::shaper(action, router.end(action.direction)))
            .collect();
        self.change(&changes)?;
        let told = |(action, change): (&ShaperAction, &Change)| {
            format!(
                "{}: {} with {}, {} bytes of framing",
                change.path,
                BitRate::from_bps(action.rate_bps),
                action.qdisc,
                action.overhead_bytes
            )
        };
        Ok(actions.iter().zip(&changes).map(told).collect())
    }

    fn change(&self, changes: &[Change]) -> Result<Vec<String>, LabError> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        // First on paper, where all of it must hold.
        let mut planned = links.specs.clone();
        let mut plan = |change: &Change| {
            let ends = self.ends_of(&change.path)?.into_iter();
            let found = ends.map(|end| {
                let link = planned.iter_mut().find(|link| link.name == end.link);
                let link = link.ok_or_else(|| change.refused("there is no such link"))?;
                let found = change.plan(link, end.way)?;
                Ok((end, found))
            });
            found.collect::<Result<Vec<_>, LabError>>()
        };
        let differences = changes.iter().map(&mut plan);
        let differences = differences.collect::<Result<Vec<_>, LabError>>()?;
        let done = changes.iter().zip(&differences).map(|(change, found)| {
            let found = found.first().map_or(&[][..], |(_, found)| found);
            Ok(format!("{}{}", self.carry_out(change)?, told(found)))
        });
        let done = done.collect::<Result<_, LabError>>()?;
        let at = Timestamp::from_nanosecond(i128::from(clock::realtime_ns())).unwrap_or_default();
        for (change, found) in changes.iter().zip(differences) {
            let cell = &change.path.cell;
            for (end, found) in found {
                let found = found.into_iter().map(|found| LabChange {
                    at: format!("{at:.3}"),
                    setting: format!("{end}.{cell}.{}", found.key),
                    before: found.before,
                    after: found.after,
                });
                links.changes.extend(found);
            }
        }
        let surplus = links.changes.len().saturating_sub(MOST_CHANGES);
        links.changes.drain(..surplus);
        links.specs = planned;
        Ok(done)
    }

    /// The directions that have the cell: both, where they share it.
    fn ends_of(&self, path: &CellPath) -> Result<Vec<LinkEnd>, LabError> {
        let driver = &self.carrier(&path.end)?.driver;
        let ways = match driver.with(|carried| carried.chain.is_shared(&path.cell)) {
            true => vec![OneDirection::Up, OneDirection::Down],
            false => vec![path.end.way],
        };
        let end = |way| LinkEnd {
            link: path.end.link.clone(),
            way,
        };
        Ok(ways.into_iter().map(end).collect())
    }

    fn carry_out(&self, change: &Change) -> Result<String, LabError> {
        let Change { path, .. } = change;
        let name = path.cell.as_str();
        let pairs = change.pairs();
        let ends = self.ends_of(path)?;
        let mut added = false;
        for end in &ends {
            self.carrier(end)?
                .driver
                .with(|carried| {
                    let now = self.epoch.now();
                    if carried.chain.names().any(|known| known == name) || name != SHAPER {
                        return carried.chain.set(now, name, &pairs);
                    }
                    added = true;
                    let shaper = CellSpec::from_pairs(SHAPER, &pairs)?;
                    carried.chain.insert(now, Some(0), &shaper.into())
                })
                .map_err(|e| change.refused(e))?;
        }
        Ok(match (added, ends.len()) {
            (true, _) => format!("{path} added"),
            (false, 1) => format!("{path} set"),
            (false, _) => format!("{path} set, in both directions"),
        })
    }
}

/// What was changed, behind the words that something was.
fn told(differences: &[Difference]) -> String {
    let each = differences.iter().map(|d| match &d.before {
        Some(before) => format!("{} {before} → {}", d.key, d.after),
        None => format!("{} {}", d.key, d.after),
    });
    match each.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => ", as it was".to_owned(),
        each => format!(": {each}"),
    }
}

impl Change {
    fn shaper(action: &ShaperAction, end: &LinkEnd) -> Self {
        let framing = format!(
            "overhead {} mpu {}{}",
            action.overhead_bytes,
            action.mpu_bytes,
            match action.cells {
                Cells::None => "",
                Cells::Atm => " atm",
                Cells::Ptm => " ptm",
            }
        );
        let values = [
            ("rate", action.rate_bps.to_string()),
            ("queue", action.qdisc.clone()),
            ("framing", framing),
        ];
        Self {
            path: CellPath {
                end: end.clone(),
                cell: SHAPER.to_owned(),
            },
            values: values.map(|(key, value)| (key.to_owned(), value)).into(),
        }
    }

    fn pairs(&self) -> Vec<(&str, &str)> {
        let pairs = self.values.iter();
        pairs.map(|(key, value)| (&**key, &**value)).collect()
    }

    /// Makes it in what is written of a link. Says what is not as it was.
    fn plan(&self, link: &mut LinkSpec, way: OneDirection) -> Result<Vec<Difference>, LabError> {
        let refused = |e: SettingsError| self.refused(e);
        let (name, pairs) = (&self.path.cell, self.pairs());
        let cells = &mut link.chain_mut(way).0;
        match cells.iter_mut().find(|named| named.name == *name) {
            Some(named) => {
                let cell = named.cell.with(&pairs).map_err(refused)?;
                let differences = cell.differences(&named.cell);
                named.cell = cell;
                Ok(differences)
            }
            None if name == SHAPER => {
                let shaper = CellSpec::from_pairs(SHAPER, &pairs).map_err(refused)?;
                cells.insert(0, shaper.into());
                let asked = self.values.iter();
                Ok(asked
                    .map(|(key, value)| Difference {
                        key: key.clone(),
                        before: None,
                        after: value.clone(),
                    })
                    .collect())
            }
            None => Err(self.refused(ChainError::NoCell {
                name: name.clone(),
                cells: cells.iter().map(|named| named.name.clone()).collect(),
            })),
        }
    }

    fn refused(&self, why: impl std::fmt::Display) -> LabError {
        LabError::Control(format!("{}: {why}", self.path))
    }
}
