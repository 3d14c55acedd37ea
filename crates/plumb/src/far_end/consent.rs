//! What public servers the user agreed to measure with, each by itself; the answer is asked for once, and kept.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::stderr::{ask, say};

/// The answers, by name of the server: `name = true`.
const FILE: &str = "consent.toml";

/// Answers that were given.
#[derive(Debug)]
pub(super) struct Consents {
    file: Option<PathBuf>,
    given: BTreeMap<String, bool>,
}

impl Consents {
    /// Those kept in this folder; none where there is no folder to keep them in.
    pub(super) fn of(folder: Option<&Path>) -> anyhow::Result<Self> {
        let file = folder.map(|folder| folder.join(FILE));
        let text = match file.as_deref().map(std::fs::read_to_string) {
            None => String::new(),
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => String::new(),
            Some(text) => text.context("cannot read which servers were agreed to")?,
        };
        let given = toml::from_str(&text)
            .with_context(|| format!("{FILE} is no list of answers such as  m-lab = true"))?;
        Ok(Self { file, given })
    }

    /// The answer for a server, where one was given.
    pub(super) fn given(&self, server: &str) -> Option<bool> {
        self.given.get(server).copied()
    }

    /// Where the answers are kept.
    pub(super) fn place(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => FILE.to_owned(),
        }
    }

    /// Asks the user, and keeps the answer.
    pub(super) fn ask(&mut self, server: &str, publishes: &str) -> anyhow::Result<bool> {
        say(format_args!(
            "no far end was given. A check of the line may measure with the public server '{server}'. {publishes}."
        ));
        let agreed = ask(&format!("Measure with '{server}', now and from now on?"))?;
        self.given.insert(server.to_owned(), agreed);
        if let Err(error) = self.keep() {
            say(format_args!("the answer is not remembered: {error:#}"));
        }
        Ok(agreed)
    }

    fn keep(&self) -> anyhow::Result<()> {
        let file = self
            .file
            .as_deref()
            .context("there is no home for settings")?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let text = format!(
            "# Which public servers plumb may measure with. Take a line out to be asked again.\n{}",
            toml::to_string(&self.given)?
        );
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }
}
