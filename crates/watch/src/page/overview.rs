//! `/`: what is wrong now, in words, and how each target fares.

use super::words::{available, clock, escaped, in_path, lasted, moment, page as whole, percent};
use crate::config::Config;
use crate::distribution::Distribution;
use crate::metrics::{DAY_S, NOW_S};
use crate::store::{Store, StoreError};

/// How often a browser loads the page again, in seconds.
const AGAIN_S: u32 = 30;

/// Where not all is seen, what the configuration has not is not.
pub(super) fn page(
    config: &Config,
    is_all: bool,
    store: &Store,
    now_s: i64,
) -> Result<String, StoreError> {
    let mut wrong = String::new();
    let mut standing = store.standing()?;
    standing.retain(|alarm| is_all || config.knows(&alarm.target));
    for alarm in standing {
        let since = clock(alarm.since_s, now_s);
        wrong += &format!(
            "<li class=\"bad\"><a href=\"/target/{}\">{}</a>: {} since {since} (alarm {})</li>\n",
            in_path(&alarm.target),
            escaped(&alarm.target),
            escaped(&alarm.in_words()),
            escaped(&alarm.rule)
        );
    }
    let mut rows = String::new();
    let mut group = None;
    let mut targets: Vec<_> = config.targets.iter().collect();
    targets.sort_by_key(|target| &target.group);
    for target in targets {
        // Of targets that are probed seldom, the last samples.
        let every_s = i64::try_from(target.every.as_secs()).unwrap_or(i64::MAX);
        let back_s = NOW_S.max(every_s.saturating_mul(4));
        let samples = store.samples(&target.name, now_s.saturating_sub(back_s))?;
        let seen = Distribution::of(&samples);
        let outages = store.outages(&target.name, now_s - DAY_S)?;
        let name = escaped(&target.name);
        let link = format!("<a href=\"/target/{}\">{name}</a>", in_path(&target.name));
        let last = outages.outages.last();
        match (last, seen.loss_ratio()) {
            (_, None) => wrong += &format!("<li>{link} was not probed.</li>\n"),
            (Some(outage), _) if outage.lasts => {
                let since = moment(outage.begin_us);
                wrong +=
                    &format!("<li class=\"bad\">{link} has not answered since {since}.</li>\n");
            }
            (_, Some(lost)) if lost > 0.0 => {
                let lost = percent(lost);
                wrong += &format!("<li>{link} lost {lost} of its probes.</li>\n");
            }
            _ => {}
        }
        if group != target.group.as_ref() {
            group = target.group.as_ref();
            let heading = escaped(group.map_or("", String::as_str));
            rows += &format!("<tr><th colspan=\"6\">{heading}</th></tr>\n");
        }
        let lost = seen
            .loss_ratio()
            .map_or_else(|| "not probed".to_owned(), percent);
        let median = seen.times.map_or_else(
            || "no answer".to_owned(),
            |times| target.kind.unit().words(times.p50_s),
        );
        let probe = target.probe;
        let up = available(outages.availability(), outages.watched);
        let last = last.map_or_else(
            || "none".to_owned(),
            |outage| format!("{}, {}", moment(outage.begin_us), lasted(outage)),
        );
        rows += &format!(
            "<tr><td>{link}</td><td>{probe}</td><td>{lost}</td><td>{median}</td><td>{up}</td><td>{last}</td></tr>\n"
        );
    }
    let mut flows = String::new();
    if config.access.is_some() {
        flows += "<p><a href=\"/login\">Log in or out</a></p>\n";
    }
    if config.mesh.is_some() {
        flows += "<p><a href=\"/mesh\">Mesh</a></p>\n";
    }
    let sources = match is_all {
        true => store.flow_sources()?,
        false => Vec::new(),
    };
    for (name, ..) in sources {
        let link = format!(
            "<a href=\"/flows/{}\">{}</a>",
            in_path(&name),
            escaped(&name)
        );
        flows += &format!("<p>Flows: {link}</p>\n");
    }
    if config.targets.is_empty() {
        let body = format!("<h1>Now</h1>\n<p>No target is probed.</p>\n{flows}");
        return Ok(whole("plumb watch", Some(AGAIN_S), &body));
    }
    let now = match wrong.is_empty() {
        true => "<p>All targets answer, and lost nothing.</p>\n".to_owned(),
        false => format!("<ul>\n{wrong}</ul>\n"),
    };
    let body = format!(
        "<h1>Now</h1>\n{now}<h2>The last 5 minutes, and outages of 24 hours</h2>\n<div class=\"scroll\"><table>\
         <tr><th>target</th><th>probe</th><th>lost</th><th>median</th><th>available</th><th>last outage (UTC)</th></tr>\n\
         {rows}</table></div>\n{flows}"
    );
    Ok(whole("plumb watch", Some(AGAIN_S), &body))
}
