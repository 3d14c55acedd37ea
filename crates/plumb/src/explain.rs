//! `plumb explain`: the knowledge base, the catalogue of knobs, and the meaning of counters.

use std::process::ExitCode;

use clap::Args;
use plumb_host::knobs::{Catalogue, Knob, page};
use plumb_model::counter::{self, COUNTERS, Counter, Sense};
use plumb_model::tune::Os;
use plumb_model::vocabulary::Vocabulary as _;

use crate::output::print;

/// The pages, built in: topic and text.
const PAGES: &[(&str, &str)] = &[
    (
        "available-bandwidth",
        include_str!("../../../kb/available-bandwidth.md"),
    ),
    ("bufferbloat", include_str!("../../../kb/bufferbloat.md")),
    ("fairness", include_str!("../../../kb/fairness.md")),
    ("host", include_str!("../../../kb/host.md")),
    ("lab", include_str!("../../../kb/lab.md")),
    ("scenario", include_str!("../../../scenarios/README.md")),
    ("cells", include_str!("../../../scenarios/cells.md")),
    (
        "loaded-latency",
        include_str!("../../../kb/loaded-latency.md"),
    ),
    (
        "responsiveness",
        include_str!("../../../kb/responsiveness.md"),
    ),
    ("loss", include_str!("../../../kb/loss.md")),
    ("capacity", include_str!("../../../kb/capacity.md")),
    ("mtu", include_str!("../../../kb/mtu.md")),
    ("path", include_str!("../../../kb/path.md")),
    (
        "one-way-delay",
        include_str!("../../../kb/one-way-delay.md"),
    ),
    ("page", include_str!("../../../kb/page.md")),
    ("ping", include_str!("../../../kb/ping.md")),
    ("port", include_str!("../../../kb/port.md")),
    ("serve", include_str!("../../../kb/serve.md")),
    ("tcp-buffers", include_str!("../../../kb/tcp-buffers.md")),
    ("tcp-counters", include_str!("../../../kb/tcp-counters.md")),
    ("throughput", include_str!("../../../kb/throughput.md")),
    ("transactions", include_str!("../../../kb/transactions.md")),
    ("tuning", include_str!("../../../kb/tuning.md")),
    ("udp", include_str!("../../../kb/udp.md")),
    ("verdict", include_str!("../../../kb/verdict.md")),
    ("voice", include_str!("../../../kb/voice.md")),
];

/// Other names for what the pages are about: the causes of findings, and their remedies.
const ALIASES: &[(&str, &str)] = &[
    ("bufferbloat-up", "bufferbloat"),
    ("bufferbloat-down", "bufferbloat"),
    ("fq_codel", "bufferbloat"),
    ("fq-codel", "bufferbloat"),
    ("cake", "bufferbloat"),
    ("sqm", "bufferbloat"),
    ("laboratory", "lab"),
    ("scenarios", "scenario"),
    ("traffic", "scenario"),
    ("cell", "cells"),
    ("queue", "cells"),
    ("shaper", "cells"),
    ("rrul", "loaded-latency"),
    ("flent", "loaded-latency"),
    ("grade", "loaded-latency"),
    ("local-segment", "loaded-latency"),
    ("unexplained", "verdict"),
    ("nothing-carried", "verdict"),
    ("all-clear", "verdict"),
    ("rpm", "responsiveness"),
    ("send-buffer-small", "tcp-buffers"),
    ("receive-buffer-small", "tcp-buffers"),
    ("pmtud-black-hole", "mtu"),
    ("pathchar", "capacity"),
    ("pchar", "capacity"),
    ("packet-train", "capacity"),
    ("packet-pair", "capacity"),
    ("narrowest-line", "capacity"),
    ("token-bucket", "capacity"),
    ("mss-clamped", "mtu"),
    ("pmtud", "mtu"),
    ("owd", "one-way-delay"),
    ("stamp", "one-way-delay"),
    ("twamp", "one-way-delay"),
    ("owamp", "one-way-delay"),
    ("one-way-delay-asymmetric", "one-way-delay"),
    ("mss", "mtu"),
    ("path-loss", "loss"),
    ("path-refused", "path"),
    ("route-changed", "path"),
    ("route-flapping", "path"),
    ("route-detour", "path"),
    ("dscp-changed", "path"),
    ("ecn-cleared", "path"),
    ("traceroute", "path"),
    ("mtr", "path"),
    ("tune", "tuning"),
    ("sysctl", "tuning"),
    ("slow-start", "throughput"),
    ("rate", "throughput"),
    ("rr", "transactions"),
    ("crr", "transactions"),
    ("available", "available-bandwidth"),
    ("rtt", "ping"),
    ("fping", "ping"),
    ("telnet", "port"),
    ("nat-timeout", "port"),
    ("idle", "port"),
    ("jain", "fairness"),
    ("sharing", "fairness"),
    ("background", "fairness"),
    ("ledbat", "fairness"),
    ("nstat", "tcp-counters"),
    ("netstat", "tcp-counters"),
    ("link-duplex-half", "host"),
    ("link-slow", "host"),
    ("link-unsteady", "host"),
    ("link-errors", "host"),
    ("bus-slow", "host"),
    ("receive-overrun", "host"),
    ("mtu-mismatch", "host"),
    ("offload-off", "host"),
    ("offload-harmful", "host"),
    ("pause-flood", "host"),
    ("backlog-drops", "host"),
    ("one-processor-receives", "host"),
    ("driver-queue-unlimited", "host"),
    ("tcp-feature-off", "host"),
    ("obsolete-setting", "host"),
    ("listen-overflow", "host"),
    ("limit-near", "host"),
    ("power-saving", "host"),
    ("coalescing-unfit", "host"),
    ("clock-unsynchronised", "host"),
    ("clock-source-slow", "host"),
    ("wifi-weak", "host"),
    ("module-light-low", "host"),
    ("broadcast-domain-large", "host"),
    ("disk-slow", "host"),
    ("cipher-slow", "host"),
    ("disk", "host"),
    ("cipher", "host"),
    ("queue-unmanaged", "bufferbloat"),
    ("queue-drops", "bufferbloat"),
    ("udp-buffer-small", "udp"),
    ("retransmits-high", "tcp-counters"),
    ("memory-pressure", "tcp-counters"),
    ("receive-buffer-pruned", "tcp-counters"),
    ("fragments-lost", "tcp-counters"),
    ("softnet", "host"),
    ("pause-frames", "host"),
    ("flow-control", "host"),
    ("eee", "host"),
    ("governor", "host"),
    ("interrupts", "host"),
    ("irqbalance", "host"),
    ("check", "loaded-latency"),
    ("load", "loaded-latency"),
    ("offload", "host"),
    ("duplex", "host"),
    ("ethtool", "host"),
    ("mos", "voice"),
    ("e-model", "voice"),
    ("profiles", "voice"),
];

