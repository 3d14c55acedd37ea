//! Round trips idle and under each load, of every kind of measurement that has them.

use plumb_model::context::Phase;
use plumb_model::grade::Grade;
use plumb_model::order::sort_few;
use plumb_model::protocol::Protocol;
use plumb_model::run::Run;

use crate::grade;
use crate::kinds::loaded_latency;
use crate::number::{self, Scale};
use crate::probes::{Probes, names};
use crate::registry::{phase, shown};
use crate::show::RoundTrips;
use crate::table::{Kind, MAX, P50, P95, P99, Table, blank};

/// The round trips of a Run, by phase, with the grades that are shown.
pub(crate) fn latencies(run: &Run) -> Vec<(Phase, RoundTrips<'_>)> {
    let measurements = run.measurements.iter();
    let mut found: Vec<_> = measurements
        .filter_map(|m| {
            let mut row = shown(m).round_trips()?;
            row.grade = grade::shown(run, row.grade);
            Some((phase(m), row))
        })
        .collect();
    sort_few(&mut found, |(a, _), (b, _)| a.cmp(b));
    found
}

/// The protocol whose round trips lead: UDP where the far end answers it, because the loaded
/// phases are graded with it.
pub(crate) fn leading_protocol(run: &Run) -> Protocol {
    let rows = latencies(run);
    let there = |protocol: &Protocol| {
        rows.iter()
            .any(|(_, l)| l.protocol == *protocol && l.rtt_s.is_some())
    };
    // A ping by another protocol stands alone.
    let first = rows.first().map(|(_, l)| l.protocol);
    [Protocol::Udp, Protocol::Stamp, Protocol::Irtt]
        .into_iter()
        .find(there)
        .or(first.filter(|protocol| *protocol != Protocol::Udp))
        .unwrap_or(Protocol::Icmp)
}

/// The mark as a word of text; a dash where there is none.
pub(crate) fn mark(grade: Option<Grade>) -> String {
    grade.map_or(number::ABSENT, Grade::name).to_owned()
}

/// The round trips by the probes that lead, for a short text.
pub(crate) fn short(run: &Run) -> Table {
    let leading = leading_protocol(run);
    let mut rows = latencies(run);
    rows.retain(|(_, row)| row.protocol == leading);
    let scale = Scale::seconds(rows.iter().filter_map(|(_, row)| row.rtt_s.map(|d| d.p50)));
    Table::of(format!("Round-trip time, {}", scale.unit), &rows)
        .text("", |(phase, _)| phase.shown())
        .figures(
            [
                ("median", |d| d.p50),
                ("95 %", |d| d.p95),
                ("longest", |d| d.max),
            ],
            |(_, row)| row.rtt_s.copied(),
            |v| scale.show(v),
        )
        .num("95 % over idle", |(_, row)| {
            blank(row.increase_s.map(|d| scale.show(Some(d.p95))))
        })
        .num("loss", |(_, row)| row.loss_ratio.map(number::percent))
        .column("latency grade", Kind::Grade, |(_, row)| {
            blank(row.grade.map(Grade::name))
        })
        .done()
}

/// A row for each.
pub(crate) fn table(run: &Run) -> Table {
    let rows = latencies(run);
    let scale = Scale::seconds(rows.iter().filter_map(|(_, row)| row.rtt_s.map(|d| d.p50)));
    let probed = rows.iter().map(|(phase, row)| Probes {
        phase: *phase,
        protocol: row.protocol,
        to: row.to,
        sent: row.sent,
    });
    let names = names(&probed.collect::<Vec<_>>()).into_iter();
    let rows: Vec<_> = names
        .zip(rows)
        .map(|(name, (phase, row))| (phase, row, name))
        .collect();
    let mut table = Table::of(format!("Round-trip time by probe, {}", scale.unit), &rows)
        .text("", |(phase, ..)| phase.shown())
        .text("probe", |(.., name)| name)
        .figures(
            [P50, P95, P99, MAX],
            |(_, row, _)| row.rtt_s.copied(),
            |v| scale.show(v),
        )
        .num("p95 over idle", |(_, row, _)| {
            blank(row.increase_s.map(|d| scale.show(Some(d.p95))))
        })
        .num("loss", |(_, row, _)| row.loss_ratio.map(number::percent))
        .column("grade", Kind::Grade, |(_, row, _)| {
            blank(row.grade.map(Grade::name))
        })
        .done();
    table.note = loaded_latency::grades(run);
    table
}
