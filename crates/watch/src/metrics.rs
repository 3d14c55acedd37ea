//! The metrics: the last 5 minutes, and the outages of a day. `/metrics` prints them, and remote write sends them.

use std::collections::BTreeMap;

use plumb_wire::remote_write::Kind;

use crate::config::{Config, Target};
use crate::distribution::Distribution;
use crate::outage::LEAST_LOST;
use crate::remote_write::queue;
use crate::store::{Store, StoreError};
use crate::unit::Unit;

/// What counts as now, in seconds.
pub(crate) const NOW_S: i64 = 300;

/// The time over which availability is shown, in seconds.
pub(crate) const DAY_S: i64 = 86_400;

/// A metric, with its series.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    pub(crate) points: Vec<Point>,
}

/// The value of a series. No label is empty.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: f64,
}

impl Family {
    fn new(name: &str, help: &'static str, points: Vec<Point>) -> Self {
        Self {
            name: format!("plumb_watch_{name}"),
            kind: Kind::Gauge,
            help,
            points,
        }
    }
}

/// What is said of every target.
#[derive(Default)]
struct OfTargets {
    lost: Vec<Point>,
    up: Vec<Point>,
    last: Vec<Point>,
    outages: Vec<Point>,
    available: Vec<Point>,
}

/// All metrics at that time of day, s since 1970.
pub(crate) fn families(
    config: &Config,
    store: &Store,
    now_s: i64,
) -> Result<Vec<Family>, StoreError> {
    // Values by what they are measured in; times come first, also where there are none.
    let mut values = BTreeMap::from([(Unit::Seconds, Vec::new())]);
    let mut of_targets = OfTargets::default();
    let names = store.targets()?;
    let series: Vec<_> = names
        .iter()
        .filter_map(|name| config.series(name))
        .collect();
    for target in config.targets.iter().chain(&series) {
        of_targets.add(target, store, now_s, &mut values)?;
    }
    let values = values.into_iter().map(|(unit, points)| {
        let (name, help) = unit.metric();
        Family::new(name, help, points)
    });
    let mut all: Vec<Family> = values.collect();
    all.extend([
        Family::new(
            "loss_ratio",
            "Probes of the last 5 minutes without an answer.",
            of_targets.lost,
        ),
        Family::new(
            "up",
            "Whether one of the last three probes was answered.",
            of_targets.up,
        ),
        Family::new(
            "last_success_timestamp_seconds",
            "When the last answered probe was sent.",
            of_targets.last,
        ),
        Family::new(
            "outages",
            "Outages of the last 24 hours.",
            of_targets.outages,
        ),
        Family::new(
            "availability_ratio",
            "The share of the watched time of the last 24 hours without outages.",
            of_targets.available,
        ),
    ]);
    if config.remote_write.is_some() {
        all.extend(of_remote_write(config));
    }
    Ok(all)
}

impl OfTargets {
    fn add(
        &mut self,
        target: &Target,
        store: &Store,
        now_s: i64,
        values: &mut BTreeMap<Unit, Vec<Point>>,
    ) -> Result<(), StoreError> {
        // Of targets that are measured seldom, the last samples.
        let every_s = i64::try_from(target.every.as_secs()).unwrap_or(i64::MAX);
        let back_s = NOW_S.max(every_s.saturating_mul(4));
        let samples = store.samples(&target.name, now_s.saturating_sub(back_s))?;
        let seen = Distribution::of(&samples);
        let labels = vec![
            ("target", target.name.clone()),
            ("probe", target.probe.to_owned()),
        ];
        let point = |value| Point {
            labels: labels.clone(),
            value,
        };
        if let Some(times) = seen.times {
            let quantiles = [
                ("0.05", times.p5_s),
                ("0.5", times.p50_s),
                ("0.95", times.p95_s),
            ];
            let points = quantiles.map(|(quantile, value)| {
                let mut point = point(value);
                point.labels.push(("quantile", quantile.to_owned()));
                point
            });
            values.entry(target.kind.unit()).or_default().extend(points);
        }
        // What a device answers is known of the device itself.
        if target.kind.is_series() {
            return Ok(());
        }
        if let Some(ratio) = seen.loss_ratio() {
            self.lost.push(point(ratio));
            let answers = samples
                .iter()
                .rev()
                .take(LEAST_LOST)
                .any(|sample| sample.value.is_some());
            self.up.push(point(f64::from(u8::from(answers))));
        }
        let day = store.outages(&target.name, now_s - DAY_S)?;
        if let Some(ratio) = day.availability() {
            self.outages.push(point(day.outages.len() as f64));
            self.available.push(point(ratio));
        }
        if let Some(sample) = samples.iter().rev().find(|sample| sample.value.is_some()) {
            self.last.push(point(sample.sent_us as f64 / 1e6));
        }
        Ok(())
    }
}

/// What became of what was to be sent. Without a queue that can be read nothing is known of it.
fn of_remote_write(config: &Config) -> Vec<Family> {
    let Ok(Some(look)) = queue::look(&queue::path(&config.store)) else {
        return Vec::new();
    };
    let counts = look.counts.into_iter().map(|(result, samples)| Point {
        labels: vec![("result", result)],
        value: samples as f64,
    });
    let alone = |value| {
        vec![Point {
            labels: Vec::new(),
            value,
        }]
    };
    vec![
        Family {
            kind: Kind::Counter,
            ..Family::new(
                "remote_write_samples_total",
                "Samples that were sent, refused, or given up before they were sent.",
                counts.collect(),
            )
        },
        Family::new(
            "remote_write_waiting_samples",
            "Samples that wait to be sent.",
            alone(look.samples as f64),
        ),
        Family::new(
            "remote_write_waiting_bytes",
            "The size of what waits to be sent.",
            alone(look.bytes as f64),
        ),
    ]
}
