//! What trials took, and what their labs say of the machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::counted::Counted;
use crate::results::Line;

/// The last tables of the page.
pub(crate) fn costs(
    text: &mut String,
    lines: &[Line],
    counted: &[Counted<'_>],
) -> std::fmt::Result {
    writeln!(
        text,
        "## What it took, and what the labs say of the machine\n"
    )?;
    writeln!(
        text,
        "| of a trial | median | 95th percentile | most |\n|---|---|---|---|"
    )?;
    let mut quantiles = |name: &str, value: &dyn Fn(&Counted<'_>) -> f64, unit: &str| {
        let mut values: Vec<f64> = counted.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let at = |quantile: f64| {
            let at = (quantile * values.len().saturating_sub(1) as f64).round() as usize;
            values.get(at).copied().unwrap_or_default()
        };
        let (median, p95, most) = (at(0.5), at(0.95), at(1.0));
        writeln!(
            text,
            "| {name} | {median:.1} {unit} | {p95:.1} {unit} | {most:.1} {unit} |"
        )
    };
    quantiles("time with its lab", &|c| c.checked.seconds, "s")?;
    quantiles("payload", &|c| c.checked.bytes as f64 / 1e6, "MB")?;
    let late = |c: &Counted<'_>| c.checked.lab.lateness_p99_s.unwrap_or_default() * 1e3;
    quantiles("lateness of packets, 99th percentile", &late, "ms")?;
    quantiles(
        "programs waited for a processor",
        &|c| c.checked.lab.starved_ratio * 100.0,
        "%",
    )?;
    by_lanes(text, counted)?;
    let again = counted.iter().filter(|c| c.checked.attempts > 1).count();
    let failed = lines.iter().filter(|line| line.failed.is_some()).count();
    let late = lines.len() - counted.len() - failed;
    writeln!(
        text,
        "\n{again} were measured again because the machine was late, {late} do not count because it was late each \
         time, and {failed} failed.\n"
    )?;
    for line in lines {
        if let Some(why) = &line.failed {
            writeln!(text, "- {} failed: {why}", line.trial.id())?;
        }
    }
    Ok(())
}

/// Whether labs that ran beside each other kept to their schedules as well as alone.
fn by_lanes(text: &mut String, counted: &[Counted<'_>]) -> std::fmt::Result {
    writeln!(
        text,
        "\n| labs beside each other | clock and kernel | trials | lateness, median of the 99th percentiles | waited for a processor, mean | measured again |\n|---|---|---|---|---|---|"
    )?;
    let mut lanes: BTreeMap<(usize, String), Vec<&Counted<'_>>> = BTreeMap::new();
    for counted in counted {
        let lab = &counted.checked.lab;
        let on = lab
            .kernel
            .as_ref()
            .map_or_else(String::new, |kernel| format!(", {kernel}"));
        let clock = format!("{}{on}", lab.clock.name());
        let labs = lanes.entry((counted.line.lanes, clock));
        labs.or_default().push(counted);
    }
    for ((lanes, clock), counted) in lanes {
        let late = |c: &&Counted<'_>| c.checked.lab.lateness_p99_s;
        let mut late: Vec<f64> = counted.iter().filter_map(late).collect();
        late.sort_by(f64::total_cmp);
        let median = late.get(late.len() / 2).copied().unwrap_or_default() * 1e3;
        let starved: f64 = counted.iter().map(|c| c.checked.lab.starved_ratio).sum();
        let starved = starved / counted.len() as f64 * 100.0;
        let again = counted.iter().filter(|c| c.checked.attempts > 1).count();
        let trials = counted.len();
        writeln!(
            text,
            "| {lanes} | {clock} | {trials} | {median:.2} ms | {starved:.1} % | {again} |"
        )?;
    }
    Ok(())
}
