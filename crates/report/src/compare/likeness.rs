//! In what two Runs are not like with like, so that no difference of the measuring is taken for one of the path. What
//! plumb itself chose, as it chooses what a check measures next by what it found, is not among it.

use std::collections::BTreeSet;

use plumb_model::context::Phase;
use plumb_model::run::{LabBackend, LabChange, Measurement, Run};

use crate::heading::overrun_warning;
use crate::number;
use crate::phase::PHASES;
use crate::registry::{phase, shown};
use crate::show::Show;

/// Phases whose lengths differ by more than this share are not compared silently: a queue of
/// 700 ms takes ten seconds to fill, so a shorter phase sees less of it.
const SAME_LENGTH_RATIO: f64 = 0.1;

/// One sentence for each difference that bears on the numbers; the names of the two Runs follow a value.
pub(super) fn notes([first, second]: [&str; 2], a: &Run, b: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, before: String, after: String| {
        if before != after {
            notes.push(format!(
                "Not like with like: {what} was {before} {first} and {after} {second}."
            ));
        }
    };
    differ("the target", target(a), target(b));
    differ("the laboratory", scenario(a), scenario(b));
    differ("plumb", a.plumb.clone(), b.plumb.clone());
    for phase in PHASES {
        let load = |run| joined(run, phase, |result| result.load());
        if let (Some(before), Some(after)) = (load(a), load(b)) {
            differ(
                &format!("what loaded the {} phase", phase.name()),
                before,
                after,
            );
        }
    }
    let same_options = options(a) == options(b);
    // How long both directions are loaded at once follows from what was open before.
    let chosen = |phase: &Phase| !(same_options && *phase == Phase::Both);
    for phase in PHASES.into_iter().filter(chosen) {
        if let (Some(before), Some(after)) = (length_s(a, phase), length_s(b, phase))
            && (before - after).abs() > SAME_LENGTH_RATIO * before.max(after)
        {
            differ(
                &format!("the length of the {} phase", phase.name()),
                number::seconds(before),
                number::seconds(after),
            );
        }
    }
    for phase in PHASES.into_iter().filter(|_| !same_options) {
        let asked = |run| joined(run, phase, |result| result.asked());
        if let (Some(before), Some(after)) = (asked(a), asked(b)) {
            differ(
                &format!("what was asked for in the {} phase", phase.name()),
                before,
                after,
            );
        }
    }
    for (run, which) in [(a, first), (b, second)] {
        if overrun_warning(run).is_some() {
            notes.push(format!(
                "In the Run {which} the machine could not keep up with the laboratory."
            ));
        }
    }
    for (run, other, which) in [(a, b, first), (b, a, second)] {
        let theirs = changes(other);
        let own = changes(run).iter().filter(|c| !theirs.contains(c));
        let own: Vec<String> = own.map(|c| format!("{} {}", c.setting, c.after)).collect();
        if !own.is_empty() {
            let own = own.join(", ");
            notes.push(format!(
                "Changed only in the laboratory of the Run {which}: {own}."
            ));
        }
    }
    notes
}

/// The words of the command that bear on the numbers: all but where they were written.
fn options(run: &Run) -> Vec<&str> {
    let mut words = run.command.iter().map(String::as_str);
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-o" | "--output" => drop(words.next()),
            _ if word.starts_with("--output=") => {}
            _ => options.push(word),
        }
    }
    options
}

/// What was changed in the laboratory until the Run was made.
fn changes(run: &Run) -> &[LabChange] {
    let lab = run.local.lab.as_ref();
    lab.map_or(&[], |lab| &lab.changes)
}

fn target(run: &Run) -> String {
    run.target
        .as_ref()
        .map_or_else(|| "this host".to_owned(), |t| t.name.clone())
}

fn scenario(run: &Run) -> String {
    let lab = run.local.lab.as_ref();
    lab.map_or_else(
        || "none".to_owned(),
        |lab| {
            let by = match lab.backend {
                LabBackend::Emulated => "",
                LabBackend::Kernel => ", carried by the kernel",
            };
            let varied = if lab.drawn.is_empty() { "" } else { ", varied" };
            format!("{} (seed {}{varied}{by})", lab.scenario, lab.seed)
        },
    )
}

/// The measurements of a phase whose numbers are compared.
fn of_phase(run: &Run, of: Phase) -> impl Iterator<Item = &Measurement> {
    let plain = run.measurements.iter();
    let plain = plain.filter(|m| m.context.experiment.is_none());
    plain.filter(move |m| phase(m) == of)
}

/// What the results of a phase say of how they were made, each thing once.
fn joined(run: &Run, phase: Phase, say: fn(&dyn Show) -> Option<String>) -> Option<String> {
    let each: BTreeSet<_> = of_phase(run, phase).filter_map(|m| say(shown(m))).collect();
    (!each.is_empty()).then(|| each.into_iter().collect::<Vec<_>>().join(" with "))
}

/// The longest measurement of a loaded phase.
fn length_s(run: &Run, phase: Phase) -> Option<f64> {
    of_phase(run, phase)
        .filter(|m| shown(m).hangs_on_length())
        .map(|m| m.duration_s)
        .filter(|s| s.is_finite())
        .reduce(f64::max)
}
