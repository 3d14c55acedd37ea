//! A knob as a page for people to read, as `plumb explain` shows it.

use std::fmt::Write as _;

use plumb_model::tune::{Kind, Scope};

use super::{Knob, Place};
use crate::knobs::formula::Formula;

/// The page of a knob, as Markdown.
pub fn page(knob: &Knob) -> String {
    let mut text = format!("# {} ({})\n\n{}\n\n", knob.name, knob.os, knob.does);
    let mut line = |what: &str, value: &str| {
        let _ = writeln!(text, "- {what}: {value}");
    };
    if !knob.also.is_empty() {
        line("other words", &knob.also.join(", "));
    }
    if let Some(why) = &knob.obsolete {
        line("obsolete", &format!("{why}. plumb refuses it."));
    }
    let lifetime = match (&knob.since, &knob.until) {
        (Some(since), Some(until)) => format!("since {since}, gone in {until}"),
        (Some(since), None) => format!("since {since}"),
        (None, Some(until)) => format!("gone in {until}"),
        (None, None) => "always".to_owned(),
    };
    line("there", &lifetime);
    if let Some(module) = &knob.module {
        line("needs the module", module);
    }
    line("default", &knob.default);
    if let (Some(least), Some(most)) = (knob.least, knob.most) {
        line("takes", &format!("{least} to {most}"));
    }
    line(
        "reaches",
        match (knob.kind, knob.scope) {
            (Kind::Interface, _) => "one interface",
            (_, Scope::Namespace) => "its network namespace",
            (_, Scope::Machine) => "the whole machine",
        },
    );
    let places: Vec<_> = knob.matters.iter().copied().map(Place::words).collect();
    line(
        "may matter on",
        &if places.is_empty() {
            "no common path".to_owned()
        } else {
            places.join(", ")
        },
    );
    line("matters", &knob.when);
    line("does not", &knob.not);
    if knob.value != Formula::Leave {
        line("plumb's value", &knob.value.words(knob.wanted.as_deref()));
    }
    for never in &knob.never {
        let since = never
            .since
            .as_ref()
            .map_or_else(String::new, |v| format!(" since {v}"));
        line(
            "never",
            &format!("{}{since}: {}", never.words(), never.because),
        );
    }
    line("risk", &knob.risk);
    line("source", &knob.source);
    text.push_str(&match &knob.page {
        Some(page) => format!(
            "\nFor a path of yours: plumb tune plan --rate 10gbit --rtt 50ms. More: plumb explain {page}.\n"
        ),
        None => "\nFor a path of yours: plumb tune plan --rate 10gbit --rtt 50ms.\n".to_owned(),
    });
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::knobs::Catalogue;

    #[test]
    fn tells_what_the_catalogue_knows() {
        let catalogue = Catalogue::built_in().unwrap();
        let of = |name| page(catalogue.named(name).first().unwrap());
        let rmem = of("tcp_rmem");
        for words in [
            "# net.ipv4.tcp_rmem (linux)",
            "takes: 4096 to 2147483647",
            "network namespace",
            "plumb explain tcp-buffers",
            "over 0.65",
        ] {
            assert!(rmem.contains(words), "{words}: {rmem}");
        }
        let recycle = of("tcp_tw_recycle");
        assert!(recycle.contains("gone in 4.12") && recycle.contains("refuses"));
    }
}
