//! `/metrics`: the last 5 minutes, and the outages of a day, in Prometheus' text format (version 0.0.4).

use std::collections::BTreeMap;

use super::overview::{DAY_S, NOW_S};
use crate::config::Config;
use crate::distribution::Distribution;
use crate::outage::LEAST_LOST;
use crate::store::{Store, StoreError};
use crate::unit::Unit;

pub(super) fn text(config: &Config, store: &Store, now_s: i64) -> Result<String, StoreError> {
    let (mut lost, mut up, mut last) = (String::new(), String::new(), String::new());
    // Values by what they are measured in; times come first, also where there are none.
    let mut values = BTreeMap::from([(Unit::Seconds, String::new())]);
    let (mut outages, mut available) = (String::new(), String::new());
    let names = store.targets()?;
    let series: Vec<_> = names
        .iter()
        .filter_map(|name| config.series(name))
        .collect();
    for target in config.targets.iter().chain(&series) {
        // Of targets that are measured seldom, the last samples.
        let every_s = i64::try_from(target.every.as_secs()).unwrap_or(i64::MAX);
        let back_s = NOW_S.max(every_s.saturating_mul(4));
        let samples = store.samples(&target.name, now_s.saturating_sub(back_s))?;
        let seen = Distribution::of(&samples);
        let labels = format!(
            "target=\"{}\",probe=\"{}\"",
            label(&target.name),
            target.probe
        );
        if let Some(times) = seen.times {
            let quantiles = [
                ("0.05", times.p5_s),
                ("0.5", times.p50_s),
                ("0.95", times.p95_s),
            ];
            let unit = target.kind.unit();
            let (name, _) = unit.metric();
            let lines = values.entry(unit).or_default();
            for (quantile, value) in quantiles {
                *lines +=
                    &format!("plumb_watch_{name}{{{labels},quantile=\"{quantile}\"}} {value}\n");
            }
        }
        // What a device answers is known of the device itself.
        if target.kind.is_series() {
            continue;
        }
        if let Some(ratio) = seen.loss_ratio() {
            lost += &format!("plumb_watch_loss_ratio{{{labels}}} {ratio}\n");
            let answers = samples
                .iter()
                .rev()
                .take(LEAST_LOST)
                .any(|sample| sample.value.is_some());
            up += &format!("plumb_watch_up{{{labels}}} {}\n", u8::from(answers));
        }
        let day = store.outages(&target.name, now_s - DAY_S)?;
        if let Some(ratio) = day.availability() {
            let count = day.outages.len();
            outages += &format!("plumb_watch_outages{{{labels}}} {count}\n");
            available += &format!("plumb_watch_availability_ratio{{{labels}}} {ratio}\n");
        }
        if let Some(sample) = samples.iter().rev().find(|sample| sample.value.is_some()) {
            let at_s = sample.sent_us as f64 / 1e6;
            last += &format!("plumb_watch_last_success_timestamp_seconds{{{labels}}} {at_s}\n");
        }
    }
    let family = |name: &str, help: &str, lines: &str| {
        format!("# HELP plumb_watch_{name} {help}\n# TYPE plumb_watch_{name} gauge\n{lines}")
    };
    let values: String = values
        .iter()
        .map(|(unit, lines)| {
            let (name, help) = unit.metric();
            family(name, help, lines)
        })
        .collect();
    Ok([
        values,
        family(
            "loss_ratio",
            "Probes of the last 5 minutes without an answer.",
            &lost,
        ),
        family(
            "up",
            "Whether one of the last three probes was answered.",
            &up,
        ),
        family(
            "last_success_timestamp_seconds",
            "When the last answered probe was sent.",
            &last,
        ),
        family("outages", "Outages of the last 24 hours.", &outages),
        family(
            "availability_ratio",
            "The share of the watched time of the last 24 hours without outages.",
            &available,
        ),
    ]
    .concat())
}

/// Text as the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
