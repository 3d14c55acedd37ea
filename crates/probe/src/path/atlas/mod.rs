//! Whose an address is and where: from files that the user has, of MaxMind's format (`maxmind.rs`) or
//! of text (`text.rs`); and how long a path over known places is (`distance.rs`).

use std::net::IpAddr;

mod distance;
mod entry;
mod maxmind;
mod text;

pub use distance::{distance, reject_impossible};
pub use entry::{Entry, degrees};
pub use text::TextError;

use maxmind::MaxMind;
use text::TextAtlas;

/// Why a file is no database, or not a sound one.
#[derive(Debug, thiserror::Error)]
pub enum AtlasError {
    /// A line of text says nothing.
    #[error(transparent)]
    Text(#[from] TextError),
    /// It is neither text nor of MaxMind's format.
    #[error("it is neither of MaxMind's format (.mmdb) nor text in UTF-8")]
    Neither,
    /// It is of MaxMind's format, and damaged.
    #[error("it is of MaxMind's format, but damaged: {0}")]
    MaxMind(#[from] maxminddb::MaxMindDbError),
}

/// Databases; by default none.
#[derive(Debug, Default)]
pub struct Atlas {
    sources: Vec<Source>,
}

#[derive(Debug)]
enum Source {
    Text(TextAtlas),
    MaxMind(MaxMind),
}

impl Atlas {
    /// Adds what a file holds. What those before it know of an address stands.
    ///
    /// # Errors
    /// When it is no database.
    pub fn add(&mut self, file: Vec<u8>) -> Result<(), AtlasError> {
        let source = if maxmind::is_of_this_format(&file) {
            Source::MaxMind(MaxMind::open(file)?)
        } else {
            let text = std::str::from_utf8(&file).map_err(|_| AtlasError::Neither)?;
            Source::Text(TextAtlas::parse(text)?)
        };
        self.sources.push(source);
        Ok(())
    }

    /// What is known of an address, each part from the first database that has it.
    ///
    /// # Errors
    /// When a database turns out to be damaged where the address is looked for.
    pub fn look_up(&self, address: IpAddr) -> Result<Entry, AtlasError> {
        let mut known = Entry::default();
        for source in &self.sources {
            let entry = match source {
                Source::Text(text) => text.look_up(address).cloned(),
                Source::MaxMind(database) => database.look_up(address)?,
            };
            let entry = entry.unwrap_or_default();
            if known.asn.is_none() {
                known.asn = entry.asn;
                known.name = entry.name.or(known.name);
            }
            known.place = known.place.or(entry.place);
        }
        Ok(known)
    }
}
