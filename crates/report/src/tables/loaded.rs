//! Latency under load taken apart: why each grade, each class of traffic, each part of the path.

use plumb_model::distribution::Distribution;
use plumb_model::grade::Grade;
use plumb_model::results::{PeriodicOf, PlaceMethod};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, Scale};
use crate::view::{self, Phase};

/// Which table the grades are from, which number they rest on, what each next better one takes, and why
/// there is none.
pub(super) fn grades(run: &Run) -> Option<String> {
    let all: Vec<_> = view::loaded(run)
        .filter_map(|(_, l)| Some((l.grade_table.as_ref()?, l)))
        .collect();
    let (table, _) = all.first()?;
    let each: Vec<_> = all
        .iter()
        .map(|(_, l)| {
            let phase = Phase::from(l.direction).title();
            match l.grade {
                Some(_) => format!("{phase}: {}", Grade::explain(l.increase_s.p95)),
                None => format!(
                    "{phase}: no grade, because {} of the probes were lost: p95 of all of them is not known, and no better than {}",
                    number::percent(l.loss_ratio),
                    Grade::of_increase(l.increase_s.p95).name()
                ),
            }
        })
        .collect();
    Some(format!(
        "Grades: table {table}, applied to p95 over the idle median, of all round trips from two seconds after the load began. {}.",
        each.join(". ")
    ))
}

/// Each class of traffic by itself, where a load had several.
pub(super) fn classes(run: &Run) -> Table {
    let rows: Vec<_> = view::loaded(run)
        .flat_map(|(m, result)| {
            let phase = Phase::of(m);
            let classes = result.classes.iter();
            classes.map(move |(name, class)| (phase, name, class))
        })
        .collect();
    let rates = Scale::rates(
        rows.iter()
            .flat_map(|(_, _, class)| [class.down_bps, class.up_bps])
            .flatten(),
    );
    let times = Scale::seconds(rows.iter().filter_map(|(_, _, c)| c.rtt_s.map(|d| d.p50)));
    let mut table = Table::new(
        format!(
            "Classes of traffic; rates in {}, round trips in {}",
            rates.unit, times.unit
        ),
        &[
            ("", Text),
            ("class", Text),
            ("DSCP", Number),
            ("down", Number),
            ("up", Number),
            ("p50", Number),
            ("p95", Number),
            ("p95 over idle", Number),
            ("loss", Number),
        ],
    );
    for (phase, name, class) in &rows {
        let time = |d: Option<Distribution>, get: fn(Distribution) -> f64| times.show(d.map(get));
        table.row([
            phase.title().to_owned(),
            (*name).clone(),
            class.dscp.to_string(),
            class
                .down_bps
                .map_or_else(String::new, |v| rates.show(Some(v))),
            class
                .up_bps
                .map_or_else(String::new, |v| rates.show(Some(v))),
            time(class.rtt_s, |d| d.p50),
            time(class.rtt_s, |d| d.p95),
            time(class.increase_s, |d| d.p95),
            class.loss_ratio.map_or_else(String::new, number::percent),
        ]);
    }
    table.note = (!rows.is_empty()).then(|| {
        "Rates over the whole phase; round trips of probes that bore the class's DSCP both ways. Classes that fare alike: the path does not tell them apart."
            .to_owned()
    });
    table
}

/// What the load added to the round trip up to each place on the way.
pub(super) fn places(run: &Run) -> Table {
    let rows: Vec<_> = view::loaded(run)
        .filter_map(|(m, result)| Some((Phase::of(m), result.path.as_ref()?)))
        .collect();
    let medians = |(_, path): &(_, &plumb_model::results::PathQueueing)| {
        let places = path.places.iter().map(|place| place.rtt_s.p50);
        // What waits on the line is a thousand times what the way to the gateway takes.
        places
            .chain([path.beyond_increase_s.p95])
            .collect::<Vec<_>>()
    };
    let scale = Scale::seconds(rows.iter().flat_map(medians));
    let mut table = Table::new(
        format!(
            "Where it waits: round trips to places on the way, {}",
            scale.unit
        ),
        &[
            ("", Text),
            ("to", Text),
            ("address", Text),
            ("by", Text),
            ("idle p50", Number),
            ("p50", Number),
            ("p95", Number),
            ("p95 over idle", Number),
        ],
    );
    for (phase, path) in &rows {
        let show = |value: f64| scale.show(Some(value));
        for place in &path.places {
            table.row([
                phase.title().to_owned(),
                place.place.name().replace('-', " "),
                place.address.clone(),
                match place.method {
                    PlaceMethod::Echo => "echo".to_owned(),
                    PlaceMethod::HopLimit => "hop limit".to_owned(),
                },
                show(place.idle_rtt_s.p50),
                show(place.rtt_s.p50),
                show(place.rtt_s.p95),
                show(place.increase_s.p95),
            ]);
        }
        table.row([
            phase.title().to_owned(),
            "beyond the gateway".to_owned(),
            String::new(),
            "difference".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            show(path.beyond_increase_s.p95),
        ]);
    }
    let shares: Vec<_> = rows
        .iter()
        .filter_map(|(phase, path)| {
            let local = number::percent(path.local_ratio?);
            Some(format!("{}: {local}", phase.title()))
        })
        .collect();
    table.note = (!shares.is_empty()).then(|| {
        format!(
            "Share of the increase that arose before the gateway, on Wi-Fi or the local network: {}.",
            shares.join(", ")
        )
    });
    table
}

/// What repeats under load.
pub(super) fn periodic(run: &Run) -> Table {
    let mut table = Table::new(
        "Periodic structure",
        &[
            ("", Text),
            ("in", Text),
            ("what", Text),
            ("period", Number),
            ("seen", Number),
            ("strength", Number),
            ("sure", Number),
        ],
    );
    let mut reallocation = false;
    for (measurement, result) in view::loaded(run) {
        for found in &result.periodic {
            reallocation |= (found.period_s - STARLINK_S).abs() <= STARLINK_WITHIN_S;
            table.row([
                Phase::of(measurement).title().to_owned(),
                found.series.clone(),
                match found.of {
                    PeriodicOf::Level => "level comes back".to_owned(),
                    PeriodicOf::Changes => "changes".to_owned(),
                },
                number::seconds(found.period_s),
                found.times_seen.to_string(),
                number::percent(found.strength_ratio),
                number::percent(found.confidence),
            ]);
        }
    }
    let advice = if reallocation {
        " Starlink deals its capacity out anew every 15 s."
    } else {
        ""
    };
    table.note = Some(format!(
        "Strength is the mean correlation of values whole periods apart. The sawtooth of a single flow's congestion control repeats too: it shows under load alone.{advice}"
    ));
    table
}

/// How often Starlink's capacity is dealt out anew, in seconds (the latency filing, appendix B.5), and
/// how near a period must be to it.
const STARLINK_S: f64 = 15.0;
const STARLINK_WITHIN_S: f64 = 0.5;