/// What lists the settings.
const KNOBS: &str = "knobs";

#[derive(Args)]
pub(crate) struct Arguments {
    /// What to explain: a topic, a setting such as tcp_rmem, fq or ring rx, or a counter such as TcpRetransSegs;
    /// without it, the topics; 'knobs' lists the settings
    topic: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let topics: Vec<_> = PAGES.iter().map(|(topic, _)| *topic).collect();
    let topics = topics.join(", ");
    if arguments.topic.is_empty() {
        print(&format!("Topics: {topics}\nKnobs: plumb explain knobs\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let asked = arguments.topic.join(" ");
    let catalogue = Catalogue::built_in()?;
    if asked.eq_ignore_ascii_case(KNOBS) {
        print(&list(&catalogue))?;
        return Ok(ExitCode::SUCCESS);
    }
    // One word may be a topic, a setting of several systems, and a counter: all that is known is told.
    let found: Vec<String> = topic(&asked)
        .map(str::to_owned)
        .into_iter()
        .chain(catalogue.named(&asked).into_iter().map(page::page))
        .chain(counter::named(&asked).map(counter_page))
        .collect();
    if found.is_empty() {
        let meant = match meant(&asked, &catalogue) {
            none if none.is_empty() => String::new(),
            near => format!("did you mean {}? ", near.join(", ")),
        };
        anyhow::bail!(
            "nothing is written about '{asked}': {meant}the topics are {topics}; plumb explain knobs lists the settings"
        );
    }
    print(&found.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a topic, by its name or another.
fn topic(asked: &str) -> Option<&'static str> {
    let topic = asked.to_lowercase().replace(' ', "-");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == topic);
    let name = alias.map_or(topic.as_str(), |(_, page)| page);
    let page = PAGES.iter().find(|(page, _)| *page == name)?;
    Some(page.1)
}

/// What a counter of `plumb host` and nstat(8) says.
fn counter_page(counter: &Counter) -> String {
    format!(
        "# {} (counter)\n\n{}.\n\n- when it grows: {}\n\nWhat it is here: plumb host --facts counters. More: plumb explain tcp-counters.\n",
        counter.name,
        counter.meaning,
        match counter.sense {
            Sense::Normal => "ordinary work",
            Sense::Watch => "worth a look where it grows with the traffic",
            Sense::Bad => "something was refused or thrown away on this machine",
            Sense::Good => "a mechanism spared a connection something worse",
        }
    )
}

/// What was probably meant by a name that nothing goes by: names that have it in them, or else the nearest.
fn meant<'a>(asked: &str, catalogue: &'a Catalogue) -> Vec<&'a str> {
    /// Less than this is in too many names.
    const ENOUGH_CHARS: usize = 3;
    /// More than this nobody reads.
    const MOST: usize = 8;
    /// A slip or two in a word: among so many names, one is always a little like.
    const NEAR: f64 = 0.7;
    let asked = asked.to_lowercase();
    let topics = PAGES.iter().map(|(name, _)| *name).chain([KNOBS]);
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let knobs = catalogue.knobs.iter().flat_map(Knob::names);
    let counters = COUNTERS.iter().map(|counter| counter.name);
    let names: Vec<&'a str> = topics.chain(aliases).chain(knobs).chain(counters).collect();
    let mut with: Vec<&'a str> = Vec::new();
    // A knob's whole name says no more than its last part.
    for name in names.iter().filter(|name| !name.starts_with("net.")) {
        let contains =
            asked.chars().count() >= ENOUGH_CHARS && name.to_lowercase().contains(&asked);
        if contains && !with.contains(name) && with.len() < MOST {
            with.push(*name);
        }
    }
    if with.is_empty() {
        let like =
            |name: &&str| strsim::normalized_damerau_levenshtein(&asked, &name.to_lowercase());
        let near = names.into_iter().filter(|name| like(name) >= NEAR);
        with.extend(near.max_by(|a, b| like(a).total_cmp(&like(b))));
    }
    with
}

/// The names of all knobs, by system.
fn list(catalogue: &Catalogue) -> String {
    let of = |os: Os| {
        let names: String = catalogue
            .of(os)
            .map(|knob| {
                let gone = if knob.obsolete.is_some() {
                    "  (obsolete)"
                } else {
                    ""
                };
                format!("  {}{gone}\n", knob.name)
            })
            .collect();
        format!("{os}\n{names}")
    };
    Os::WORDS.iter().map(|(os, _)| of(*os)).collect()
}
