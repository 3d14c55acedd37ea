//! What public servers the user agreed to measure with, each by itself. A check asks once, of one server; an answer that is for
//! good is kept.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use plumb_model::units::ByteCount;

use crate::stderr::{answer, say};

/// The answers, by name of the server: `name = true`.
const FILE: &str = "consent.toml";

/// Answers that were given.
#[derive(Debug)]
pub(super) struct Consents {
    file: Option<PathBuf>,
    given: BTreeMap<String, bool>,
}

/// What the user is asked, once a check.
pub(super) struct Question<'a> {
    /// The server that is measured with where the user agrees.
    pub(super) server: &'a str,
    /// What it learns and makes public.
    pub(super) publishes: &'a str,
    /// All public servers that nothing was said of: who wants none of them is not asked again.
    pub(super) public: &'a [&'a str],
    /// The most that is transferred.
    pub(super) most: ByteCount,
}

impl Question<'_> {
    fn text(&self) -> String {
        let others: Vec<&str> = self
            .public
            .iter()
            .copied()
            .filter(|name| *name != self.server)
            .collect();
        let others = match others.as_slice() {
            [] => String::new(),
            names => format!(" Others: --server {}.", names.join(", --server ")),
        };
        format!(
            "a check of the line needs a far end, and none was given. It can be the public server '{}', to and from which at most {} are \
             transferred. {}.{others}",
            self.server, self.most, self.publishes
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Once,
    Always,
    NotNow,
    Never,
}

impl Answer {
    /// The answer that a line is; whatever else it is, no.
    fn of(line: &str) -> Self {
        match line.trim().to_lowercase().as_str() {
            "o" | "once" | "y" | "yes" => Self::Once,
            "a" | "always" => Self::Always,
            "v" | "never" => Self::Never,
            _ => Self::NotNow,
        }
    }
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

    /// Asks the user, and keeps an answer that is for good.
    pub(super) fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<bool> {
        say(question.text());
        let answer = Answer::of(&answer("[o]nce, [a]lways, [N]ot now, ne[v]er? ")?);
        let kept = match answer {
            Answer::Always => Some((vec![question.server], true)),
            Answer::Never => Some((question.public.to_vec(), false)),
            Answer::Once | Answer::NotNow => None,
        };
        if let Some((servers, agreed)) = kept {
            let given = servers.into_iter().map(|name| (name.to_owned(), agreed));
            self.given.extend(given);
            if let Err(error) = self.keep() {
                say(format_args!("the answer is not remembered: {error:#}"));
            }
        }
        Ok(matches!(answer, Answer::Once | Answer::Always))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_answer_is_a_letter_or_a_word_and_else_no() {
        for (line, answer) in [
            ("o\n", Answer::Once),
            ("Once", Answer::Once),
            ("y", Answer::Once),
            ("a", Answer::Always),
            ("never", Answer::Never),
            ("v", Answer::Never),
            ("n", Answer::NotNow),
            ("", Answer::NotNow),
            ("maybe", Answer::NotNow),
        ] {
            assert_eq!(Answer::of(line), answer, "{line}");
        }
    }

    #[test]
    fn the_question_says_who_how_much_and_which_others_there_are() {
        let text = Question {
            server: "apple",
            publishes: "Apple sees your address",
            public: &["apple", "m-lab"],
            most: ByteCount::from_bytes(2_000_000_000),
        }
        .text();
        for part in [
            "'apple'",
            "at most 2.00 GB",
            "Apple sees your address.",
            "--server m-lab",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("--server apple"), "{text}");
    }
}
