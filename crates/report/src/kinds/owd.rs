//! Each direction by itself: delay, loss and order, and the clocks that they rest on.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::results::Direction;
use plumb_model::results::owd::{ClockMethod, ClockState, OwdResult, OwdWay};
use plumb_model::run::{Measurement, Run};

use crate::compare::quantity::{ChangeUnit, DELAY, Quantities, Quantity};
use crate::number;
use crate::registry::results;
use crate::show::{Chart, ChartGroup, Ends, Place, Show, Tables};
use crate::svg::series::{self, Line, Scale, Subject, Written};
use crate::table::{MAX, MIN, P50, P95, Table, blank, list};

impl Show for OwdResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        let directions: Vec<Row<'_>> = all
            .iter()
            .flat_map(|owd| [("forward", &owd.up), ("reverse", &owd.down)])
            .collect();
        let unplaced = all.iter().map(|owd| owd.lost_unplaced);
        let unplaced = unplaced.fold(0, u64::saturating_add);
        tables.add(
            Place::OneWayDelay,
            [delays(&directions), packets(&directions, unplaced)],
        );
        tables.detail(Place::OneWayDelay, [clocks(&all)]);
    }

    /// The delay and the loss of each direction.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let each = |name: &str, way: &OwdWay| {
            let delay = way.delay.as_ref().map(|delay| {
                format!(
                    "{} (median, known to ±{})",
                    number::seconds(delay.delay_s.p50),
                    number::seconds(delay.uncertainty_s)
                )
            });
            let loss = way
                .loss_ratio
                .map(|ratio| format!("{} lost", number::percent(ratio)));
            let known = list([delay, loss]);
            (!known.is_empty()).then(|| format!("{name}: {known}."))
        };
        let all = results::<Self>(run);
        all.flat_map(|owd| {
            [
                each("Forward path", &owd.up),
                each("Reverse path", &owd.down),
            ]
        })
        .flatten()
        .collect()
    }

    fn bears(&self) -> Ends {
        Ends {
            clock: true,
            ..Ends::CLOCK_SOURCE
        }
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let of = |direction, way: &OwdWay| {
            let delay = way.delay.as_ref().map(|delay| &delay.delay_s);
            let pdv = way.pdv_s.as_ref().map(|d| d.p95);
            Quantities::of(phase, None)
                .direction(direction)
                .time(DELAY, delay)
                .number("pdv_s.p95", ChangeUnit::S, pdv)
                .number("loss_ratio", ChangeUnit::Ratio, way.loss_ratio)
                .found
        };
        [of(Direction::Up, &self.up), of(Direction::Down, &self.down)].concat()
    }

    /// The delay of both directions over time.
    fn chart(&self, measurement: &Measurement, _phase: Phase) -> Option<Chart> {
        let line = |name, colour, series| {
            let values = measurement.series.get(series)?;
            Some(Line {
                name,
                colour,
                values,
            })
        };
        let both = [
            line("forward", "up", "delay_up"),
            line("reverse", "down", "delay_down"),
        ];
        let known_to = self.clocks.uncertainty_s.map(|within| {
            format!(
                ", each line as a whole known to ±{}",
                number::seconds(within)
            )
        });
        let subject = Subject {
            title: &format!("seconds; one-way delay in ms{}", blank(known_to)),
            description: "Delay of each direction over time; lost packets break the lines",
            scale: Scale::Even,
            written: Written::TIMES,
        };
        let lines: Vec<Line<'_>> = both.into_iter().flatten().collect();
        Some(Chart {
            group: ChartGroup::OneWayDelay,
            of: None,
            svg: series::render(&subject, &lines)?,
        })
    }
}

/// A direction of a measurement with the name of its row.
type Row<'a> = (&'static str, &'a OwdWay);

/// How long packets took.
fn delays(rows: &[Row<'_>]) -> Table {
    let time =
        |d: Option<Distribution>, of: fn(&Distribution) -> f64| d.map(|d| number::seconds(of(&d)));
    const NOTE: &str = "PDV: against the smallest delay, IPDV: against the packet before (RFC 5481); both do not depend on what the clocks are off by. Jitter: RFC 3550, mean.";
    Table::of("One-way delay", rows)
        .text("", |(name, _)| *name)
        .figures(
            [MIN, P50, P95, MAX],
            |(_, way)| way.delay.map(|d| d.delay_s),
            |v| v.map(number::seconds),
        )
        .num("known to", |(_, way)| {
            way.delay
                .map(|d| format!("±{}", number::seconds(d.uncertainty_s)))
        })
        .num("PDV p95", |(_, way)| time(way.pdv_s, |d| d.p95))
        .num("IPDV p95", |(_, way)| time(way.ipdv_s, |d| d.p95))
        .num("jitter", |(_, way)| time(way.jitter_s, |d| d.mean))
        .noted(NOTE)
}

/// What became of the packets.
fn packets(rows: &[Row<'_>], unplaced: u64) -> Table {
    let note =
        (unplaced > 0).then(|| format!("Lost in a direction that is not known: {unplaced}."));
    Table::of("Packets of each direction", rows)
        .text("", |(name, _)| *name)
        .num("sent", |(_, way)| way.sent)
        .num("lost", |(_, way)| way.lost)
        .num("loss", |(_, way)| way.loss_ratio.map(number::percent))
        .num("loss periods", |(_, way)| {
            way.losses.as_ref().map(|l| l.periods)
        })
        .num("longest", |(_, way)| {
            let length = way.losses.as_ref().and_then(|l| l.period_length);
            blank(length.map(|d| number::plain(d.max)))
        })
        .num("dup", |(_, way)| way.duplicates)
        .num("reordered", |(_, way)| way.reordering.reordered)
        .text("hop limit", |(_, way)| match way.hop_limits {
            Some([low, high]) if low == high => low.to_string(),
            Some([low, high]) => format!("{low} to {high}"),
            None => String::new(),
        })
        .noting(note)
}

/// What the delays rest on.
fn clocks(all: &[&OwdResult]) -> Table {
    Table::of("Clocks", all.iter().map(|owd| &owd.clocks))
        .text("delays rest on", |clocks| match clocks.method {
            ClockMethod::Compared => "a comparison over the path",
            ClockMethod::Synchronised => "what both hosts report",
            ClockMethod::Same => "one clock, as given",
            ClockMethod::None => "nothing",
        })
        .num("far clock less ours", |clocks| {
            clocks.offset_s.map(number::seconds)
        })
        .num("known to", |clocks| {
            let within = clocks.uncertainty_s;
            within.map(|s| format!("±{}", number::seconds(s)))
        })
        .num("skew", |clocks| {
            let skew = clocks.skew_ratio;
            blank(skew.map(|skew| format!("{:.2} ppm", skew * 1e6)))
        })
        .text("here", |clocks| state(clocks.here))
        .text("far", |clocks| state(clocks.far))
        .text("PTP clocks here", |clocks| clocks.ptp_devices.join(" "))
        .done()
}

fn state(state: Option<ClockState>) -> String {
    let Some(state) = state else {
        return "not reported".to_owned();
    };
    let error = state
        .max_error_s
        .map_or_else(String::new, |s| format!(" to {}", number::seconds(s)));
    if state.synchronised {
        format!("synchronised{error}")
    } else {
        "not synchronised".to_owned()
    }
}
