//! What stands in the place of a part that this plumb was built without. Its verb is known, is not listed, and
//! answers that it is not there.

use std::ffi::OsString;

use clap::Args;
#[cfg(not(feature = "lab"))]
use plumb_model::run::Run;

/// Anything: whatever is written after the verb, the answer is the same.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<OsString>,
}

/// In the place of the laboratory's mark of a Run: without a laboratory there is no mark to set.
#[cfg(not(feature = "lab"))]
pub(crate) struct Mark;

#[cfg(not(feature = "lab"))]
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
    use clap::Parser as _;

    use crate::{Cli, command};

    #[test]
    fn the_verb_is_known_and_not_listed() {
        let help = command(true).render_long_help().to_string();
        let verbs = [
            ("lab", cfg!(feature = "lab")),
            ("rehearse", cfg!(feature = "lab")),
            ("shape", cfg!(feature = "shape")),
            ("tune", cfg!(feature = "tune")),
            ("watch", cfg!(feature = "watch")),
        ];
        for verb in verbs
            .into_iter()
            .filter_map(|(verb, here)| (!here).then_some(verb))
        {
            assert!(!help.contains(verb), "{help}");
            for words in [&[][..], &["run", "cable", "--", "true"], &["--help"]] {
                let command = ["plumb", verb].iter().chain(words);
                assert!(Cli::try_parse_from(command).is_ok(), "{verb} {words:?}");
            }
        }
    }
}
