//! `plumb explain`: the knowledge base.

use std::process::ExitCode;

use clap::Args;

use crate::output::print;

/// The pages, built in: topic and text.
const PAGES: &[(&str, &str)] = &[
    (
        "available-bandwidth",
        include_str!("../../../kb/available-bandwidth.md"),
    ),
    ("bufferbloat", include_str!("../../../kb/bufferbloat.md")),
    ("fairness", include_str!("../../../kb/fairness.md")),
    (
        "loaded-latency",
        include_str!("../../../kb/loaded-latency.md"),
    ),
    ("tcp-buffers", include_str!("../../../kb/tcp-buffers.md")),
    ("throughput", include_str!("../../../kb/throughput.md")),
    ("transactions", include_str!("../../../kb/transactions.md")),
    ("udp", include_str!("../../../kb/udp.md")),
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
    ("rrul", "loaded-latency"),
    ("flent", "loaded-latency"),
    ("grade", "loaded-latency"),
    ("local-segment", "loaded-latency"),
    ("send-buffer-small", "tcp-buffers"),
    ("receive-buffer-small", "tcp-buffers"),
    ("tcp_rmem", "tcp-buffers"),
    ("tcp_wmem", "tcp-buffers"),
    ("slow-start", "throughput"),
    ("rate", "throughput"),
    ("rr", "transactions"),
    ("crr", "transactions"),
    ("available", "available-bandwidth"),
    ("jain", "fairness"),
    ("sharing", "fairness"),
    ("background", "fairness"),
    ("ledbat", "fairness"),
    ("mos", "voice"),
    ("e-model", "voice"),
    ("profiles", "voice"),
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// What to explain; without it, the list of topics
    topic: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let topics: Vec<_> = PAGES.iter().map(|(topic, _)| *topic).collect();
    let topics = topics.join(", ");
    let Some(asked) = &arguments.topic else {
        print(&format!("Topics: {topics}\n"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let topic = asked.to_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == topic);
    let topic = alias.map_or(topic.as_str(), |(_, page)| page);
    match PAGES.iter().find(|(name, _)| *name == topic) {
        Some((_, text)) => print(text)?,
        None => anyhow::bail!("nothing is written about '{asked}': the topics are {topics}"),
    }
    Ok(ExitCode::SUCCESS)
}
