//! A tuning plan for the terminal.

use plumb_model::finding::Actor;
use plumb_model::tune::{HostPlan, TunePlan, UDEV_RULES, Worth};
use plumb_model::units::{human_seconds, share, si};

use super::layout::{BAD, BOLD, FAINT, GOOD, Page, clean};
use super::style::Style;

/// The whole plan as text, each line ended.
pub fn render_tune_plan(plan: &TunePlan, style: &Style) -> String {
    let mut page = Page::new(style);
    let path = &plan.path;
    let lost = path.loss_ratio.filter(|lost| *lost > 0.0);
    let lost = lost.map_or_else(String::new, |lost| format!(", {} lost", share(lost)));
    let title = format!(
        "For {} over {}{lost} ({}): {} in flight",
        si(path.rate_bps, "bit/s"),
        human_seconds(path.rtt_s),
        path.from,
        si(path.bdp_bytes, "B"),
    );
    page.wrapped("", BOLD, &clean(&title));
    page.blank();
    for host in &plan.hosts {
        self::host(&mut page, host);
    }
    page.finish()
}

fn host(page: &mut Page<'_>, host: &HostPlan) {
    let which = match host.on {
        Actor::FarHost => "the far host",
        Actor::Router => "the router",
        Actor::Provider => "the provider's side",
        Actor::ThisHost => "this host",
    };
    let opening = format!(
        "On {which} ({}, {}; facts: {})",
        host.os,
        host.role.name(),
        host.facts_from
    );
    let opening = page.paint(BOLD, &clean(&opening));
    page.line(&opening);
    page.blank();
    if host.changes.is_empty() {
        // Notes on a plan without a change, and what is refused, say what limits the host nevertheless.
        match host.notes.is_empty() && host.refused.is_empty() {
            true => page.wrapped("  ", GOOD, "Nothing needs to change for this path."),
            false => page.wrapped(
                "  ",
                BOLD,
                "No setting that plumb may change helps on this path:",
            ),
        }
        page.blank();
    }
    for change in &host.changes {
        let knob = page.paint(BOLD, &clean(&change.knob));
        let from = change.from.as_deref().unwrap_or("not known");
        page.line(&format!(
            "  {knob}: {}",
            clean(&format!("{from} -> {}", change.to))
        ));
        page.wrapped("    ", anstyle::Style::new(), &change.why);
        page.wrapped("    Expect: ", anstyle::Style::new(), &change.effect);
        page.wrapped("    Risk: ", FAINT, &change.risk);
        if let Some(rule) = &change.at_boot {
            let how = format!(
                "gone, for plumb's drop-in file has kernel variables alone. A file such as {UDEV_RULES} with this line brings it back:"
            );
            page.wrapped("    At boot: ", FAINT, &how);
            page.line(&format!("      {}", clean(rule)));
        }
        page.blank();
    }
    for refused in &host.refused {
        let line = format!(
            "Not done here: {} = {}, because {}.",
            refused.knob, refused.to, refused.why
        );
        page.wrapped("  ! ", anstyle::Style::new(), &line);
    }
    if !host.refused.is_empty() {
        page.blank();
    }
    if let Some(bytes) = host.memory_bytes {
        let line = format!(
            "Memory: a connection that needs it all may hold {} of buffers.",
            si(bytes as f64, "B")
        );
        page.wrapped("  ", anstyle::Style::new(), &line);
        page.blank();
    }
    for note in &host.notes {
        page.wrapped("  · ", anstyle::Style::new(), note);
    }
    if !host.notes.is_empty() {
        page.blank();
    }
    judged(page, host);
    left(page, host);
}

fn judged(page: &mut Page<'_>, host: &HostPlan) {
    if host.judged.is_empty() {
        return;
    }
    let title = page.paint(BOLD, "  The advice, for this path");
    page.line(&title);
    for judged in &host.judged {
        let paint = match judged.worth {
            Worth::Helps | Worth::Already => GOOD,
            Worth::Harmful | Worth::Obsolete | Worth::Impossible => BAD,
            Worth::TooLittle | Worth::NoEffect | Worth::Unknown => FAINT,
        };
        let worth = page.paint(paint, judged.worth.shown());
        page.line(&format!(
            "    {}  {worth}",
            clean(&format!("{} = {}", judged.knob, judged.value))
        ));
        page.wrapped("      ", FAINT, &judged.why);
    }
    page.blank();
}

fn left(page: &mut Page<'_>, host: &HostPlan) {
    if host.left.is_empty() {
        return;
    }
    let title = page.paint(FAINT, "  Looked at and left alone");
    page.line(&title);
    for left in &host.left {
        let line = format!(
            "{} = {}: {}",
            left.knob,
            value(&left.knob, left.value.as_deref()),
            left.why
        );
        page.wrapped("    ", FAINT, &line);
    }
    page.blank();
}

/// A value as people read it: what a driver's queue may hold is in bytes, and the kernel's largest number of them is no limit.
fn value(knob: &str, value: Option<&str>) -> String {
    /// The kernel's own limit, in bytes (`DQL_MAX_LIMIT`, `include/linux/dynamic_queue_limits.h`): half of 2^32, less 2^28.
    const NO_LIMIT: f64 = 1_879_048_192.0;
    let value = value.unwrap_or("not known");
    match value.parse::<f64>() {
        Ok(bytes) if knob == "driver queue" && bytes >= NO_LIMIT => "no limit".to_owned(),
        Ok(bytes) if knob == "driver queue" => si(bytes, "B"),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_queue_is_in_bytes() {
        let of = |text| value("driver queue", Some(text));
        assert_eq!(of("1879048192"), "no limit");
        assert_eq!(of("30280"), "30.3 kB");
        assert_eq!(value("txqueuelen", Some("1000")), "1000");
    }
}
