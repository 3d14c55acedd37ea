//! A sweep: round trips of many targets on one schedule.

use plumb_model::context::Phase;
use plumb_model::results::sweep::{PingsResult, TargetRoundTrips};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity, RTT};
use crate::number::{self, Scale};
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{MAX, MIN, P50, P95, P99, Table, blank, by_count, counted};

/// Rows of targets at most: what is more is in the Run.
const MOST_ROWS: usize = 50;

impl Show for PingsResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::Sweep, [together(&all), targets(&all)]);
    }

    fn bears(&self) -> Ends {
        Ends::CLOCK_SOURCE
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        Quantities::of(phase, format!("{} targets", self.targets.len()))
            .by(self.protocol)
            .time(RTT, self.rtt_s.as_ref())
            .number("loss_ratio", ChangeUnit::Ratio, self.loss_ratio)
            .found
    }
}

fn together(all: &[&PingsResult]) -> Table {
    let scale = Scale::seconds(all.iter().filter_map(|p| p.rtt_s.map(|d| d.p50)));
    let mut left_out = all.iter().filter(|sweep| !sweep.unresolved.is_empty());
    Table::of(format!("All targets together, {}", scale.unit), all)
        .num("targets", |sweep| sweep.targets.len())
        .num("answering", |sweep| sweep.answering)
        .num("sent", |sweep| sweep.sent)
        .num("answered", |sweep| sweep.received)
        .num("loss", |sweep| sweep.loss_ratio.map(number::percent))
        .num("a second", |sweep| format!("{:.0}", sweep.sent_pps))
        .figures(
            [MIN, P50, P95, P99, MAX],
            |sweep| sweep.rtt_s,
            |v| scale.show(v),
        )
        .num("late p99, ms", |sweep| {
            sweep.lateness_s.map(|d| number::milliseconds(d.p99))
        })
        .num("strays", |sweep| counted(sweep.strays))
        .num("dropped", |sweep| counted(sweep.dropped_here))
        .text("answers", |sweep| by_count(&sweep.answers))
        .noting(left_out.next_back().map(|sweep| {
            format!(
                "Not looked up, and not probed: {}",
                sweep.unresolved.join(", ")
            )
        }))
}

/// The targets; where there are many, those first that lost most.
fn targets(all: &[&PingsResult]) -> Table {
    let mut rows: Vec<&TargetRoundTrips> = all.iter().flat_map(|p| &p.targets).collect();
    let count = rows.len();
    if count > MOST_ROWS {
        // One that nothing could be sent to is not known to lose less than all.
        let lost = |target: &TargetRoundTrips| target.loss_ratio.unwrap_or(1.0);
        rows.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
        rows.truncate(MOST_ROWS);
    }
    let scale = Scale::seconds(rows.iter().filter_map(|t| t.rtt_s.map(|d| d.mean)));
    Table::of(format!("Targets, {}", scale.unit), &rows)
        .text("", |t| t.name.clone())
        .text("address", |t| {
            blank((t.name != t.address).then_some(&t.address))
        })
        .num("sent", |t| t.sent.to_string())
        .num("loss", |t| t.loss_ratio.map(number::percent))
        .num("min", |t| scale.show(t.rtt_s.map(|d| d.min)))
        .num("mean", |t| scale.show(t.rtt_s.map(|d| d.mean)))
        .num("max", |t| scale.show(t.rtt_s.map(|d| d.max)))
        .num("deviation", |t| scale.show(t.rtt_s.map(|d| d.stddev)))
        .num("dup", |t| counted(t.duplicates))
        .num("reord", |t| counted(t.reordered))
        .num("late", |t| counted(t.late))
        .num("unsent", |t| counted(t.send_errors))
        .text("answer", |t| blank(t.answer.as_ref()))
        .text("error", |t| blank(t.error.as_ref()))
        .noting((count > MOST_ROWS).then(|| {
            format!(
                "{MOST_ROWS} of {count}, those that lost most first; the Run (--json, -o) has all."
            )
        }))
}
