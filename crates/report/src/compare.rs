//! Two Runs of the same path, before and after: what changed, by how much, and whether it helped.

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::grade::Grade;
use plumb_model::results::{Direction, ProbeProtocol};
use plumb_model::run::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view;

mod likeness;
mod numbers;
mod summary;

use numbers::{Key, numbers};

/// Version of the document; the number rises when a reader of the old one would misread it.
pub const SCHEMA: &str = "plumb.compare/1";

/// What changed between two Runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The first Run.
    pub before: RunRef,
    /// The second Run.
    pub after: RunRef,
    /// What it comes to, in one sentence.
    pub summary: String,
    /// The marks of each loaded phase that has one in either Run.
    pub grades: Vec<GradeChange>,
    /// Every number that either Run has.
    pub rows: Vec<Change>,
    /// What became of the findings.
    pub findings: FindingChanges,
    /// In what the Runs are not like with like.
    pub notes: Vec<String>,
}

/// Which Run it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRef {
    /// Its id.
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// What it measured, as the user typed it.
    pub target: Option<String>,
}

/// The mark of a phase in both Runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GradeChange {
    /// The loaded direction.
    pub phase: Direction,
    /// The mark in the first Run.
    pub before: Option<Grade>,
    /// The mark in the second Run.
    pub after: Option<Grade>,
}

/// One number in both Runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Name of the field in the result; its suffix says the unit.
    pub name: String,
    /// `idle`, `up`, `down`, `both` or `after`.
    pub phase: String,
    /// Direction of the data, for a rate.
    pub direction: Option<Direction>,
    /// Protocol of the probes, for a latency.
    pub protocol: Option<ProbeProtocol>,
    /// What else it is of: `udp`, `quic`, an application, a kind of transaction, a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// What the number counts.
    pub unit: ChangeUnit,
    /// The number in the first Run.
    pub before: Option<f64>,
    /// The number in the second Run.
    pub after: Option<f64>,
    /// After less before.
    pub change: Option<f64>,
    /// The same as a share of before; absent where before is zero.
    pub change_ratio: Option<f64>,
    /// Whether it is for the better; absent where the change is within what two measurements of
    /// the same path differ by, or where more is neither better nor worse.
    pub better: Option<bool>,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeUnit {
    /// Seconds.
    S,
    /// Bits a second.
    Bps,
    /// A share, 0…1.
    Ratio,
    /// A number of things.
    Count,
    /// Of something a second.
    PerSecond,
    /// Of something a minute.
    PerMinute,
    /// Bytes.
    Bytes,
    /// A mean opinion score, 1 to 4.5.
    Mos,
}

/// What became of the findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingChanges {
    /// In the first Run alone.
    pub gone: Vec<FindingRef>,
    /// In the second Run alone.
    pub new: Vec<FindingRef>,
    /// In both, as the second has it.
    pub still: Vec<FindingRef>,
}

/// A finding in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRef {
    /// What it is.
    pub cause: Cause,
    /// Where it is.
    #[serde(rename = "where")]
    pub place: Place,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence with the numbers in it.
    pub summary: String,
}

