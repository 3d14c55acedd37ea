//! How often plumb's verdict is right on lines that its rules were not written from: `make certify`.

mod cost;
mod counted;
mod draw;
mod expand;
mod fit;
mod judge;
mod kept;
mod lane;
mod library;
mod page;
mod quantity;
mod results;
mod run;
mod seed;
mod statistics;
mod trials;
mod words;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};

use library::{Library, Set};
use results::Results;
use trials::{Numbers, Trial};

#[derive(Parser)]
#[command(
    about = "How often plumb's verdict is right on lines that its rules were not written from"
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Names the trials of a set, and what became of those that ran
    List {
        #[command(flatten)]
        which: Which,
        /// Only those that are not right
        #[arg(long)]
        wrong: bool,
    },
    /// Prints the scenario of a trial
    Show {
        #[command(flatten)]
        which: Which,
    },
    /// Checks the lines of a set that were not checked yet
    Run {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        options: run::Options,
    },
    /// Writes the page with what was found
    Report {
        #[command(flatten)]
        which: Which,
    },
    /// Prints the table of how often each rule was right, of the set to fit, as the file that weighing reads
    Fit {
        #[command(flatten)]
        which: Which,
        /// Write it in place of the table that is there
        #[arg(long)]
        write: bool,
    },
    /// Judges the kept Runs anew, with the rules of today
    Replay {
        #[command(flatten)]
        which: Which,
    },
}

/// Which trials a verb is about.
#[derive(Args)]
struct Which {
    /// The set of lines
    #[arg(long, value_enum, default_value = "fit")]
    set: Set,
    /// Only trials whose name contains one of these
    #[arg(value_name = "NAME")]
    only: Vec<String>,
    /// Trials of each fault that a cause describes
    #[arg(long, default_value_t = 12)]
    faults: usize,
    /// Trials of each fault that none describes
    #[arg(long, default_value_t = 6)]
    unknown: usize,
    /// Trials of each false twin
    #[arg(long, default_value_t = 4)]
    twins: usize,
    /// Trials of healthy lines
    #[arg(long, default_value_t = 400)]
    healthy: usize,
    /// Trials of two faults at once
    #[arg(long, default_value_t = 100)]
    pairs: usize,
    /// Where results are appended [default: certify/results/SET.jsonl]
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

impl Which {
    fn results(&self) -> Results {
        let committed = || library::folder().join(format!("results/{}.jsonl", self.set.name()));
        Results::of(self.results.clone().unwrap_or_else(committed))
    }

    fn trials(&self, library: &Library) -> anyhow::Result<Vec<Trial>> {
        let numbers = Numbers {
            faults: self.faults,
            unknown: self.unknown,
            twins: self.twins,
            healthy: self.healthy,
            pairs: self.pairs,
        };
        let key = run::key(self.set)?;
        let mut trials = trials::trials(library, self.set, numbers, &key);
        trials.retain(|trial| self.asks_for(&trial.id()));
        Ok(trials)
    }

    fn asks_for(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| id.contains(part.as_str()))
    }
}

fn main() -> anyhow::Result<()> {
    let library = Library::read(&library::folder())?;
    match &Arguments::parse().verb {
        Verb::List { which, wrong } => {
            let lines = which.results().read()?;
            for trial in which.trials(&library)? {
                let line = lines.iter().find(|line| line.trial.id() == trial.id());
                let said = line.map(|line| words::in_words(&library, line));
                if !wrong || said.as_ref().is_some_and(|said| !said.starts_with("right")) {
                    println!("{}\t{}", trial.id(), said.unwrap_or_default());
                }
            }
        }
        Verb::Show { which } => {
            let trials = which.trials(&library)?;
            let trial = trials.first().context("there is no such trial")?;
            print!("{}", expand::expand(&library, trial)?.text);
        }
        Verb::Run { which, options } => {
            run::run(
                &library,
                &which.trials(&library)?,
                &which.results(),
                options,
            )?;
        }
        Verb::Report { which } => {
            let lines = which.results().read()?;
            print!("{}", page::page(&library, which.set, &lines));
        }
        Verb::Fit { which, write } => {
            // The others are there to find out how good the table is.
            anyhow::ensure!(
                which.set == Set::Fit,
                "the table is made of the set to fit, and of no other"
            );
            let text = fit::file(&library, &which.results().read()?)?;
            match write {
                true => std::fs::write(fit::path(), text)?,
                false => print!("{text}"),
            }
        }
        Verb::Replay { which } => {
            let lines = which.results().read()?;
            print!("{}", kept::replay(&library, which.set, &lines)?);
        }
    }
    Ok(())
}
