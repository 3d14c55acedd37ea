//! Running the trials of a set, several beside each other, for as long as there is time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::expand;
use crate::kept;
use crate::lane::{Laboratory, with_traces};
use crate::library::{Library, Set, folder};
use crate::results::{Line, Results};
use crate::trials::Trial;
use crate::words;

/// What decides how it runs, and not what comes of it.
#[derive(Args)]
pub(crate) struct Options {
    /// Trials beside each other
    #[arg(long, default_value_t = 3)]
    lanes: usize,
    /// After this time no trial begins
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// At most so many trials
    #[arg(long)]
    most: Option<usize>,
    /// Check also what was checked with other rules
    #[arg(long)]
    again: bool,
    /// Keep the Runs of a quarter of the trials, to be judged anew
    #[arg(long)]
    keep: bool,
    /// The plumb that is certified
    #[arg(long, value_name = "FILE", default_value = "target/release/plumb")]
    plumb: PathBuf,
    /// Where the files of labs go
    #[arg(long, value_name = "FOLDER", default_value = "target/certify")]
    folder: PathBuf,
    /// An argument for `plumb check`, such as --quick
    #[arg(long = "check", value_name = "ARGUMENT", allow_hyphen_values = true)]
    check: Vec<String>,
}

/// What the rules are: the tree of `crates/diagnose`, as git names it.
const RULES: &str = "crates/diagnose";

/// Checks the lines that were not checked yet.
pub(crate) fn run(
    library: &Library,
    trials: &[Trial],
    results: &Results,
    options: &Options,
) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(60 * options.minutes);
    let (rules, commit) = (rules()?, git(&["rev-parse", "--short", "HEAD"])?);
    let set = trials.first().context("there is no such trial")?.set;
    let known = results.read()?;
    let is_done = |trial: &Trial| {
        known.iter().any(|line| {
            let same = line.trial.id() == trial.id() && line.trial.seed == trial.seed;
            let counts = line
                .checked
                .as_ref()
                .is_some_and(|checked| !checked.lab.overrun);
            same && counts && (!options.again || line.rules == rules)
        })
    };
    let left: Vec<&Trial> = trials.iter().filter(|trial| !is_done(trial)).collect();
    println!("{} trials, {} of them left", trials.len(), left.len());
    let left = left.into_iter().take(options.most.unwrap_or(usize::MAX));
    let left = Mutex::new(left);
    let scenarios = folder().join("../scenarios");
    let labs = with_traces(options.folder.join(set.name()), &scenarios)?;
    let laboratory = Laboratory {
        plumb: &options.plumb,
        options: &options.check,
        folder: &labs,
    };
    let append = Mutex::new(());
    let lane = || -> anyhow::Result<()> {
        while Instant::now() < until {
            let Some(trial) = left.lock().ok().and_then(|mut left| left.next()) else {
                break;
            };
            let expansion = expand::expand(library, trial)?;
            let came = laboratory.check(trial, &expansion);
            let mut line = Line {
                trial: trial.clone(),
                rules: rules.clone(),
                commit: commit.clone(),
                at: jiff::Timestamp::now().to_string(),
                lanes: options.lanes,
                checked: None,
                failed: None,
            };
            match came {
                Ok((checked, run)) => {
                    if options.keep && kept::is_kept(trial) && !checked.lab.overrun {
                        kept::keep(trial, &run)?;
                    }
                    line.checked = Some(checked);
                }
                Err(why) => line.failed = Some(format!("{why:#}")),
            }
            let _alone = append.lock();
            results.append(&line)?;
            println!("{}: {}", trial.id(), words::in_words(library, &line));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..options.lanes.max(1))
            .map(|_| scope.spawn(lane))
            .collect();
        for lane in lanes {
            match lane.join() {
                Ok(ended) => ended?,
                Err(_) => bail!("a lane panicked"),
            }
        }
        Ok(())
    })
}

/// What the seeds of a set follow from: its name, and for lines that certify also the rules as they were committed,
/// so that no rule was written with these lines in view.
pub(crate) fn key(set: Set) -> anyhow::Result<String> {
    match set {
        Set::Fit | Set::Choose => Ok(String::new()),
        Set::Certify if rules()?.ends_with(CHANGED) => {
            bail!(
                "{RULES} has changes that are not committed: lines that certify are drawn from what is"
            )
        }
        Set::Certify => rules(),
    }
}

/// What marks rules that are not as they were committed.
const CHANGED: &str = "+";

/// As many digits of git's name are no coincidence.
const RULES_DIGITS: usize = 16;

fn rules() -> anyhow::Result<String> {
    let tree = git(&["rev-parse", &format!("HEAD:{RULES}")])?;
    let short: String = tree.chars().take(RULES_DIGITS).collect();
    let changed = !git(&["status", "--porcelain", "--", RULES])?.is_empty();
    Ok(format!("{short}{}", if changed { CHANGED } else { "" }))
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(arguments)
        .output();
    let output = output.context("git does not start")?;
    if !output.status.success() {
        bail!(
            "git {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