impl Comparison {
    /// The JSON Schema of the document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// What changed from `a` to `b`.
pub fn compare(a: &Run, b: &Run) -> Comparison {
    let rows = changes(a, b);
    let grades = grades(a, b);
    Comparison {
        schema: SCHEMA.to_owned(),
        before: RunRef::of(a),
        after: RunRef::of(b),
        summary: summary::sentence(&rows, &grades),
        grades,
        findings: findings(&a.findings, &b.findings),
        notes: likeness::notes(a, b),
        rows,
    }
}

impl RunRef {
    fn of(run: &Run) -> Self {
        Self {
            id: run.id.clone(),
            started: run.started.clone(),
            target: run.target.as_ref().map(|t| t.name.clone()),
        }
    }
}

fn changes(a: &Run, b: &Run) -> Vec<Change> {
    let (before, after) = (numbers(a), numbers(b));
    let find =
        |list: &[(Key, f64)], key: &Key| list.iter().find(|(k, _)| k == key).map(|(_, v)| *v);
    let mut keys: Vec<&Key> = Vec::new();
    for (key, _) in before.iter().chain(&after) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    // By phase, latencies before rates; the sort is stable, so fields keep their order.
    keys.sort_by_key(|key| (key.phase, key.direction.is_some()));
    keys.into_iter()
        .map(|key| Change::of(key, find(&before, key), find(&after, key)))
        .collect()
}

impl Change {
    fn of(key: &Key, before: Option<f64>, after: Option<f64>) -> Self {
        let both = before.zip(after);
        Self {
            name: key.name.to_owned(),
            phase: key.phase.name().to_owned(),
            direction: key.direction,
            protocol: key.protocol,
            of: key.of.clone(),
            unit: key.unit,
            before,
            after,
            change: both.map(|(b, a)| a - b).filter(|c| c.is_finite()),
            change_ratio: both.map(|(b, a)| (a - b) / b).filter(|c| c.is_finite()),
            better: both
                .filter(|_| key.judged)
                .and_then(|(b, a)| better(key.unit, b, a)),
        }
    }
}

/// Latency within this of another is the same: twice the jitter of an idle home line.
const SAME_LATENCY_S: f64 = 0.001;
/// So is one within this share of the other: percentiles of some hundred probes vary as much.
const SAME_LATENCY_RATIO: f64 = 0.1;
/// Rates within this share are the same: TCP's own variation over ten seconds and more.
const SAME_RATE_RATIO: f64 = 0.03;
/// Loss within this is the same: one probe in five hundred.
const SAME_LOSS_RATIO: f64 = 0.002;
/// Scores within this are the same: a listener tells no less apart.
const SAME_MOS: f64 = 0.1;

fn better(unit: ChangeUnit, before: f64, after: f64) -> Option<bool> {
    let change = (after - before).abs();
    let larger = before.abs().max(after.abs());
    match unit {
        ChangeUnit::S => {
            (change > SAME_LATENCY_S.max(SAME_LATENCY_RATIO * larger)).then_some(after < before)
        }
        ChangeUnit::Bps => (change > SAME_RATE_RATIO * larger).then_some(after > before),
        ChangeUnit::Ratio => (change > SAME_LOSS_RATIO).then_some(after < before),
        // They are the inverse of a time.
        ChangeUnit::PerSecond | ChangeUnit::PerMinute => {
            (change > SAME_LATENCY_RATIO * larger).then_some(after > before)
        }
        ChangeUnit::Bytes => (change > 0.0).then_some(after > before),
        ChangeUnit::Mos => (change > SAME_MOS).then_some(after > before),
        // An AQM signals by dropping: more retransmits can mean less delay.
        ChangeUnit::Count => None,
    }
}

fn grades(a: &Run, b: &Run) -> Vec<GradeChange> {
    let mark =
        |run, phase| view::loaded(run).find_map(|(_, l)| l.grade.filter(|_| l.direction == phase));
    [Direction::Up, Direction::Down, Direction::Both]
        .into_iter()
        .map(|phase| GradeChange {
            phase,
            before: mark(a, phase),
            after: mark(b, phase),
        })
        .filter(|change| change.before.is_some() || change.after.is_some())
        .collect()
}

fn findings(before: &[Finding], after: &[Finding]) -> FindingChanges {
    let has = |list: &[Finding], f: &Finding| {
        list.iter()
            .any(|g| (g.cause, g.place) == (f.cause, f.place))
    };
    let short = |f: &Finding| FindingRef {
        cause: f.cause,
        place: f.place,
        severity: f.severity,
        summary: f.summary.clone(),
    };
    FindingChanges {
        gone: before
            .iter()
            .filter(|f| !has(after, f))
            .map(short)
            .collect(),
        new: after
            .iter()
            .filter(|f| !has(before, f))
            .map(short)
            .collect(),
        still: after.iter().filter(|f| has(before, f)).map(short).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Phase;

    #[test]
    fn noise_is_no_change() {
        assert_eq!(better(ChangeUnit::S, 0.0183, 0.0190), None);
        assert_eq!(better(ChangeUnit::S, 0.706, 0.019), Some(true));
        assert_eq!(better(ChangeUnit::S, 0.019, 0.706), Some(false));
        assert_eq!(better(ChangeUnit::Bps, 18.9e6, 17.9e6), Some(false));
        assert_eq!(better(ChangeUnit::Bps, 18.9e6, 18.7e6), None);
        assert_eq!(better(ChangeUnit::Count, 4.0, 400.0), None);
    }

    #[test]
    fn nothing_before_has_no_ratio() {
        let key = Key::new(Phase::Idle, "loss_ratio", ChangeUnit::Ratio);
        let change = Change::of(&key, Some(0.0), Some(0.1));
        assert_eq!(
            (change.change, change.change_ratio, change.better),
            (Some(0.1), None, Some(false))
        );
        assert_eq!(Change::of(&key, None, Some(0.1)).change, None);
    }
}
