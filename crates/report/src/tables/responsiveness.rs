//! Round trips a minute, and what they are made of.

use plumb_model::results::Outcome;
use plumb_model::results::responsiveness::{ResponsivenessResult, RpmConfidence};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};
use crate::view::Phase;

/// How many there are, how sure that is, and the four times from which they follow.
pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "Responsiveness under load",
        &[
            ("", Text),
            ("RPM", Number),
            ("confidence", Text),
            ("new connections", Number),
            ("loaded ones", Number),
            ("connect", Number),
            ("TLS", Number),
            ("first answer", Number),
            ("in band", Number),
            ("goodput", Number),
            ("connections", Number),
        ],
    );
    let rpm = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |v| format!("{v:.0}"));
    let time = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), number::seconds);
    let mut notes = Vec::new();
    for (phase, result) in results(run) {
        let mean = &result.trimmed_mean_s;
        table.row([
            phase.title().to_owned(),
            rpm(result.rpm),
            result.confidence.name().to_owned(),
            rpm(result.foreign_rpm),
            rpm(result.in_band_rpm),
            time(mean.connect),
            time(mean.tls_handshake),
            time(mean.first_answer),
            time(mean.in_band),
            result
                .goodput_bps
                .map_or_else(|| ABSENT.to_owned(), number::rate),
            result.connections.to_string(),
        ]);
        notes.push(format!(" {}: {}.", phase.title(), explained(result)));
        let probes = &result.probes;
        if probes.failed > 0 {
            let why = probes.error.as_deref().unwrap_or("it is not known why");
            notes.push(format!(
                " {}: {} probes failed, the last one because: {why}.",
                phase.title(),
                probes.failed
            ));
        }
    }
    let method = results(run).map(|(_, result)| &result.rpm_method).next();
    table.note = method.map(|method| {
        format!(
            "Round trips a minute, more is better: the mean of those of new connections (TCP, TLS and the first answer, a third each) and of loaded ones. Times are means without the slowest twentieth, over the last four intervals. Method: {method}, after draft-ietf-ippm-responsiveness.{}",
            notes.concat()
        )
    });
    table
}

/// Why there is as much confidence as there is.
fn explained(result: &ResponsivenessResult) -> String {
    let name = result.confidence.name();
    if let Some(lost) = &result.lost {
        return format!("confidence {name}, because the far end went away ({lost})");
    }
    let spread = result.spread_ratio.map(number::percent);
    let spread = spread.map_or_else(String::new, |spread| format!(" (by {spread})"));
    let why = match result.confidence {
        RpmConfidence::High => {
            format!("the last four values lay apart by less than 5 % of the latest{spread}")
        }
        RpmConfidence::Medium => format!(
            "there were four values or more, and the last four still lay apart by 5 % or more{spread}; --duration allows more time"
        ),
        RpmConfidence::Low => match result.goodput_stable_after_s {
            None => "the goodput had not become stable when the time was over, so hardly anything was probed; --duration allows more time".to_owned(),
            Some(_) => "there were fewer than four values when the time was over; --duration allows more time".to_owned(),
        },
    };
    format!("confidence {name}, because {why}")
}

fn results(run: &Run) -> impl Iterator<Item = (Phase, &ResponsivenessResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Responsiveness(result) => Some((Phase::of(m), &**result)),
        _ => None,
    })
}
