//! The components of a path from this host to the far end, as the results of every kind fill them in.

use std::collections::BTreeMap;

/// What is known of each component. Who fills it in first is believed.
#[derive(Debug, Default)]
pub(crate) struct Map {
    /// What is known of this host.
    pub(crate) here: Vec<String>,
    /// The link from this host to its gateway.
    pub(crate) link: Vec<String>,
    /// The routers on the way, and the far end where its hop is known, by the time to live that ends there.
    hops: BTreeMap<u8, Hop>,
    /// What the lines beyond the gateway carry, wherever the narrowest of them is.
    pub(crate) lines: Vec<String>,
    /// The furthest hop that no load's packets wait before: what is known of the lines is of those behind it.
    pub(crate) clear_until: Option<u8>,
    /// The hop that the far end answered at.
    pub(crate) far_ttl: Option<u8>,
    /// What is known of the whole path.
    pub(crate) whole: Vec<String>,
}

/// A router on the way.
#[derive(Debug, Default)]
pub(crate) struct Hop {
    /// Its address, and its name behind it.
    pub(crate) name: Option<String>,
    pub(crate) facts: Vec<String>,
    /// What is known of the line before it.
    pub(crate) line: Vec<String>,
}

impl Map {
    pub(crate) fn hop(&mut self, ttl: u8) -> &mut Hop {
        self.hops.entry(ttl).or_default()
    }

    /// Notes that a load's packets wait behind a hop alone. The nearest of several loads' counts.
    pub(crate) fn clear_until(&mut self, ttl: u8) {
        self.clear_until = Some(self.clear_until.map_or(ttl, |known| known.min(ttl)));
    }

    /// Every hop that something is known of, from the nearest on.
    pub(crate) fn hops(&self) -> impl Iterator<Item = (u8, &Hop)> {
        self.hops.iter().map(|(ttl, hop)| (*ttl, hop))
    }
}

impl Hop {
    /// Its address, and its name where it has one; what is known already stays.
    pub(crate) fn is(&mut self, address: Option<&str>, name: Option<&str>) {
        if let (None, Some(address)) = (&self.name, address) {
            self.name = Some(match name {
                Some(name) => format!("{address}, {name}"),
                None => address.to_owned(),
            });
        }
    }
}

/// Adds a fact, once.
pub(crate) fn note(facts: &mut Vec<String>, fact: impl Into<Option<String>>) {
    if let Some(fact) = fact
        .into()
        .filter(|fact| !fact.is_empty() && !facts.contains(fact))
    {
        facts.push(fact);
    }
}
