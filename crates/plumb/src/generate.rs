//! `plumb generate`: completions for shells, and the manual, from the commands as they are.

mod manual;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command, Subcommand, ValueEnum};
use clap_complete::aot::{Shell, generate};

use crate::output::print;

/// Examples, for its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  plumb generate completions bash > \\
      ~/.local/share/bash-completion/completions/plumb
  plumb generate completions zsh > ~/.zfunc/_plumb     (in zsh's fpath)
  plumb generate completions fish > ~/.config/fish/completions/plumb.fish
  plumb generate man ~/.local/share/man/man1

The Debian package has all of them.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print what completes plumb's commands in a shell
    Completions { shell: CompletingShell },
    /// Write the manual, a page for each command, into a directory
    Man { directory: PathBuf },
}

/// A shell whose completions are tested.
#[derive(Clone, Copy, ValueEnum)]
enum CompletingShell {
    Bash,
    Zsh,
    Fish,
}

/// Of that command line.
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Completions { shell } => {
            let shell = match shell {
                CompletingShell::Bash => Shell::Bash,
                CompletingShell::Zsh => Shell::Zsh,
                CompletingShell::Fish => Shell::Fish,
            };
            let mut script = Vec::new();
            generate(shell, &mut command, "plumb", &mut script);
            print(&String::from_utf8(script)?)?;
        }
        What::Man { directory } => manual::write(command, directory)?,
    }
    Ok(ExitCode::SUCCESS)
}
