//! Round trips while the path was loaded, taken apart: why each grade, each class of traffic, each
//! part of the path, what repeats.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::dscp::BEST_EFFORT;
use plumb_model::finding::NotMeasured;
use plumb_model::grade::Grade;
use plumb_model::protocol::Protocol;
use plumb_model::results::{
    ClassLatency, LoadedLatencyResult, Periodic, PeriodicOf, PlaceLatency, PlaceMethod,
};
use plumb_model::run::{Measurement, Run};

use crate::grade;
use crate::map::{Map, note};
use crate::number::{self, Scale};
use crate::phase::{self, flow};
use crate::registry::{Found, all, results};
use crate::show::{Chart, ChartGroup, Place, RoundTrips, Show, Tables, Trace};
use crate::svg::series::{self, Line, Subject};
use crate::table::{Table, blank};

/// Share of probes beyond the 95th percentile: where more are lost, that percentile of all of them is a lost one.
const BEYOND_P95: f64 = 0.05;

impl Show for LoadedLatencyResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let rows: Vec<Row<'_>> = all::<Self>(run).map(|f| (f.phase, f.result)).collect();
        tables.add(Place::LoadedLatency, [classes(&rows)]);
        tables.detail(Place::LoadedLatency, [places(&rows), periodic(&rows)]);
    }

    /// The load under which latency grows most.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let loads = all::<Self>(run);
        let worst =
            loads.max_by(|a, b| a.result.increase_s.p95.total_cmp(&b.result.increase_s.p95));
        let sentence = |worst: Found<'_, Self>| {
            let (of, idle) = (worst.result, worst.result.idle_rtt_s);
            let within = match of.loss_ratio > BEYOND_P95 {
                true => format!(
                    "half of the round trips that were not lost within {}",
                    number::seconds(of.rtt_s.p50)
                ),
                false => format!(
                    "95 % of the round trips within {}",
                    number::seconds(of.rtt_s.p95)
                ),
            };
            let idle = number::seconds(idle.p50);
            format!(
                "Latency {}: {within}, {idle} when idle.",
                phase::when(worst.phase)
            )
        };
        worst.map(sentence).into_iter().collect()
    }

    fn on_map(&self, map: &mut Map) {
        let Some(path) = &self.path else {
            return;
        };
        for place in &path.places {
            let hop = map.hop(place.place.hops());
            hop.is(Some(&place.address), None);
            let idle = number::seconds(place.idle_rtt_s.p50);
            if hop.facts.is_empty() {
                note(&mut hop.facts, format!("answers in {idle}"));
            }
        }
        let under = phase::when(self.direction.into());
        let grows =
            |of: &Distribution| format!("round trips grow by {} {under}", number::seconds(of.p95));
        note(&mut map.link, grows(&path.local_increase_s));
        note(&mut map.lines, grows(&path.beyond_increase_s));
        let whole_s = self.increase_s.p95;
        if whole_s >= QUEUE_S {
            let is_clear = |of: &&PlaceLatency| of.increase_s.p95 < CLEAR_RATIO * whole_s;
            let clear = path.places.iter().take_while(is_clear).last();
            map.clear_until(clear.map_or(0, |of| of.place.hops()));
        }
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn round_trips(&self) -> Option<RoundTrips<'_>> {
        Some(RoundTrips {
            protocol: self.protocol,
            rtt_s: Some(&self.rtt_s),
            increase_s: Some(&self.increase_s),
            loss_ratio: Some(self.loss_ratio),
            grade: self.grade,
            to: None,
            sent: None,
        })
    }

    fn trace(&self, series: &str) -> Option<Trace> {
        let protocol = match series {
            "rtt" => self.protocol,
            "rtt_icmp" => Protocol::Icmp,
            _ => return None,
        };
        Some(Trace::RoundTrip {
            protocol,
            loaded: true,
        })
    }

    /// The round trips of each class of traffic over time, where there are several.
    fn chart(&self, measurement: &Measurement, phase: Phase) -> Option<Chart> {
        /// Colours of phases, which one phase does not need.
        const COLOURS: [&str; 5] = ["idle", "up", "down", "both", "after"];
        const SUBJECT: Subject<'_> = Subject {
            title: "seconds; round-trip time in ms (logarithmic)",
            description: "Round trips over time, one line for each class of traffic",
            scale: series::Scale::Logarithmic,
            written: series::Written::TIMES,
        };
        let names = self.classes.keys().zip(COLOURS.iter().cycle());
        let lines: Vec<_> = names
            .filter_map(|(class, colour)| {
                let own = format!("rtt_{}", class.to_lowercase());
                // Best effort is what every phase probes.
                let series = measurement.series.get(&own);
                let best_effort = (class == BEST_EFFORT.name).then_some("rtt");
                let values = series.or_else(|| measurement.series.get(best_effort?))?;
                Some(Line {
                    name: class,
                    colour,
                    values,
                })
            })
            .collect();
        Some(Chart {
            group: ChartGroup::Classes,
            of: Some(phase.shown().to_owned()),
            svg: series::render(&SUBJECT, &lines)?,
        })
    }

    fn hangs_on_length(&self) -> bool {
        true
    }
}

