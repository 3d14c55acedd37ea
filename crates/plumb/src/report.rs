//! `plumb report`: a saved Run as a page or as text.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use plumb_model::context::Phase;
use plumb_model::results::Direction;
use plumb_model::run::Run;
use plumb_report::export::figure::Figure;
#[cfg(feature = "html")]
use plumb_report::html;
use plumb_report::problem::Said;
use plumb_report::text::HostSection;
use plumb_report::{compare, export, text};

use crate::judged;
use crate::output::{json, print_page, read_run, style};
use crate::redaction::{RedactOptions, Redaction};
use crate::router::RouterOption;
use crate::save;
use crate::stderr::say;
#[cfg(not(feature = "html"))]
use crate::usage;
use crate::usage::wrong;
use crate::words;

#[derive(Args)]
pub(crate) struct Arguments {
    /// A saved Run
    run: PathBuf,
    /// A Run from after a change; with --problem or --figure, more Runs
    #[arg(value_name = "AFTER")]
    others: Vec<PathBuf>,
    /// Write one page of HTML that needs nothing else
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    case: CaseOptions,
    /// With --svg: all the Runs in one figure of their round trips
    ///
    /// Of the phase that --phase names, or else of the first that there is of an upload, a download, both, and the idle path.
    #[arg(long, value_name = "KIND", group = "phased", requires = "svg", value_parser = words::any::<Figure>())]
    figure: Option<Figure>,
    /// Write the chart over time as a file of SVG
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["output", "flent"])]
    svg: Option<PathBuf>,
    /// Write a phase of load for flent's plots (.flent.gz)
    #[arg(long, value_name = "FILE", group = "phased", conflicts_with_all = ["output", "others"])]
    flent: Option<PathBuf>,
    /// Write a phase of load as iperf3 -J prints it
    #[arg(long, value_name = "FILE", group = "phased", conflicts_with_all = ["output", "others", "flent", "svg"])]
    iperf3: Option<PathBuf>,
    /// Print the facts of a Run of plumb host: all, or one part
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true, value_parser = words::any::<HostSection>(), conflicts_with_all = ["output", "others", "svg", "flent"])]
    facts: Option<Option<HostSection>>,
    /// With --flent, --iperf3 or --figure: which phase [default: the last]
    #[arg(long, value_parser = words::any::<Direction>(), requires = "phased", conflicts_with_all = ["output"])]
    phase: Option<Direction>,
    /// Print it as short as its verb did
    #[arg(long, conflicts_with_all = ["output", "others", "svg", "flent", "iperf3", "facts", "problem"])]
    short: bool,
    /// Print all that was measured, with every table, as without an option
    #[arg(long, hide_short_help = true, conflicts_with_all = ["short", "output", "others", "svg", "flent", "iperf3", "facts", "problem"])]
    details: bool,
    #[command(flatten)]
    redact: RedactOptions,
    #[command(flatten)]
    router: RouterOption,
}

/// The case that another person takes over.
#[derive(Args)]
#[command(next_help_heading = "Problem report")]
struct CaseOptions {
    /// Report it as a problem, with a map of the path
    ///
    /// Expected and measured, what is excluded and by what, what remains, and the evidence. A page (-o) holds the Run: plumb
    /// reads it again.
    #[arg(long, conflicts_with_all = ["svg", "flent", "facts"])]
    problem: bool,
    /// Who reports it, and how to reach them
    #[arg(long, value_name = "TEXT", requires = "problem")]
    who: Option<String>,
    /// Since when it is so
    #[arg(long, value_name = "TEXT", requires = "problem")]
    since: Option<String>,
    /// What is expected, or was so before
    #[arg(long, value_name = "TEXT", requires = "problem")]
    expected: Option<String>,
}

impl CaseOptions {
    fn said(&self) -> Said {
        Said {
            who: self.who.clone(),
            since: self.since.clone(),
            expected: self.expected.clone(),
        }
    }
}

/// What the file of `-o` is to hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    /// The Run itself, redacted.
    Run,
}

