//! Round trips of many targets at once.

use plumb_model::results::Outcome;
use plumb_model::results::pings::{PingsResult, TargetRoundTrips};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::{Table, or_absent};
use crate::number::{self, ABSENT, Scale};

/// Rows of targets at most: what is more is in the Run.
const MOST_ROWS: usize = 50;

fn results(run: &Run) -> impl Iterator<Item = &PingsResult> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Pings(pings) => Some(pings.as_ref()),
        _ => None,
    })
}

fn loss(ratio: Option<f64>) -> String {
    or_absent(ratio, number::percent)
}

/// All targets together.
pub(super) fn together(run: &Run) -> Table {
    let typical: Vec<f64> = results(run)
        .filter_map(|p| p.rtt_s.map(|d| d.p50))
        .collect();
    let scale = Scale::seconds(typical.iter().copied());
    let mut table = Table::new(
        format!("All targets together, {}", scale.unit),
        &[
            ("targets", Number),
            ("answering", Number),
            ("sent", Number),
            ("answered", Number),
            ("loss", Number),
            ("a second", Number),
            ("min", Number),
            ("p50", Number),
            ("p95", Number),
            ("p99", Number),
            ("max", Number),
            ("late p99", Number),
            ("strays", Number),
            ("dropped", Number),
            ("answers", Text),
        ],
    );
    for pings in results(run) {
        let counts = [
            pings.targets.len() as u64,
            pings.answering,
            pings.sent,
            pings.received,
        ];
        let times = [
            pings.rtt_s.map(|d| d.min),
            pings.rtt_s.map(|d| d.p50),
            pings.rtt_s.map(|d| d.p95),
            pings.rtt_s.map(|d| d.p99),
            pings.rtt_s.map(|d| d.max),
        ];
        let some = |count: u64| match count {
            0 => String::new(),
            count => count.to_string(),
        };
        let late = pings.lateness_s.map(|d| number::seconds(d.p99));
        table.row(
            counts
                .map(|count| count.to_string())
                .into_iter()
                .chain([loss(pings.loss_ratio), format!("{:.0}", pings.sent_pps)])
                .chain(times.map(|time| scale.show(time)))
                .chain([
                    late.unwrap_or_else(|| ABSENT.to_owned()),
                    some(pings.strays),
                    some(pings.dropped_here),
                    super::ping::answers(&pings.answers),
                ]),
        );
        if !pings.unresolved.is_empty() {
            table.note = Some(format!(
                "Not looked up, and not probed: {}",
                pings.unresolved.join(", ")
            ));
        }
    }
    table
}

/// The targets; where there are many, those first that lost most.
pub(super) fn targets(run: &Run) -> Table {
    let mut rows: Vec<&TargetRoundTrips> = results(run).flat_map(|p| &p.targets).collect();
    let all = rows.len();
    if all > MOST_ROWS {
        // One that nothing could be sent to is not known to lose less than all.
        let lost = |target: &TargetRoundTrips| target.loss_ratio.unwrap_or(1.0);
        rows.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
        rows.truncate(MOST_ROWS);
    }
    let typical: Vec<f64> = rows
        .iter()
        .filter_map(|t| t.rtt_s.map(|d| d.mean))
        .collect();
    let scale = Scale::seconds(typical.iter().copied());
    let mut table = Table::new(
        format!("Targets, {}", scale.unit),
        &[
            ("", Text),
            ("address", Text),
            ("sent", Number),
            ("loss", Number),
            ("min", Number),
            ("mean", Number),
            ("max", Number),
            ("deviation", Number),
            ("dup", Number),
            ("reord", Number),
            ("late", Number),
            ("unsent", Number),
            ("answer", Text),
            ("told", Text),
        ],
    );
    for target in &rows {
        let some = |count: u64| match count {
            0 => String::new(),
            count => count.to_string(),
        };
        let times = [
            target.rtt_s.map(|d| d.min),
            target.rtt_s.map(|d| d.mean),
            target.rtt_s.map(|d| d.max),
            target.rtt_s.map(|d| d.stddev),
        ];
        let address = match target.name == target.address {
            true => String::new(),
            false => target.address.clone(),
        };
        let counts = [
            target.duplicates,
            target.reordered,
            target.late,
            target.send_errors,
        ];
        table.row(
            [
                target.name.clone(),
                address,
                target.sent.to_string(),
                loss(target.loss_ratio),
            ]
            .into_iter()
            .chain(times.map(|time| scale.show(time)))
            .chain(counts.map(some))
            .chain([&target.answer, &target.error].map(|said| said.clone().unwrap_or_default())),
        );
    }
    table.note = (all > MOST_ROWS).then(|| {
        format!("{MOST_ROWS} of {all}, those that lost most first; the Run (--json, -o) has all.")
    });
    table
}
