//! Writes the sample Runs of the tests, and everything made of them, into a directory to look at:
//! `cargo run -p plumb-report --example sample -- /tmp/sample`.

#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing
)]
#[path = "../tests/it/sample/mod.rs"]
mod sample;

use std::path::PathBuf;

use plumb_report::text::Style;
use plumb_report::{compare, html, text};

fn main() -> std::io::Result<()> {
    let dir = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "/tmp/plumb-sample".to_owned()),
    );
    std::fs::create_dir_all(&dir)?;
    let (before, after, small) = (sample::before(), sample::after(), sample::ping_and_port());
    let comparison = compare::compare(&before, &after);
    let colour = Style {
        color: true,
        width: 80,
    };
    for (name, run) in [
        ("before", &before),
        ("after", &after),
        ("ping-and-port", &small),
    ] {
        std::fs::write(
            dir.join(format!("{name}.json")),
            serde_json::to_vec_pretty(run)?,
        )?;
        std::fs::write(
            dir.join(format!("{name}.txt")),
            text::render(run, &Style::default()),
        )?;
        std::fs::write(dir.join(format!("{name}.ansi")), text::render(run, &colour))?;
        std::fs::write(dir.join(format!("{name}.html")), html::render(run))?;
    }
    std::fs::write(
        dir.join("compare.json"),
        serde_json::to_vec_pretty(&comparison)?,
    )?;
    std::fs::write(
        dir.join("compare.txt"),
        text::render_comparison(&comparison, &Style::default()),
    )?;
    std::fs::write(
        dir.join("compare.ansi"),
        text::render_comparison(&comparison, &colour),
    )?;
    std::fs::write(
        dir.join("compare.html"),
        html::render_comparison(&before, &after, &comparison),
    )?;
    Ok(())
}
