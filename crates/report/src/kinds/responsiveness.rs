//! Round trips a minute, and what they are made of.

use plumb_model::context::Phase;
use plumb_model::results::responsiveness::{ResponsivenessResult, RpmConfidence};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::number;
use crate::registry::all;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for ResponsivenessResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let rows: Vec<Row<'_>> = all::<Self>(run).map(|f| (f.phase, f.result)).collect();
        tables.add(Place::Responsiveness, [table(&rows)]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        Quantities::of(phase, None)
            .direction(self.direction)
            .number("rpm", ChangeUnit::PerMinute, self.rpm)
            .found
    }
}

type Row<'a> = (Phase, &'a ResponsivenessResult);

/// How many there are, how sure that is, and the four times from which they follow.
fn table(rows: &[Row<'_>]) -> Table {
    let rpm = |value: Option<f64>| blank(value.map(|v| format!("{v:.0}")));
    let time = |value: Option<f64>| blank(value.map(number::seconds));
    let mut notes = Vec::new();
    for (phase, result) in rows {
        notes.push(format!(" {}: {}.", phase.shown(), explained(result)));
        let probes = &result.probes;
        if probes.failed > 0 {
            let why = probes.error.as_deref().unwrap_or("it is not known why");
            notes.push(format!(
                " {}: {} probes failed, the last one because: {why}.",
                phase.shown(),
                probes.failed
            ));
        }
    }
    let method = rows.first().map(|(_, result)| &result.rpm_method);
    let note = method.map(|method| {
        format!(
            "Round trips a minute, more is better: the mean of new connections (TCP, TLS and the first answer, a third each) and of loaded ones. Times are means without the slowest twentieth, over the last four intervals. Method: {method}, after draft-ietf-ippm-responsiveness.{}",
            notes.concat()
        )
    });
    Table::of("Responsiveness under load", rows)
        .text("", |(phase, _)| phase.shown())
        .num("RPM", |(_, r)| match r.rpm {
            Some(_) => rpm(r.rpm),
            None => "not known".to_owned(),
        })
        .text("confidence", |(_, r)| r.confidence.name())
        .num("new connections", |(_, r)| rpm(r.foreign_rpm))
        .num("loaded ones", |(_, r)| rpm(r.in_band_rpm))
        .num("connect", |(_, r)| time(r.trimmed_mean_s.connect))
        .num("TLS", |(_, r)| time(r.trimmed_mean_s.tls_handshake))
        .num("first answer", |(_, r)| time(r.trimmed_mean_s.first_answer))
        .num("in band", |(_, r)| time(r.trimmed_mean_s.in_band))
        .num("goodput", |(_, r)| blank(r.goodput_bps.map(number::rate)))
        .num("connections", |(_, r)| r.connections.to_string())
        .noting(note)
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
