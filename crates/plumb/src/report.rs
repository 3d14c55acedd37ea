//! `plumb report`: a saved Run as a page or as text.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use plumb_model::results::Direction;
use plumb_model::run::Run;
#[cfg(feature = "html")]
use plumb_report::html;
use plumb_report::text::HostSection;
use plumb_report::{compare, export, text};

use crate::output::{print_page, read_run, style};
use crate::save::save;
#[cfg(not(feature = "html"))]
use crate::usage;
use crate::usage::wrong;
use crate::words;

#[derive(Args)]
pub(crate) struct Arguments {
    /// A saved Run
    run: PathBuf,
    /// A second Run, made after a change, to compare with
    after: Option<PathBuf>,
    /// Write one page of HTML that needs nothing else
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Write the chart over time as a file of SVG
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["output", "after", "flent"])]
    svg: Option<PathBuf>,
    /// Write a phase of load for flent's plots (.flent.gz)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "after"])]
    flent: Option<PathBuf>,
    /// Print the facts of a Run of plumb host: all, or one part
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true, value_parser = words::any::<HostSection>(), conflicts_with_all = ["output", "after", "svg", "flent"])]
    facts: Option<Option<HostSection>>,
    /// With --flent: which phase [default: the last]
    #[arg(long, value_parser = words::any::<Direction>(), requires = "flent", conflicts_with_all = ["output", "after", "svg"])]
    phase: Option<Direction>,
}

/// Refuses a name that promises something else than a page of HTML.
fn is_page(file: &Path) -> anyhow::Result<()> {
    let end = file
        .extension()
        .map(|end| end.to_string_lossy().to_lowercase());
    match end.as_deref() {
        None | Some("html" | "htm" | "xhtml") => Ok(()),
        Some(_) => Err(wrong(format!(
            "{}: -o writes one page of HTML: name it FILE.html. For a chart there is --svg FILE.svg, for flent --flent FILE, and text is printed without -o",
            file.display()
        ))),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(file) = &arguments.output {
        is_page(file)?;
    }
    let run = read_run(&arguments.run)?;
    if let Some(file) = &arguments.flent {
        let packed = export::flent::export(&run, arguments.phase)
            .with_context(|| format!("cannot write {}", file.display()))?;
        save(file, packed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &arguments.svg {
        let chart = export::svg::svg(&run).with_context(|| {
            format!(
                "cannot draw {}: nothing in it was measured over time",
                arguments.run.display()
            )
        })?;
        save(file, chart)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(part) = arguments.facts {
        anyhow::ensure!(
            text::has_host_sections(&run),
            "{} has no facts of a host: plumb host -o FILE saves them",
            arguments.run.display()
        );
        print_page(&text::render_host_sections(&run, part, &style()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let after = arguments.after.as_deref().map(read_run).transpose()?;
    match (&arguments.output, after) {
        (Some(file), after) => save(file, page(&run, after.as_ref())?)?,
        (None, None) => print_page(&text::render(&run, &style()))?,
        (None, Some(after)) => {
            print_page(&text::render_comparison(
                &compare::compare(&run, &after),
                &style(),
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "html")]
fn page(run: &Run, after: Option<&Run>) -> anyhow::Result<String> {
    Ok(match after {
        None => html::render(run),
        Some(after) => html::render_comparison(run, after, &compare::compare(run, after)),
    })
}

#[cfg(not(feature = "html"))]
fn page(_run: &Run, _after: Option<&Run>) -> anyhow::Result<String> {
    Err(usage::without("report -o", "html"))
}
