//! Packets arrive more than once.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::loss::at_least_ratio;
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Amount, Entry, Family, Harm};
use crate::evidence::fact;
use crate::facts::ratio;
use crate::signs::percent;

/// Less does no harm to any use that plumb knows, as a share.
const LEAST_RATIO: f64 = 0.002;

/// From this share on it takes a part of the line that counts.
const WARNING_RATIO: f64 = 0.05;

/// Duplicates bear the numbers of our own probes.
const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    vanishes: "without the second path, the bridge loop or the radio that repeats what had arrived",
    needs: &[Need::Idle],
    amount: Amount::Duplicates,
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let idle = facts.known("probes of the idle path", case.idle())?;
    let (received, twice) = (idle.result.received, idle.result.duplicates);
    let least = at_least_ratio(received, twice.min(received));
    let share = twice as f64 / received.max(1) as f64;
    let found = facts.at_least(
        "least share of answers that come again",
        ratio(least),
        LEAST_RATIO,
    );
    found.then(|| Finding {
        cause: Cause::Duplication,
        place: Place::Path,
        severity: match least >= WARNING_RATIO {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Packets arrive more than once: {twice} of {received} answers to probes came again ({}).",
            percent(share)
        ),
        evidence: vec![fact(
            idle.measurement,
            "duplicates",
            share,
            "share of the answers that came again; a finding where so many would be unlikely (2.5 %) under the threshold",
            LEAST_RATIO,
        )],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Look for a loop between switches, two devices that forward the same packets (a bond in broadcast mode, two routers of one VRRP group), or a tunnel that sends over two lines.",
            "Each packet arrives once.",
        )],
        kb: "loss".to_owned(),
    })
}
