//! Round trips of small probes to one target: how the probing went, their spread, sizes, losses.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::results::ping::{PingResult, TimestampSource};
use plumb_model::run::Run;

use crate::number::{self, Scale};
use crate::probes::{Probes, names};
use crate::registry::{all, results};
use crate::show::{Ends, Place, RoundTrips, Show, Tables, Trace};
use crate::table::{MAX, MIN, P50, P95, Table, by_count, counted};

impl Show for PingResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let probed = all::<Self>(run).map(|found| Probes {
            phase: found.phase,
            protocol: found.result.protocol,
            to: Some(&found.result.address),
            sent: Some(found.result.sent),
        });
        let names = names(&probed.collect::<Vec<_>>());
        let rows = all::<Self>(run).zip(names);
        let rows: Vec<Row<'_>> = rows
            .map(|(found, name)| (found.phase, found.result, name))
            .collect();
        // Where nothing but probes was measured there is room to say more of them.
        let alone = run.measurements.len() == rows.len();
        let spread = alone.then(|| spread(results(run)));
        tables.detail(Place::Probes, [probes(&rows)]);
        tables.detail(Place::Probes, spread);
        let asked = [phases(results(run)), sizes(results(run))];
        match alone {
            true => tables.add(Place::Probes, asked),
            false => tables.detail(Place::Probes, asked),
        }
        tables.detail(Place::Probes, [losses(&rows)]);
    }

    /// As ping ends, where nothing else was measured.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let alone = run.measurements.iter().all(|m| m.outcome.ping().is_some());
        let pings = results::<Self>(run).filter(|_| alone);
        pings
            .flat_map(|ping| [Some(counts(ping)), spans(ping)])
            .flatten()
            .collect()
    }

    fn bears(&self) -> Ends {
        Ends::CLOCK_SOURCE
    }

    fn round_trips(&self) -> Option<RoundTrips<'_>> {
        Some(RoundTrips {
            protocol: self.protocol,
            rtt_s: self.rtt_s.as_ref(),
            increase_s: None,
            loss_ratio: self.loss_ratio,
            grade: None,
            to: Some(&self.address),
            sent: Some(self.sent),
        })
    }

    fn trace(&self, series: &str) -> Option<Trace> {
        (series == "rtt").then_some(Trace::RoundTrip {
            protocol: self.protocol,
            loaded: false,
        })
    }
}

/// A measurement with its phase, and the name of its probes.
type Row<'a> = (Phase, &'a PingResult, String);

/// How many probes were answered.
fn counts(ping: &PingResult) -> String {
    let lost = ping.loss_ratio.map_or_else(String::new, |ratio| {
        format!(", {} lost", number::percent(ratio))
    });
    let some = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let (again, late) = (
        some(ping.duplicates, "duplicates"),
        some(ping.reordered, "reordered"),
    );
    format!(
        "{} probe{} sent, {} answered{lost}{again}{late}",
        ping.sent,
        if ping.sent == 1 { "" } else { "s" },
        ping.received
    )
}

/// The round trips in one line, in ms, as each answer was printed.
fn spans(ping: &PingResult) -> Option<String> {
    let rtt = ping.rtt_s?;
    let values = [rtt.min, rtt.p50, rtt.p95, rtt.max].map(number::milliseconds);
    Some(format!(
        "round-trip time min/median/95 %/max: {} ms",
        values.join("/")
    ))
}

