//! The files in `certify/`: base lines, and changes that make them faulty or merely dirty.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::draw::Draws;

/// Which lines a trial is of: to write rules from, to choose between rules, and to certify them. They have no base
/// line and no seed in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Set {
    Fit,
    Choose,
    Certify,
}

impl Set {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Choose => "choose",
            Self::Certify => "certify",
        }
    }
}

/// What a line with a change is, each in a folder of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// It has a fault that a cause describes.
    Fault,
    /// It has a fault that no cause describes.
    Unknown,
    /// It looks like a fault that it has not.
    Twin,
    /// Nothing is wrong with it.
    Healthy,
    /// Two faults at once.
    Pair,
}

impl Role {
    const OF_FOLDERS: [(&'static str, Self); 4] = [
        ("faults", Self::Fault),
        ("unknown", Self::Unknown),
        ("twins", Self::Twin),
        ("healthy", Self::Healthy),
    ];
}

/// What `plumb check` must make of a line.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Causes of which one must come first; none where it must find nothing.
    #[serde(default)]
    pub(crate) first: Vec<String>,
    /// Places of which that finding must have one.
    #[serde(default, rename = "where")]
    pub(crate) places: Vec<String>,
    /// Why several names are right.
    #[serde(default)]
    pub(crate) because: String,
    /// Causes that it must not report as worth repairing.
    #[serde(default)]
    pub(crate) must_not: Vec<String>,
    /// Whether it holds the path back, so that an all-clear is wrong.
    #[serde(default = "yes")]
    pub(crate) matters: bool,
}

fn yes() -> bool {
    true
}

/// Cells of one or several directions of links: a cell changed, put in, or both where it takes the place of another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellEdit {
    /// Directions of links: `line.up` and others.
    pub(crate) on: Vec<String>,
    /// The cell, by its name or type, whose settings are replaced by the settings in `to`.
    pub(crate) change: Option<String>,
    #[serde(default)]
    pub(crate) to: Table,
    /// The cell that is taken out.
    pub(crate) remove: Option<String>,
    /// A cell that is put in.
    pub(crate) put: Option<Table>,
    /// Before which cell; at the end where neither this nor `after` is given.
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// A file: what it draws, what it changes of a line, and what must be made of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) about: String,
    /// Of a base line: what kind of line it is.
    #[serde(default)]
    pub(crate) kind: String,
    /// The kinds of base lines that it makes sense on.
    #[serde(default)]
    pub(crate) on: Vec<String>,
    /// The sets that it is for; all where none is named. A mechanism that is only in `certify` was never written from.
    #[serde(default)]
    pub(crate) sets: Vec<Set>,
    /// The parameter that says how severe it is, from hardly to badly or the other way round.
    pub(crate) graded: Option<String>,
    #[serde(default)]
    pub(crate) draw: Draws,
    #[serde(default)]
    pub(crate) cells: Vec<CellEdit>,
    /// Settings of nodes, by their names.
    #[serde(default)]
    pub(crate) nodes: Table,
    /// What is added to the scenario's lists: `[[add.traffic]]`.
    #[serde(default)]
    pub(crate) add: Table,
    /// Settings of the scenario itself.
    #[serde(default)]
    pub(crate) scenario: Table,
    #[serde(default)]
    pub(crate) expect: Expect,
}

/// Two faults that occur together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    pair: Vec<[String; 2]>,
}

/// Causes that cannot be distinguished in principle.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ambiguous {
    /// Their words; [`NOTHING`] is a line without a fault.
    pub(crate) causes: Vec<String>,
    pub(crate) reason: String,
}

/// What a line without a fault is called in a set.
pub(crate) const NOTHING: &str = "nothing";

impl Ambiguous {
    pub(crate) fn has(&self, cause: &str) -> bool {
        self.causes.iter().any(|one| one == cause)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sets {
    set: Vec<Ambiguous>,
}

/// All files of the folder.
pub(crate) struct Library {
    /// The network that every base line is made of.
    pub(crate) network: Table,
    pub(crate) bases: BTreeMap<String, (Set, Change)>,
    pub(crate) changes: BTreeMap<String, (Role, Change)>,
    pub(crate) pairs: Vec<[String; 2]>,
    pub(crate) ambiguous: Vec<Ambiguous>,
}

impl Library {
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut library = Self {
            network: parse(&folder.join("network.toml"))?,
            bases: BTreeMap::new(),
            changes: BTreeMap::new(),
            pairs: parse::<Pairs>(&folder.join("pairs.toml"))?.pair,
            ambiguous: parse::<Sets>(&folder.join("ambiguous.toml"))?.set,
        };
        for set in [Set::Fit, Set::Choose, Set::Certify] {
            let bases = files(&folder.join("bases").join(set.name()))?;
            let bases = bases.into_iter().map(|(name, base)| (name, (set, base)));
            library.bases.extend(bases);
        }
        for (name, role) in Role::OF_FOLDERS {
            let changes = files(&folder.join(name))?;
            let changes = changes
                .into_iter()
                .map(|(name, change)| (name, (role, change)));
            library.changes.extend(changes);
        }
        Ok(library)
    }
}

/// The files of a folder by their names; none where there is no such folder.
fn files(folder: &Path) -> anyhow::Result<Vec<(String, Change)>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    let read = paths.iter().map(|path| {
        let name = path.file_stem().context("a file without a name")?;
        Ok((name.to_string_lossy().into_owned(), parse(path)?))
    });
    read.collect()
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{}", path.display()))
}

/// Where the files are: `certify/` of the repository that this was built from.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../certify")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sets_that_are_ambiguous_have_a_reason_and_known_causes() {
        use plumb_model::finding::Cause;
        use plumb_model::vocabulary::Vocabulary as _;
        for set in Library::read(&folder()).unwrap().ambiguous {
            assert!(set.causes.len() > 1 && !set.reason.is_empty(), "{set:?}");
            for cause in &set.causes {
                let known = cause == NOTHING || Cause::of_word(cause).is_some();
                assert!(known, "{cause} is no cause");
            }
        }
    }

    #[test]
    fn every_file_says_what_must_be_made_of_it() {
        let library = Library::read(&folder()).unwrap();
        for (name, (role, change)) in &library.changes {
            let expect = &change.expect;
            let several = expect.first.len() > 1 || expect.places.len() > 1;
            assert!(!several || !expect.because.is_empty(), "{name}");
            let faulty = [Role::Fault, Role::Unknown].contains(role);
            assert!(!faulty || !expect.first.is_empty(), "{name}");
            assert!(*role != Role::Healthy || expect.first.is_empty(), "{name}");
            assert!(!change.on.is_empty(), "{name} is for no line");
            let graded = change.graded.as_ref();
            let drawn = graded.is_none_or(|graded| change.draw.contains_key(graded));
            assert!(drawn, "{name} draws nothing that says how severe it is");
        }
        for name in library.pairs.iter().flatten() {
            let role = library.changes.get(name).map(|(role, _)| *role);
            assert_eq!(role, Some(Role::Fault), "{name}");
        }
    }
}
