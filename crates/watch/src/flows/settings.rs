//! A `[[flows]]` of the file: where exporters send to, who they are, and what is kept.

use std::net::{IpAddr, SocketAddr};

use plumb_model::prefix::Prefix;
use toml::Spanned;

use crate::target::settings::{Entries, Settings, Wrong};

/// So many of the largest sums of each dimension and minute are kept, where nothing is said.
const TOP: usize = 50;

/// The most that can be asked for: a database grows by 3 GB a month with it.
const MOST_TOP: usize = 1000;

/// Prefixes of exporters in one file.
const MOST_EXPORTERS: usize = 1000;

/// The longest name, in characters.
const MOST_NAME: usize = 100;

/// A place that exporters send to.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSource {
    pub name: String,
    pub listen: SocketAddr,
    /// Who is listened to; without any, all.
    pub exporters: Vec<Prefix>,
    /// Whether hosts are kept, and not their prefixes alone.
    pub hosts: bool,
    /// How many of the largest of each dimension are kept.
    pub top: usize,
    /// One packet of so many is counted by exporters that do not say it.
    pub one_in: f64,
}

impl FlowSource {
    /// One with nothing set but the address.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            name: "flows".to_owned(),
            listen,
            exporters: Vec::new(),
            hosts: false,
            top: TOP,
            one_in: 1.0,
        }
    }

    /// Whether an exporter is listened to.
    pub(super) fn takes(&self, exporter: IpAddr) -> bool {
        self.exporters.is_empty() || self.exporters.iter().any(|one| one.contains(exporter))
    }

    /// Reads one of the file.
    pub(crate) fn read(entry: &Spanned<Entries>) -> Result<Self, Wrong> {
        let mut settings = Settings::new(entry.span(), entry.get_ref().clone());
        let name: String = settings.need("name", "name = \"what the page calls it\"")?;
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MOST_NAME || name.contains(char::is_control) {
            let why = format!("a name has 1 to {MOST_NAME} characters, and no control characters");
            return Err(settings.wrong("name", why));
        }
        let listen: String = settings.need("listen", "listen = \"0.0.0.0:2055\"")?;
        let Some(listen) = listen.parse().ok().filter(|at: &SocketAddr| at.port() > 0) else {
            let why = "write an address of this host and a port, such as \"0.0.0.0:2055\"";
            return Err(settings.wrong("listen", why));
        };
        let exporters: Vec<String> =
            settings.need("exporters", "exporters = [\"192.0.2.1\"], or prefixes")?;
        if !(1..=MOST_EXPORTERS).contains(&exporters.len()) {
            let why = format!("name 1 to {MOST_EXPORTERS} addresses or prefixes");
            return Err(settings.wrong("exporters", why));
        }
        let prefixes = exporters.iter().map(|text| {
            let no_prefix = |why| settings.wrong("exporters", format!("'{text}': {why}"));
            text.parse::<Prefix>().map_err(no_prefix)
        });
        let exporters = prefixes.collect::<Result<_, _>>()?;
        let hosts: Option<bool> = settings.take("hosts")?;
        let top: Option<usize> = settings.take("top")?;
        if top.is_some_and(|top| !(1..=MOST_TOP).contains(&top)) {
            return Err(settings.wrong("top", format!("top is 1 to {MOST_TOP}")));
        }
        let one_in: Option<u32> = settings.take("sampling")?;
        if one_in == Some(0) {
            let why = "sampling is 100 where one packet of 100 is counted, and 1 where all are";
            return Err(settings.wrong("sampling", why));
        }
        settings.end_of("[[flows]]")?;
        Ok(Self {
            name: name.to_owned(),
            listen,
            exporters,
            hosts: hosts.unwrap_or_default(),
            top: top.unwrap_or(TOP),
            one_in: one_in.map_or(1.0, f64::from),
        })
    }
}
