//! Where scenarios come from: those that come with plumb, and files.

use std::io::Read;
use std::path::{Path, PathBuf};

use plumb_link::settings::{explain, nearest};

use super::{Scenario, contradictions, elements};
use crate::nearest::known;
use crate::problem::Problem;

/// The scenarios that come with plumb: name and text. The build script lists the files.
pub(super) const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The files that scenarios which come with plumb name.
const BUILT_IN_FILES: [(&str, &str); 1] = [(
    "traces/lte-like.trace",
    include_str!("../../../../scenarios/traces/lte-like.trace"),
)];

/// The most that is read of a file that a cell names: 160 bytes for each of the 100,000 samples that
/// a delay takes, 16 for each of the million opportunities that a trace does.
const MAX_FILE_BYTES: u64 = 16_000_000;

/// A scenario that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Neither built in nor a file.
    #[error("there is no scenario '{name}': {known}; or write the path of a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The text is no scenario; the message carries line and column.
    #[error("{origin}: {}", with_hint(source))]
    Syntax {
        /// File or built-in name.
        origin: String,
        source: Box<toml::de::Error>,
    },
    /// The text is a scenario that makes no network.
    #[error("{origin}{}: {problem}", at_line(*line))]
    Meaning {
        /// File or built-in name.
        origin: String,
        /// The line that it is in, from 1; none where the whole scenario is meant.
        line: Option<usize>,
        /// What is wrong, and what is allowed.
        problem: String,
    },
}

impl Scenario {
    /// All the scenarios that come with plumb.
    ///
    /// # Errors
    /// None, unless plumb was built with a broken one, which its tests would have shown.
    pub fn built_in() -> Result<Vec<Self>, ScenarioError> {
        BUILT_IN
            .iter()
            .map(|(name, text)| Self::parse(text, name))
            .collect()
    }

    /// Loads a scenario by its name, or from a file when `name` is a path.
    ///
    /// # Errors
    /// When there is none, or it is wrong.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        Self::parse(&Self::text(name)?, name)
    }

    /// The text of a scenario, as written.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn text(name: &str) -> Result<String, ScenarioError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Ok((*text).to_owned());
        }
        if !name.ends_with(".toml") && !name.contains('/') {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            return Err(ScenarioError::Unknown {
                name: name.to_owned(),
                known: match nearest(name, names.iter().copied()) {
                    // They are many.
                    Some(near) => format!("did you mean '{near}'? plumb lab list shows them all"),
                    None => known(name, &names, "scenarios"),
                },
            });
        }
        std::fs::read_to_string(name).map_err(|source| ScenarioError::Read {
            path: Path::new(name).to_owned(),
            source,
        })
    }

    /// Reads a scenario from its text; `origin` is what errors call it.
    ///
    /// # Errors
    /// When the text is wrong, with the line, or describes no network.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let meaning = |line, problem| ScenarioError::Meaning {
            origin: origin.to_owned(),
            line,
            problem,
        };
        let mut scenario: Self =
            toml::from_str(text).map_err(|source| match elements::line(text, &source) {
                Some(line) => meaning(Some(line), explain(source.message())),
                None => ScenarioError::Syntax {
                    origin: origin.to_owned(),
                    source: Box::new(source),
                },
            })?;
        let beside = Path::new(origin).parent().unwrap_or(Path::new(""));
        scenario
            .read_files(beside)
            .and_then(|()| contradictions::check(&scenario))
            .map_err(|problem| meaning(problem.line(text), problem.to_string()))?;
        Ok(scenario)
    }

    /// Reads the files that cells name; their paths start where the scenario is.
    fn read_files(&mut self, beside: &Path) -> Result<(), Problem> {
        for (number, link) in self.links.iter_mut().enumerate() {
            let up = link.up.0.iter_mut().enumerate().map(|cell| ("up", cell));
            let down = link.down.0.iter_mut().enumerate();
            for (way, (of_way, named)) in up.chain(down.map(|cell| ("down", cell))) {
                let Some(path) = named.cell.file().map(|file| beside.join(file)) else {
                    continue;
                };
                let refused = |problem: String| {
                    Problem::from(problem)
                        .of(format_args!(
                            "cell '{}' of link '{}'",
                            named.name, link.name
                        ))
                        .in_element(way, of_way)
                        .in_element("link", number)
                };
                let built_in = BUILT_IN_FILES
                    .iter()
                    .find(|(name, _)| path == Path::new(name));
                let text = match built_in {
                    Some((_, text)) => (*text).to_owned(),
                    None => read_text(&path)
                        .map_err(|e| refused(format!("cannot read {}: {e}", path.display())))?,
                };
                named
                    .cell
                    .take_file(&text)
                    .map_err(|e| refused(format!("{}: {e}", path.display())))?;
            }
        }
        Ok(())
    }
}

fn at_line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

/// The error as TOML shows it, and the nearest word that is known where one is not.
fn with_hint(error: &toml::de::Error) -> String {
    let message = error.message();
    let explained = explain(message);
    let hint = explained.strip_prefix(message).unwrap_or_default();
    format!("{}{hint}", error.to_string().trim_end())
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(MAX_FILE_BYTES).read_to_string(&mut text)? as u64 == MAX_FILE_BYTES {
        return Err(std::io::Error::other("it has 16 MB or more"));
    }
    Ok(text)
}