/// Refuses a name that promises something else than what is written.
fn form(file: &Path, redacts: bool) -> anyhow::Result<Form> {
    let end = file
        .extension()
        .map(|end| end.to_string_lossy().to_lowercase());
    match end.as_deref() {
        None | Some("html" | "htm" | "xhtml") => Ok(Form::Page),
        Some("json") if redacts => Ok(Form::Run),
        Some(_) => Err(wrong(format!(
            "{}: -o writes one page of HTML: name it FILE.html. For a chart there is --svg FILE.svg, for flent --flent FILE, and text is printed without -o",
            file.display()
        ))),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let redacts = arguments.redact.redact;
    let output = arguments.output.as_deref();
    let output = output
        .map(|file| Ok::<_, anyhow::Error>((file, form(file, redacts)?)))
        .transpose()?;
    let mut redaction = arguments.redact.begin()?;
    if arguments.case.problem {
        problem(arguments, output, &mut redaction)?;
    } else {
        plain(arguments, output, &mut redaction)?;
    }
    redaction.say();
    Ok(ExitCode::SUCCESS)
}

/// One Run, or two beside each other.
fn plain(
    arguments: &Arguments,
    output: Option<(&Path, Form)>,
    redaction: &mut Redaction,
) -> anyhow::Result<()> {
    if let (Some(kind), Some(file)) = (arguments.figure, &arguments.svg) {
        return figure(arguments, kind, file, redaction);
    }
    if arguments.svg.is_some() && !arguments.others.is_empty() {
        return Err(wrong(
            "--svg draws one Run: add --figure overlay, cdf or box for several",
        ));
    }
    let ([] | [_]) = arguments.others.as_slice() else {
        return Err(wrong(
            "one Run is shown, and two are compared: more than two make a case with --problem, or a picture with --figure"
                .to_owned(),
        ));
    };
    let run = arguments
        .router
        .write(redaction.run(read_run(&arguments.run)?)?);
    if let Some(file) = &arguments.flent {
        let packed = export::flent::export(&run, arguments.phase)
            .with_context(|| format!("cannot write {}", file.display()))?;
        written(file, packed)?;
        return Ok(());
    }
    if let Some(file) = &arguments.iperf3 {
        let printed = export::iperf3::export(&run, arguments.phase)
            .with_context(|| format!("cannot write {}", file.display()))?;
        written(file, format!("{printed:#}\n"))?;
        return Ok(());
    }
    if let Some(file) = &arguments.svg {
        let chart = export::svg::svg(&run).with_context(|| {
            format!(
                "cannot draw {}: nothing in it was measured over time",
                arguments.run.display()
            )
        })?;
        written(file, chart)?;
        return Ok(());
    }
    if let Some(part) = arguments.facts {
        anyhow::ensure!(
            text::has_host_sections(&run),
            "{} has no facts of a host: plumb host -o FILE saves them",
            arguments.run.display()
        );
        print_page(&text::render_host_sections(&run, part, &style()))?;
        return Ok(());
    }
    let after = match arguments.others.first() {
        Some(after) => Some(redaction.run(read_run(after)?)?),
        None => None,
    };
    let after = after.map(|after| arguments.router.write(after));
    match (output, after) {
        (Some((file, Form::Page)), after) => written(file, page(&run, after.as_ref())?),
        (Some((_, Form::Run)), Some(_)) => Err(wrong(
            "-o FILE.json saves one Run: redact each by itself, with the same --key",
        )),
        (Some((file, Form::Run)), None) => written(file, json(&run)?),
        (None, None) if arguments.short && !arguments.details => print_page(&short(&run)),
        (None, None) => print_page(&text::render(&run, &style())),
        (None, Some(after)) => {
            let comparison = compare::compare(&run, &after);
            print_page(&text::render_comparison(&comparison, &style()))
        }
    }
}

/// A Run as short as the verb printed it that made it.
fn short(run: &Run) -> String {
    let verdict = run.verdict.as_ref();
    match verdict.is_some_and(|verdict| verdict.clearance.is_some()) {
        true => text::render_check(run, &style()),
        false => text::render_brief(run, &style()),
    }
}

/// Writes a file, and says so: nothing else shows that it was done.
fn written(file: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    save::save(file, content)?;
    say(format_args!("written: {}", file.display()));
    Ok(())
}

/// All the Runs in one figure, by the names of their files.
fn figure(
    arguments: &Arguments,
    kind: Figure,
    file: &Path,
    redaction: &mut Redaction,
) -> anyhow::Result<()> {
    let files = [&arguments.run].into_iter().chain(&arguments.others);
    let runs = files.map(|file| {
        let name = file.file_stem().unwrap_or(file.as_os_str());
        let run = redaction.run(read_run(file)?)?;
        anyhow::Ok((name.to_string_lossy().into_owned(), run))
    });
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    let phase = arguments.phase.map(|direction| match direction {
        Direction::Up => Phase::Up,
        Direction::Down => Phase::Down,
        Direction::Both => Phase::Both,
    });
    let drawn = export::figure::figure(kind, &runs, phase).with_context(|| {
        format!(
            "cannot draw {}: no Run has round trips of that phase",
            file.display()
        )
    })?;
    written(file, drawn)
}

/// The case of one Run, or of several together.
fn problem(
    arguments: &Arguments,
    output: Option<(&Path, Form)>,
    redaction: &mut Redaction,
) -> anyhow::Result<()> {
    let files = [&arguments.run].into_iter().chain(&arguments.others);
    let files: Vec<PathBuf> = files.cloned().collect();
    let run = arguments
        .router
        .write(redaction.run(judged::case(&files)?)?);
    let said = arguments.case.said();
    match output {
        Some((file, Form::Page)) => written(file, case_page(&run, &said)?),
        Some((file, Form::Run)) => written(file, json(&run)?),
        None => print_page(&text::render_problem(&run, &said, &style())),
    }
}

#[cfg(feature = "html")]
fn case_page(run: &Run, said: &Said) -> anyhow::Result<String> {
    Ok(html::render_problem(run, said)?)
}

#[cfg(not(feature = "html"))]
fn case_page(_run: &Run, _said: &Said) -> anyhow::Result<String> {
    Err(usage::without("report -o", "html"))
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
