//! What tuned settings did to the rate.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::results::tune::TuneResult;
use plumb_model::run::Run;
use plumb_model::units::si;

use crate::number;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for TuneResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let rate = |d: Option<Distribution>| blank(d.map(|d| si(d.p50, "bit/s")));
        let table = Table::of("Settings, with and without by turns", results::<Self>(run))
            .text("", |r| r.part.clone())
            .text("", |r| r.direction.name())
            .num("without", |r| rate(r.without_bps))
            .num("with", |r| rate(r.with_bps))
            .num("gain", |r| format!("{:+.1} %", r.effect_ratio * 100.0))
            .num("noise", |r| blank(r.noise_ratio.map(number::percent)))
            .num("runs", |r| format!("{} of {}", r.runs, r.most_runs))
            .text("", |r| r.words());
        let note = "Medians of the rates; the gain is of the pairs. Kept is what surely does not harm and may gain 5 %.";
        tables.add(Place::Tuning, [table.noted(note)]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }
}
