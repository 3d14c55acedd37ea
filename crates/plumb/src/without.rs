//! What stands in the place of a part that this plumb was built without. Its verb is known, is not listed, and
//! answers that it is not there.

use std::ffi::OsString;

use clap::Args;
use plumb_model::run::Run;

use crate::usage;

/// Anything: whatever is written after the verb, the answer is the same.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

/// The answer; a verb and its cargo feature have the same name.
pub(crate) fn error(verb: &str) -> anyhow::Error {
    usage::wrong(format!(
        "this plumb was built without `plumb {verb}` (cargo feature `{verb}` of the crate plumb)"
    ))
}

/// Stands for the laboratory's mark of a Run: without one there is none to set.
pub(crate) struct Mark;

impl Mark {
    pub(crate) fn begin() -> Self {
        Self
    }

    pub(crate) fn set(&mut self, run: Run) -> Run {
        run
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::{CommandFactory as _, Parser as _};

    use crate::Cli;

    #[test]
    fn the_verb_is_known_and_not_listed() {
        let help = Cli::command().render_long_help().to_string();
        assert!(!help.contains("lab"), "{help}");
        for words in [&[][..], &["run", "cable", "--", "true"], &["--help"]] {
            let command = ["plumb", "lab"].iter().chain(words);
            assert!(Cli::try_parse_from(command).is_ok(), "{words:?}");
        }
    }
}
