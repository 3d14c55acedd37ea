//! Page loads: their times, what stands between their start and their end, and their servers and objects.

use plumb_model::context::Phase;
use plumb_model::results::PageLoadResult;
use plumb_model::results::page_load::{CriticalStep, PageObject};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::number;
use crate::registry::results;
use crate::show::{Ends, Place, Show, Tables};
use crate::table::{MAX, P50, P95, Table, blank, counted};

/// So many characters of a URL are shown, from its end, which says most.
const MOST_CHARACTERS: usize = 50;

/// Errors that are shown beside the number of them.
const MOST_ERRORS: usize = 3;

impl Show for PageLoadResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::Ports, [loads(&all), critical(&all)]);
        tables.detail(Place::Ports, [parts(&all), servers(&all)]);
        tables.fold(objects(&all));
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        let sentence = |load: &Self| {
            let url = short(load.page_url.as_ref().unwrap_or(&load.url));
            let Some(time_s) = load.load_s else {
                return format!("{url} was not loaded.");
            };
            let trips = load.round_trips.map_or_else(String::new, |trips| {
                format!(
                    ", of which {} are {} round trips one after the other",
                    number::seconds(trips.time_s),
                    trips.count
                )
            });
            format!("{url} loaded in {}{trips}.", number::seconds(time_s))
        };
        results::<Self>(run).map(sentence).collect()
    }

    fn bears(&self) -> Ends {
        Ends {
            tcp: true,
            ..Ends::default()
        }
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        Quantities::of(phase, self.url.clone())
            .number("first_byte_s", ChangeUnit::S, self.first_byte_s)
            .number("html_s", ChangeUnit::S, self.html_s)
            .number("load_s", ChangeUnit::S, self.load_s)
            .number("objects_failed", ChangeUnit::Count, self.failed as f64)
            .found
    }

    /// Most of the time it waits for answers.
    fn fills_its_phase(&self) -> bool {
        false
    }

    fn asked(&self) -> Option<String> {
        let version = self.protocol.map(|version| version.name());
        Some(format!(
            "{} over {}",
            self.url,
            version.unwrap_or("nothing")
        ))
    }
}

/// How long each load took.
fn loads(all: &[&PageLoadResult]) -> Table {
    let errors = all.iter().flat_map(|load| {
        let failed = load.objects.iter().filter_map(|object| {
            let error = object.error.as_ref()?;
            Some(format!("{}: {error}.", short(&object.url)))
        });
        failed.take(MOST_ERRORS)
    });
    let left = all.iter().flat_map(|load| load.left_out.iter().cloned());
    let time = |value: Option<f64>| value.map(number::seconds);
    Table::of("Page load", all)
        .text("", |load| {
            short(load.page_url.as_ref().unwrap_or(&load.url))
        })
        .num("status", |load| load.status)
        .text("protocol", |load| {
            load.protocol.map(|version| version.name())
        })
        .num("first byte", |load| time(load.first_byte_s))
        .num("HTML", |load| time(load.html_s))
        .num("page load time", |load| time(load.load_s))
        .num("round trips", |load| {
            let trips = load.round_trips;
            trips.map(|trips| {
                format!(
                    "{}, together {}",
                    trips.count,
                    number::seconds(trips.time_s)
                )
            })
        })
        .num("objects", |load| load.requested)
        .num("failed", |load| counted(load.failed))
        .num("bytes", |load| number::bytes(load.bytes as f64))
        .num("connections", |load| load.connections)
        .noting(errors.chain(left))
}

/// What stands between the start and the end of each load.
fn critical(all: &[&PageLoadResult]) -> Table {
    let steps = all.iter().flat_map(|load| {
        let object = |step: &CriticalStep| load.objects.get(usize::try_from(step.object).ok()?);
        let steps = load.critical_path.iter();
        steps.filter_map(move |step| Some((object(step)?, *step)))
    });
    let time = |value: f64| number::seconds(value.max(0.0));
    Table::of("Critical path", steps)
        .text("", |(object, _): &(&PageObject, CriticalStep)| {
            short(&object.url)
        })
        .text("", |(object, _)| object.kind.name())
        .num("blocked", |(_, step)| time(step.blocked_s))
        .num("name", |(_, step)| time(step.dns_s))
        .num("connect", |(_, step)| time(step.connect_s))
        .num("TLS", |(_, step)| time(step.tls_s))
        .num("first byte", |(_, step)| time(step.first_byte_s))
        .num("body", |(_, step)| time(step.body_s))
        .done()
}

/// How the times of all objects are spread.
fn parts(all: &[&PageLoadResult]) -> Table {
    let parts = all.iter().flat_map(|load| {
        [
            ("name", load.dns_s),
            ("connect", load.connect_s),
            ("TLS", load.tls_s),
            ("first byte", load.object_first_byte_s),
            ("body", load.object_body_s),
        ]
    });
    let known = parts.filter_map(|(part, times)| Some((part, times?)));
    Table::of("Parts of a page load", known)
        .text("", |(part, _)| *part)
        .num("times", |(_, times)| times.count)
        .figures(
            [P50, P95, MAX],
            |(_, times)| Some(*times),
            |value| value.map(number::seconds),
        )
        .done()
}

fn servers(all: &[&PageLoadResult]) -> Table {
    let origins = all.iter().flat_map(|load| &load.origins);
    let time = |value: Option<f64>| blank(value.map(number::seconds));
    Table::of("Servers of the page", origins)
        .text("", |origin| short(&origin.origin))
        .text("address", |origin| blank(origin.address.as_ref()))
        .text("protocol", |origin| {
            blank(origin.protocol.map(|version| version.name()))
        })
        .text("encryption", |origin| blank(origin.tls.as_ref()))
        .num("name", |origin| time(origin.dns_s))
        .num("round trip", |origin| time(origin.rtt_s))
        .num("connections", |origin| origin.connections)
        .num("objects", |origin| origin.objects)
        .num("bytes", |origin| number::bytes(origin.bytes as f64))
        .text("error", |origin| blank(origin.error.as_ref()))
        .done()
}

fn objects(all: &[&PageLoadResult]) -> Table {
    let objects = all.iter().flat_map(|load| &load.objects);
    let time = |value: Option<f64>| blank(value.map(number::seconds));
    Table::of("Objects of the page", objects)
        .text("", |object| short(&object.url))
        .text("", |object| object.kind.name())
        .num("status", |object| blank(object.status))
        .num("connection", |object| blank(object.connection))
        .num("found", |object| number::seconds(object.found_s))
        .num("sent", |object| time(object.sent_s))
        .num("first byte", |object| time(object.first_byte_s))
        .num("body", |object| time(object.body_s))
        .num("bytes", |object| number::bytes(object.bytes as f64))
        .text("error", |object| blank(object.error.as_ref()))
        .done()
}

/// A URL as far as it fits a cell.
fn short(url: &str) -> String {
    let bare = url.strip_prefix("https://").unwrap_or(url);
    let length = bare.chars().count();
    match length.checked_sub(MOST_CHARACTERS) {
        None | Some(0) => bare.to_owned(),
        Some(over) => format!("…{}", bare.chars().skip(over + 1).collect::<String>()),
    }
}
