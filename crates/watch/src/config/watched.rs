//! What is watched: targets, and the series that some of them have.

use std::sync::Arc;
use std::time::Duration;

use crate::target::kind::Kind;
use crate::target::series::Series;

/// One thing to probe.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    /// A name, or an address; empty where this machine alone is measured.
    pub host: String,
    /// What its kind is called.
    pub probe: &'static str,
    pub kind: Arc<dyn Kind>,
    pub every: Duration,
    /// A heading to show it under.
    pub group: Option<String>,
    /// The name of the target that all probes of this one pass.
    pub behind: Option<String>,
}

impl Target {
    /// Whether another one is probed as this is.
    pub fn is_probed_as(&self, other: &Self) -> bool {
        (&self.name, &self.host, self.every) == (&other.name, &other.host, other.every)
            && format!("{:?}", self.kind) == format!("{:?}", other.kind)
    }
}

/// The series of that name of one of the targets: their names, and behind that its own.
pub(super) fn series(targets: &[Target], name: &str) -> Option<Target> {
    targets.iter().find_map(|target| {
        let own = name.strip_prefix(&target.name)?.strip_prefix(' ')?;
        let unit = target.kind.series(own)?;
        Some(Target {
            name: name.to_owned(),
            kind: Arc::new(Series(unit)),
            behind: Some(target.name.clone()),
            ..target.clone()
        })
    })
}