/// How well the probing itself went.
fn probes(rows: &[Row<'_>]) -> Table {
    Table::of("Probes", rows)
        .text("", |(phase, ..)| phase.shown())
        .text("probe", |(.., name)| name)
        .num("sent", |(_, ping, _)| ping.sent)
        .num("answered", |(_, ping, _)| ping.received)
        .num("dup", |(_, ping, _)| ping.duplicates)
        .num("reord", |(_, ping, _)| ping.reordered)
        .num("late", |(_, ping, _)| counted(ping.late))
        .text("TTL", |(_, ping, _)| hop_limits(ping))
        .text("answers", |(_, ping, _)| by_count(&ping.answers))
        .num("unsent", |(_, ping, _)| ping.send_errors)
        .num("dropped", |(_, ping, _)| ping.dropped_here)
        .num("late p99, ms", |(_, ping, _)| {
            ping.lateness_s.map(|d| number::milliseconds(d.p99))
        })
        .text("stamps", |(_, ping, _)| match ping.timestamps {
            TimestampSource::Kernel => "kernel",
            TimestampSource::User => "user",
        })
        .done()
}

/// The hop limits that answers bore, and how often that changed.
fn hop_limits(ping: &PingResult) -> String {
    let mut text = match ping.hop_limits.as_slice() {
        [] => return String::new(),
        [only] => only.hop_limit.to_string(),
        [first, .., last] => format!("{}–{}", first.hop_limit, last.hop_limit),
    };
    match ping.hop_limit_changes {
        0 => {}
        1 => text.push_str(", 1 change"),
        changes => text.push_str(&format!(", {changes} changes")),
    }
    text
}

/// The figures that ping prints, and more of them.
fn spread<'a>(pings: impl Iterator<Item = &'a PingResult>) -> Table {
    let rows: Vec<_> = pings
        .filter_map(|ping| Some((ping.protocol.name(), ping.rtt_s?)))
        .collect();
    let scale = Scale::seconds(rows.iter().map(|(_, rtt)| rtt.p50));
    Table::of(format!("Spread of the round trips, {}", scale.unit), &rows)
        .text("", |(protocol, _)| *protocol)
        .figures(
            [
                MIN,
                ("p5", |d| d.p5),
                ("p25", |d| d.p25),
                ("mean", |d| d.mean),
                ("p75", |d| d.p75),
                MAX,
                ("deviation", |d| d.stddev),
            ],
            |(_, rtt)| Some(*rtt),
            |v| scale.show(v),
        )
        .done()
}

/// The parts of requests over connections of their own.
fn phases<'a>(pings: impl Iterator<Item = &'a PingResult>) -> Table {
    let parts = pings.flat_map(|ping| {
        let (name, phases) = (ping.protocol.name(), ping.phases.as_deref());
        let parts = phases.map(|phases| {
            [
                ("connect", phases.connect_s),
                ("TLS", phases.tls_s),
                ("first byte", phases.first_byte_s),
            ]
        });
        let known = parts.into_iter().flatten();
        known.filter_map(move |(part, times)| Some((name, part, times?)))
    });
    let rows: Vec<_> = parts.collect();
    let scale = Scale::seconds(rows.iter().map(|(.., times)| times.p50));
    Table::of(format!("Parts of the requests, {}", scale.unit), &rows)
        .text("", |(name, ..)| *name)
        .text("part", |(_, part, _)| *part)
        .figures(
            [MIN, P50, P95, MAX],
            |(.., times)| Some(*times),
            |v| scale.show(v),
        )
        .done()
}

/// Round trips by the size of the probe.
fn sizes<'a>(pings: impl Iterator<Item = &'a PingResult>) -> Table {
    let rows: Vec<_> = pings.flat_map(|ping| &ping.sizes).collect();
    let scale = Scale::seconds(rows.iter().filter_map(|s| s.rtt_s.map(|d| d.p50)));
    Table::of(format!("By size of the probe, {}", scale.unit), &rows)
        .num("payload", |size| size.size_bytes)
        .num("sent", |size| size.sent)
        .num("answered", |size| size.received)
        .figures([MIN, P50, P95, MAX], |size| size.rtt_s, |v| scale.show(v))
        .done()
}

/// How losses follow each other, and what ICMP said.
fn losses(rows: &[Row<'_>]) -> Table {
    let rows = rows
        .iter()
        .filter(|(_, ping, _)| ping.losses.periods > 0 || !ping.icmp_errors.is_empty());
    let plain =
        |d: Option<Distribution>, get: fn(&Distribution) -> f64| d.map(|d| number::plain(get(&d)));
    Table::of("Probes lost one after the other (RFC 3357)", rows)
        .text("", |(phase, ..)| phase.shown())
        .text("probe", |(.., name)| name)
        .num("lost", |(_, ping, _)| {
            ping.sent.saturating_sub(ping.received)
        })
        .num("runs", |(_, ping, _)| ping.losses.periods)
        .num("mean run", |(_, ping, _)| {
            plain(ping.losses.period_length, |d| d.mean)
        })
        .num("longest", |(_, ping, _)| {
            plain(ping.losses.period_length, |d| d.max)
        })
        .num("mean distance", |(_, ping, _)| {
            plain(ping.losses.distance, |d| d.mean)
        })
        .num("least", |(_, ping, _)| {
            plain(ping.losses.distance, |d| d.min)
        })
        .text("ICMP errors", |(_, ping, _)| by_count(&ping.icmp_errors))
        .done()
}
