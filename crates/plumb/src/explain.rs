//! `plumb explain`: the knowledge base.

use std::process::ExitCode;

use clap::Args;

use crate::output::print;

/// The pages, built in: topic and text.
const PAGES: [(&str, &str); 2] = [
    ("bufferbloat", include_str!("../../../kb/bufferbloat.md")),
    ("tcp-buffers", include_str!("../../../kb/tcp-buffers.md")),
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// What to explain; without it, the list of topics
    topic: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let topics = PAGES.map(|(topic, _)| topic).join(", ");
    match &arguments.topic {
        None => print(&format!("Topics: {topics}\n"))?,
        Some(topic) => match PAGES.iter().find(|(name, _)| name == topic) {
            Some((_, text)) => print(text)?,
            None => anyhow::bail!("nothing is written about '{topic}': the topics are {topics}"),
        },
    }
    Ok(ExitCode::SUCCESS)
}