/// From here on a load's packets wait in a queue, in seconds: less than that is what busy hosts add.
const QUEUE_S: f64 = 5e-3;

/// Share of what a load adds in all, below which it adds nothing before a place.
const CLEAR_RATIO: f64 = 0.1;

type Row<'a> = (Phase, &'a LoadedLatencyResult);

/// The loaded phases of a Run, for flent's file.
pub(crate) fn loaded(run: &Run) -> impl Iterator<Item = (&Measurement, &LoadedLatencyResult)> {
    all(run).map(|found| (found.measurement, found.result))
}

/// Which table the grades are from, which number they rest on, what each next better one takes, and why
/// there is none.
pub(crate) fn grades(run: &Run) -> Option<String> {
    let all: Vec<_> = results::<LoadedLatencyResult>(run)
        .filter_map(|l| Some((l.grade_table.as_ref()?, l)))
        .collect();
    let (table, _) = all.first()?;
    let each: Vec<_> = all
        .iter()
        .map(|(_, l)| {
            let phase = flow(l.direction);
            match l.grade {
                Some(_) if grade::shown(run, l.grade).is_none() => {
                    format!(
                        "{phase}: no grade, and no better than {}, because {}",
                        Grade::of_increase(l.increase_s.p95).name(),
                        open(run)
                    )
                }
                Some(_) => format!("{phase}: {}", Grade::explain(l.increase_s.p95)),
                None if carried_nothing(l) => {
                    format!("{phase}: no grade, because the load carried nothing")
                }
                None => format!(
                    "{phase}: no grade, because {} of the probes were lost: p95 of all of them is not known, and no better than {}",
                    number::percent(l.loss_ratio),
                    Grade::of_increase(l.increase_s.p95).name()
                ),
            }
        })
        .collect();
    Some(format!(
        "Grades of latency: table {table}, applied to p95 over the idle median, of all round trips after slow start. {}.",
        each.join(". ")
    ))
}

/// What keeps a grade from being known.
fn open(run: &Run) -> String {
    let verdict = run.verdict.iter();
    let missing: Vec<_> = verdict.flat_map(|v| &v.not_measured).cloned().collect();
    match missing.as_slice() {
        [] => "something is wrong that no cause explains".to_owned(),
        missing => format!("not all was measured ({})", NotMeasured::names(missing)),
    }
}

/// Whether a direction that was loaded carried nothing.
fn carried_nothing(loaded: &LoadedLatencyResult) -> bool {
    let mut rates = [loaded.down_bps, loaded.up_bps].into_iter().flatten();
    rates.any(|bps| bps <= 0.0)
}

