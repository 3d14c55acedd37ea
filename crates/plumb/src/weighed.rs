//! How sure each finding of a Run is, and why a cause was found or was not, for those who ask.

use std::ffi::OsString;

use clap::Args;
use plumb_diagnose::explanation::explain;
use plumb_diagnose::{Case, weighing};
use plumb_model::finding::Cause;
use plumb_model::run::Run;
use plumb_model::vocabulary::Vocabulary as _;
use plumb_report::text::{self, Style};

/// A slip or two in a name: among so many, one is always a little like.
const NEAR: f64 = 0.7;

/// Names that are offered in place of one that nothing goes by.
const OFFERED: usize = 3;

#[derive(Args)]
pub(crate) struct Weighed {
    /// Show how the confidence of each finding adds up
    ///
    /// Of a cause: why it was found or was not, fact by fact, in ten lines. `plumb explain causes` has their names.
    #[arg(long, value_name = "CAUSE", num_args = 0..=1, require_equals = true, value_parser = cause)]
    explain: Option<Option<Cause>>,
}

impl Weighed {
    pub(crate) fn is_asked(&self) -> bool {
        self.explain.is_some()
    }

    /// Whether one cause is asked for.
    pub(crate) fn names_a_cause(&self) -> bool {
        matches!(self.explain, Some(Some(_)))
    }

    /// How the findings of a Run were weighed, or why a cause is or is not among them, as text where that was asked for.
    pub(crate) fn render(&self, run: &Run, style: &Style) -> String {
        let case = Case::of(run);
        match self.explain {
            None => String::new(),
            Some(None) => {
                let accounts = weighing::accounts(&case, &run.findings);
                text::render_accounts(&accounts, style)
            }
            Some(Some(cause)) => {
                text::render_explanation(&explain(&case, &run.findings, cause), style)
            }
        }
    }
}

/// A cause by its name.
fn cause(name: &str) -> Result<Cause, String> {
    let known = name.parse::<Cause>();
    known.map_err(|_| {
        let near = nearest(name);
        let meant = match near.as_slice() {
            [] => ".".to_owned(),
            names => format!("; did you mean {}?", names.join(" or ")),
        };
        format!("unknown cause{meant} All: plumb explain causes")
    })
}

/// Names of causes that are like a word or have it in them, the likest first.
fn nearest(word: &str) -> Vec<&'static str> {
    let like = |name: &str| match !word.is_empty() && name.contains(word) {
        true => 1.0,
        false => strsim::normalized_damerau_levenshtein(word, name),
    };
    let names = Cause::WORDS.iter().map(|(_, name)| *name);
    let mut near: Vec<&str> = names.filter(|name| like(name) >= NEAR).collect();
    near.sort_by(|a, b| like(b).total_cmp(&like(a)));
    near.truncate(OFFERED);
    near
}

/// Words with a cause behind `--explain` made its value: without a value the option leaves the next word, a host or a file, alone.
pub(crate) fn joined(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut words = words.into_iter();
    // What follows is another program's.
    for word in words.by_ref() {
        if word == "--" {
            joined.push(word);
            break;
        }
        let is_cause = word.to_str().is_some_and(|name| {
            let is_name = !name.starts_with('-') && !name.contains(['.', '/', ':']);
            is_name && !nearest(name).is_empty() && !std::path::Path::new(name).exists()
        });
        match joined.last_mut() {
            Some(option) if option == "--explain" && is_cause => {
                option.push("=");
                option.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined.extend(words);
    joined
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(typed: &str) -> Vec<String> {
        let typed = typed.split(' ').map(OsString::from);
        let joined = joined(typed).into_iter();
        joined.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_cause_behind_the_option_is_its_value_and_a_file_or_a_host_is_not() {
        assert_eq!(
            words("diagnose run.json --explain policer"),
            ["diagnose", "run.json", "--explain=policer"]
        );
        let slip = words("check host --explain polcer -q");
        assert_eq!(slip, ["check", "host", "--explain=polcer", "-q"]);
        for unchanged in [
            "diagnose --explain run.json",
            "check --explain far-end-7",
            "check host --explain -q",
            "explain policer",
            "lab run home -- other --explain policer",
        ] {
            let typed: Vec<&str> = unchanged.split(' ').collect();
            assert_eq!(words(unchanged), typed);
        }
    }

    #[test]
    fn what_is_no_cause_is_answered_with_the_nearest() {
        assert_eq!(cause("policer"), Ok(Cause::Policer));
        let slip = cause("polcer").unwrap_err();
        assert!(slip.contains("did you mean policer?"), "{slip}");
        let part = cause("bufferbloat").unwrap_err();
        assert!(
            part.contains("bufferbloat-down or bufferbloat-up"),
            "{part}"
        );
        let nothing = cause("zzzz").unwrap_err();
        assert_eq!(nothing, "unknown cause. All: plumb explain causes");
    }
}
