//! One measurement in a twin: a lab that exists as long as it takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use plumb_lab::twin::{Loads, figures, pinged_s};
use plumb_model::finding::{Action, Actor, Finding, Fix, ShaperAction};
use plumb_model::results::rehearsal::PathFigures;
use plumb_model::run::Run;

use crate::output::{json, read_run};
use crate::save::save;

/// What runs in the twin's first host: the shapers, another host's probes, and the load.
const SCRIPT: &str = r#"
plumb=$1 own=$2 other=$3 shapers=$4 count=$5
shift 5
if [ -n "$shapers" ]; then
    "$plumb" lab apply "$shapers" >/dev/null || exit
fi
"$plumb" lab shell neighbour -- "$plumb" ping server --count "$count" --interval 50ms --quiet -o "$other" >/dev/null &
"$plumb" load server --up --down --quiet -o "$own" "$@" >/dev/null
status=$?
wait
exit $status
"#;

/// The interval of the other host's probes, in seconds, as in the script.
const INTERVAL_S: f64 = 0.05;

/// What `plumb load` takes beside its phases, in seconds: the idle path, and queues that empty.
pub(super) const AROUND_S: f64 = 9.0;

/// The most that one measurement may transfer: ten seconds of 10 Gbit/s in each direction, and some.
const BUDGET: &str = "30GB";

/// Streams in each direction at most: a lab's two processors carry no more without being late.
const MOST_STREAMS: u64 = 16;

/// Congestion controls that kernels have under these names; a far end may report anything.
const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];

/// Where measurements are made.
pub(super) struct InTwin<'a> {
    /// Folder for the files of the labs.
    pub(super) folder: &'a Path,
    pub(super) loads: Loads,
}

/// A scenario and what is done in it.
pub(super) struct Setup<'a> {
    pub(super) text: &'a str,
    pub(super) shapers: &'a [ShaperAction],
    pub(super) cc: Option<&'a str>,
}

/// What was measured, and what must be known of it.
pub(super) struct Seen {
    pub(super) figures: PathFigures,
    pub(super) notes: Vec<String>,
}

impl InTwin<'_> {
    /// How long one measurement takes, in seconds.
    pub(super) fn takes_s(&self) -> f64 {
        AROUND_S + 2.0 * self.loads.duration_s
    }

    /// Builds the lab, measures in it, and takes it down.
    pub(super) fn measure(&self, setup: &Setup<'_>) -> anyhow::Result<Seen> {
        let file = |name: &str| self.folder.join(name);
        let (own, other) = (file("own.json"), file("other.json"));
        for stale in [&own, &other] {
            let _ = std::fs::remove_file(stale);
        }
        let scenario = file("twin.toml");
        save(&scenario, setup.text)?;
        let shapers = self.shapers(setup.shapers)?;
        let plumb = std::env::current_exe()?;
        let count = (self.takes_s() / INTERVAL_S).round();
        let ended = Command::new(&plumb)
            .args(["lab", "run"])
            .arg(&scenario)
            .args(["--", "sh", "-c", SCRIPT, "sh"])
            .args([&plumb, &own, &other])
            .arg(shapers.unwrap_or_default())
            .arg(count.to_string())
            .args(["--duration", &format!("{}s", self.loads.duration_s)])
            .args([
                "--streams",
                &self.loads.streams.min(MOST_STREAMS).to_string(),
            ])
            .args(self.cc(setup).into_iter().flat_map(|cc| ["--cc", cc]))
            .args(["--budget", BUDGET])
            .stdin(Stdio::null())
            .output()
            .context("cannot run the lab")?;
        let said = String::from_utf8_lossy(&ended.stderr);
        if !own.exists() {
            match said.trim() {
                "" => bail!("the measurement ended with {}", ended.status),
                said => bail!("{said}"),
            }
        }
        let run = read_run(&own)?;
        let mut figures = figures(&run);
        figures.neighbour_rtt_s = match other.exists() {
            true => pinged_s(&read_run(&other)?),
            false => None,
        };
        let overrun = run.local.lab.as_ref().is_some_and(|lab| lab.overrun);
        let note = "This machine did not keep up with the twin: its numbers show the machine too.";
        Ok(Seen {
            figures,
            notes: overrun.then(|| note.to_owned()).into_iter().collect(),
        })
    }

    /// The congestion control to ask for: the fix's, else the Run's where a kernel has it under that name.
    fn cc<'b>(&'b self, setup: &'b Setup<'_>) -> Option<&'b str> {
        let own = Some(self.loads.cc.as_str()).filter(|name| CONTROLS.contains(name));
        setup.cc.or(own)
    }

    /// A Run that asks for these shapers and nothing else, for `plumb lab apply`.
    fn shapers(&self, shapers: &[ShaperAction]) -> anyhow::Result<Option<PathBuf>> {
        if shapers.is_empty() {
            return Ok(None);
        }
        let fixes = shapers
            .iter()
            .map(|shaper| Fix::advice(Actor::Router, "", "").by(Action::Shaper(shaper.clone())));
        let run = asking(fixes.collect());
        let file = self.folder.join("shapers.json");
        save(&file, json(&run)?)?;
        Ok(Some(file))
    }
}

/// A Run whose only finding has these fixes.
fn asking(fixes: Vec<Fix>) -> Run {
    use plumb_measure::record::{Judgement, Record};
    use plumb_model::finding::{Cause, Place, Severity};
    let mut run = Record::here(Vec::new()).finish(Judgement::AsAudited);
    run.findings.push(Finding {
        cause: Cause::QueueUnmanaged,
        place: Place::Path,
        severity: Severity::Info,
        confidence: 0.0,
        matters_for: Vec::new(),
        summary: String::new(),
        evidence: Vec::new(),
        fixes,
        kb: String::new(),
    });
    run
}
