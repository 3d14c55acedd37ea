//! A mesh: several plumbs with one file measure each other. Each member measures its own row, from itself to all others, as
//! ordinary targets; what loads a path has a slot of its own in a table that all members compute alike ([`slots`]).

pub(crate) mod fetching;
pub(crate) mod row;
pub(crate) mod settings;
pub mod slots;

use std::path::PathBuf;

use plumb_wire::url::Url;
use slots::Table;

use crate::config::Target;
use crate::unit::Unit;

/// A mesh, as this member sees it.
#[derive(Debug, Clone)]
pub struct Mesh {
    pub name: String,
    /// All members, in the order of the file.
    pub members: Vec<Member>,
    /// Which of them this is.
    pub own: usize,
    /// What each member measures of each other, in the order of the file.
    pub probes: Vec<Probe>,
    /// When paths are loaded; without probes that load them there is nothing in it.
    pub table: Table,
    /// The same where members have the same file, in hexadecimal digits.
    pub digest: String,
}

/// A member, as the file has it.
#[derive(Debug, Clone)]
pub struct Member {
    pub name: String,
    /// A name, or an address.
    pub host: String,
    /// Where its page is.
    pub page: Option<Url>,
    /// The file with the key that its page asks for.
    pub page_key_file: Option<PathBuf>,
}

/// What is measured from each member to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// As the names of targets end.
    pub label: String,
    pub unit: Unit,
    /// Its place among those that load the path.
    pub heavy: Option<usize>,
}

impl Mesh {
    /// The heading that its targets stand under.
    pub fn group(&self) -> String {
        group(&self.name)
    }

    /// The name of the target by which `from` measures `to`.
    pub fn target_name(from: &str, to: &str, probe: &str) -> String {
        format!("{from} → {to} {probe}")
    }

    /// The member that this machine is.
    pub fn own_member(&self) -> Option<&Member> {
        self.members.get(self.own)
    }

    /// When in the frame a target is measured that loads the path; `None` for all others.
    pub fn slot_of(&self, target: &Target) -> Option<slots::Slot> {
        if !target.kind.is_load() || target.group.as_deref() != Some(self.group().as_str()) {
            return None;
        }
        let from = self.own_member()?;
        let of_probe = |probe: &Probe| {
            let heavy = probe.heavy?;
            let to = self.members.iter().position(|to| {
                target.name == Self::target_name(&from.name, &to.name, &probe.label)
            })?;
            self.table.slot(self.own, to, heavy)
        };
        self.probes.iter().find_map(of_probe)
    }
}

fn group(name: &str) -> String {
    format!("mesh {name}")
}
