//! What a comparison comes to, in one sentence.

use plumb_model::context::Phase;
use plumb_model::grade::Grade;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::units::capital;

use super::document::{Change, GradeChange};
use super::table::{before_and_after, what};
use crate::number::{self, Scale};
use crate::phase::{PHASES, flow, when};

/// "Latency under upload: 706 ms → 19.0 ms (grade F → A); upload 18.9 → 17.9 Mbit/s." Where more is lost than before, that
/// comes first: what is lost neither waits nor fills a queue.
pub(super) fn sentence(rows: &[Change], grades: &[GradeChange]) -> String {
    let latencies: Vec<_> = PHASES
        .into_iter()
        .filter_map(|phase| Latency::of(phase, rows, grades))
        .collect();
    let told = worth_telling(&latencies);
    let mut parts: Vec<String> = told.iter().map(|latency| latency.text()).collect();
    if let Some(first) = parts.first_mut() {
        *first = format!("latency {first}");
    }
    let loads: Vec<_> = told.iter().map(|latency| latency.phase).collect();
    let rates = rates(rows, &loads);
    let text = [more_lost(rows), parts.join(", "), rates]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    if !rows.iter().any(|row| row.change.is_some()) {
        return "The two Runs have no number in common: nothing was compared.".to_owned();
    }
    if text.is_empty() {
        return others(rows);
    }
    capital(&text) + "."
}

/// The phases in which more probes are lost than before.
fn more_lost(rows: &[Change]) -> String {
    let of = |phase: Phase| {
        let mut lost = rows.iter().filter(|row| {
            row.name == "loss_ratio" && row.phase == phase.name() && row.better == Some(false)
        });
        let (before, after) = before_and_after(lost.next()?);
        Some(format!("{}: {before} → {after}", when(phase)))
    };
    let phases = [Phase::Idle, Phase::Up, Phase::Down];
    let each: Vec<String> = phases.into_iter().filter_map(of).collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("more packets lost {}", each.join(", ")),
    }
}

/// Where neither round trips nor TCP's rates changed: how many other numbers did, and which most.
fn others(rows: &[Change]) -> String {
    let changed = rows.iter().filter(|row| row.better.is_some());
    let most = changed.clone().max_by(|a, b| {
        let by = |row: &Change| row.change_ratio.map_or(f64::INFINITY, f64::abs);
        by(a).total_cmp(&by(b))
    });
    let Some(most) = most else {
        return "Nothing changed beyond what two measurements of the same path differ by."
            .to_owned();
    };
    let (before, after) = before_and_after(most);
    let count = match changed.count() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    format!("Changed: {} {before} → {after}{count}.", what(most))
}

/// The latency of one phase in both Runs.
struct Latency<'a> {
    phase: Phase,
    before: f64,
    after: f64,
    better: Option<bool>,
    grade: Option<&'a GradeChange>,
}

impl<'a> Latency<'a> {
    /// The 95th percentile that both Runs have, UDP rather than ICMP.
    fn of(phase: Phase, rows: &[Change], grades: &'a [GradeChange]) -> Option<Self> {
        let of = |protocol| {
            rows.iter().find(|row| {
                row.phase == phase.name()
                    && row.name == "rtt_s.p95"
                    && row.protocol == Some(protocol)
            })
        };
        let row = [Protocol::Udp, Protocol::Icmp]
            .into_iter()
            .filter_map(of)
            .find(|row| row.before.is_some() && row.after.is_some())?;
        let grade = grades.iter().find(|g| Phase::from(g.phase) == phase);
        Some(Self {
            phase,
            before: row.before?,
            after: row.after?,
            better: row.better,
            grade,
        })
    }

    fn changed(&self) -> bool {
        self.better.is_some() || self.grades().is_some_and(|(before, after)| before != after)
    }

    /// The grades of both Runs, where both have one.
    fn grades(&self) -> Option<(Grade, Grade)> {
        self.grade
            .and_then(|change| change.before.zip(change.after))
    }

    fn text(&self) -> String {
        let grade = match self.grades() {
            None => String::new(),
            Some((before, after)) if before == after => format!(" (grade {})", after.name()),
            Some((before, after)) => format!(" (grade {} → {})", before.name(), after.name()),
        };
        format!(
            "{}: {} → {}{grade}",
            when(self.phase),
            number::seconds(self.before),
            number::seconds(self.after)
        )
    }
}

/// The changed latencies under one load, or else under both, or else without a load.
fn worth_telling<'a>(all: &'a [Latency<'a>]) -> Vec<&'a Latency<'a>> {
    let of = |phases: &[Phase]| -> Vec<_> {
        all.iter()
            .filter(|l| l.changed() && phases.contains(&l.phase))
            .collect()
    };
    [
        &[Phase::Up, Phase::Down][..],
        &[Phase::Both],
        &[Phase::Idle],
        &[Phase::After],
    ]
    .into_iter()
    .map(of)
    .find(|found| !found.is_empty())
    .unwrap_or_default()
}

/// The rates of the `loads`, and every other rate that changed, each direction alone.
fn rates(rows: &[Change], loads: &[Phase]) -> String {
    let told = [Direction::Up, Direction::Down]
        .into_iter()
        .filter_map(|direction| {
            let phase = Phase::from(direction);
            let row = rows.iter().find(|r| {
                r.name == "bps" && r.phase == phase.name() && r.direction == Some(direction)
            })?;
            let (before, after) = (row.before?, row.after?);
            (row.better.is_some() || loads.contains(&phase)).then(|| {
                let scale = Scale::rates([before, after].into_iter());
                let (before, after) = (scale.show(Some(before)), scale.show(Some(after)));
                format!("{} {before} → {after} {}", flow(direction), scale.unit)
            })
        });
    told.collect::<Vec<_>>().join(", ")
}