/// Each class of traffic by itself, where a load had several.
fn classes(rows: &[Row<'_>]) -> Table {
    let rows: Vec<ClassRow<'_>> = rows
        .iter()
        .flat_map(|(phase, result)| {
            let classes = result.classes.iter();
            classes.map(|(name, class)| (*phase, name, class))
        })
        .collect();
    let carried = |(_, _, class): &ClassRow<'_>| [class.down_bps, class.up_bps];
    let rates = Scale::rates(rows.iter().flat_map(carried).flatten());
    let times = Scale::seconds(rows.iter().filter_map(|(_, _, c)| c.rtt_s.map(|d| d.p50)));
    let rate = |value: Option<f64>| blank(value.map(|v| rates.show(Some(v))));
    let time = |d: Option<Distribution>, get: fn(Distribution) -> f64| times.show(d.map(get));
    const NOTE: &str = "Rates over the whole phase; round trips of probes with the class's DSCP in both directions. Where classes fare alike, the path does not treat them differently.";
    Table::of(
        format!(
            "Classes of traffic; rates in {}, round trips in {}",
            rates.unit, times.unit
        ),
        &rows,
    )
    .text("", |(phase, ..)| phase.shown())
    .text("class", |(_, name, _)| (*name).clone())
    .num("DSCP", |(.., class)| class.dscp.to_string())
    .num("down", |(.., class)| rate(class.down_bps))
    .num("up", |(.., class)| rate(class.up_bps))
    .num("p50", |(.., class)| time(class.rtt_s, |d| d.p50))
    .num("p95", |(.., class)| time(class.rtt_s, |d| d.p95))
    .num("p95 over idle", |(.., class)| {
        time(class.increase_s, |d| d.p95)
    })
    .num("loss", |(.., class)| {
        blank(class.loss_ratio.map(number::percent))
    })
    .noted(NOTE)
}

type ClassRow<'a> = (Phase, &'a String, &'a ClassLatency);

/// A place on the way, or what is beyond the last, of which only what was added is known.
enum Part<'a> {
    Place(&'a PlaceLatency),
    Beyond(&'a Distribution),
}

/// What the load added to the round trip up to each place on the way.
fn places(rows: &[Row<'_>]) -> Table {
    let paths = || {
        let paths = rows.iter();
        paths.filter_map(|(phase, result)| Some((*phase, result.path.as_ref()?)))
    };
    let parts: Vec<_> = paths()
        .flat_map(|(phase, path)| {
            let places = path.places.iter().map(Part::Place);
            let parts = places.chain([Part::Beyond(&path.beyond_increase_s)]);
            parts.map(move |part| (phase, part))
        })
        .collect();
    // What waits on the line is a thousand times what the way to the gateway takes.
    let scale = Scale::seconds(parts.iter().map(|(_, part)| match part {
        Part::Place(place) => place.rtt_s.p50,
        Part::Beyond(increase) => increase.p95,
    }));
    let of_place = |part: &Part<'_>, get: fn(&PlaceLatency) -> f64| match part {
        Part::Place(place) => scale.show(Some(get(place))),
        Part::Beyond(_) => String::new(),
    };
    let shares: Vec<_> = paths()
        .filter_map(|(phase, path)| {
            let local = number::percent(path.local_ratio?);
            Some(format!("{}: {local}", phase.shown()))
        })
        .collect();
    let note = (!shares.is_empty()).then(|| {
        format!(
            "Share of the increase that arose before the gateway, on Wi-Fi or the local network: {}.",
            shares.join(", ")
        )
    });
    Table::of(
        format!("Where packets wait: round trips to hops, {}", scale.unit),
        &parts,
    )
    .text("", |(phase, _)| phase.shown())
    .text("to", |(_, part)| match part {
        Part::Place(place) => place.place.name().replace('-', " "),
        Part::Beyond(_) => "beyond the gateway".to_owned(),
    })
    .text("address", |(_, part)| match part {
        Part::Place(place) => place.address.clone(),
        Part::Beyond(_) => String::new(),
    })
    .text("by", |(_, part)| match part {
        Part::Place(place) => match place.method {
            PlaceMethod::Echo => "echo",
            PlaceMethod::HopLimit => "hop limit",
        },
        Part::Beyond(_) => "difference",
    })
    .num("idle p50", |(_, part)| of_place(part, |p| p.idle_rtt_s.p50))
    .num("p50", |(_, part)| of_place(part, |p| p.rtt_s.p50))
    .num("p95", |(_, part)| of_place(part, |p| p.rtt_s.p95))
    .num("p95 over idle", |(_, part)| {
        scale.show(Some(match part {
            Part::Place(place) => place.increase_s.p95,
            Part::Beyond(increase) => increase.p95,
        }))
    })
    .noting(note)
}

/// What repeats under load.
fn periodic(rows: &[Row<'_>]) -> Table {
    let found: Vec<(Phase, &Periodic)> = rows
        .iter()
        .flat_map(|(phase, result)| result.periodic.iter().map(|found| (*phase, found)))
        .collect();
    let reallocation = found
        .iter()
        .any(|(_, found)| (found.period_s - STARLINK_S).abs() <= STARLINK_WITHIN_S);
    let advice = if reallocation {
        " Starlink reallocates its capacity every 15 s."
    } else {
        ""
    };
    let note = format!(
        "Strength is the mean correlation of values whole periods apart. The sawtooth of a single flow's congestion control repeats too: it shows under load alone.{advice}"
    );
    Table::of("Periodic structure", found)
        .text("", |(phase, _)| phase.shown())
        .text("in", |(_, found)| found.series.clone())
        .text("what", |(_, found)| match found.of {
            PeriodicOf::Level => "level comes back",
            PeriodicOf::Changes => "changes",
        })
        .num("period", |(_, found)| number::seconds(found.period_s))
        .num("seen", |(_, found)| found.times_seen.to_string())
        .num("strength", |(_, found)| {
            number::percent(found.strength_ratio)
        })
        .num("sure", |(_, found)| number::percent(found.confidence))
        .noted(note)
}

/// How often Starlink's capacity is dealt out anew, in seconds (the latency filing, appendix B.5), and
/// how near a period must be to it.
const STARLINK_S: f64 = 15.0;
const STARLINK_WITHIN_S: f64 = 0.5;
