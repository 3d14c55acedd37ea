//! In what two Runs are not like with like, so that nobody reads a cause into a difference of
//! the measuring.

use std::collections::BTreeSet;

use plumb_model::results::Outcome;
use plumb_model::run::{LabBackend, LabChange, Run};

use crate::number;
use crate::view::{self, Phase};

/// Phases whose lengths differ by more than this share are not compared silently: a queue of
/// 700 ms takes ten seconds to fill, so a shorter phase sees less of it.
const SAME_LENGTH_RATIO: f64 = 0.1;

/// One sentence for each difference that bears on the numbers.
pub(super) fn notes(a: &Run, b: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, before: String, after: String| {
        if before != after {
            notes.push(format!(
                "Not like with like: {what} was {before} before and {after} after."
            ));
        }
    };
    differ("the target", target(a), target(b));
    differ("the laboratory", scenario(a), scenario(b));
    differ("plumb", a.plumb.clone(), b.plumb.clone());
    for phase in Phase::ALL {
        if let (Some(before), Some(after)) = (senders(a, phase), senders(b, phase)) {
            differ(
                &format!("what loaded the {} phase", phase.name()),
                before,
                after,
            );
        }
    }
    for phase in Phase::ALL {
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
    for phase in Phase::ALL {
        if let (Some(before), Some(after)) = (asked(a, phase), asked(b, phase)) {
            differ(
                &format!("what was asked for in the {} phase", phase.name()),
                before,
                after,
            );
        }
    }
    for (run, which) in [(a, "before"), (b, "after")] {
        if view::overrun_warning(run).is_some() {
            notes.push(format!(
                "In the Run {which} the machine could not keep up with the laboratory."
            ));
        }
    }
    for (run, other, which) in [(a, b, "before"), (b, a, "after")] {
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

/// Congestion control and number of flows, where a phase had flows.
fn senders(run: &Run, phase: Phase) -> Option<String> {
    let rows = view::rates(run)
        .into_iter()
        .filter(|row| row.phase == phase);
    let each: BTreeSet<_> = rows
        .map(|row| {
            format!(
                "{} × {} {}",
                row.result.streams.len(),
                row.result.cc,
                row.result.direction.name()
            )
        })
        .collect();
    (!each.is_empty()).then(|| each.into_iter().collect::<Vec<_>>().join(" with "))
}

/// What datagrams and transactions were asked to be.
fn asked(run: &Run, phase: Phase) -> Option<String> {
    let of_phase = run.measurements.iter().filter(|m| Phase::of(m) == phase);
    let each: BTreeSet<_> = of_phase
        .filter_map(|measurement| match &measurement.outcome {
            Outcome::Udp(udp) => Some(format!(
                "UDP {} of {} bytes, {}",
                udp.direction.name(),
                udp.payload_bytes,
                udp.asked_bps
                    .map_or_else(|| "as fast as it goes".to_owned(), number::rate),
            )),
            Outcome::Transactions(many) => Some(format!(
                "{} at a time, {} bytes for {}",
                many.concurrency, many.request_bytes, many.response_bytes
            )),
            _ => None,
        })
        .collect();
    (!each.is_empty()).then(|| each.into_iter().collect::<Vec<_>>().join(" with "))
}

/// The longest measurement of a loaded phase.
fn length_s(run: &Run, phase: Phase) -> Option<f64> {
    let rates = view::rates(run)
        .into_iter()
        .filter(|r| r.phase == phase)
        .map(|r| r.measurement.duration_s);
    let latencies = view::loaded(run)
        .filter(|(m, _)| Phase::of(m) == phase)
        .map(|(m, _)| m.duration_s);
    rates
        .chain(latencies)
        .filter(|s| s.is_finite())
        .reduce(f64::max)
}
