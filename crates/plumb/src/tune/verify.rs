//! `plumb tune verify`: measures with and without each part of the plan, and keeps what helps.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use plumb_diagnose::tuned;
use plumb_host::knobs::Catalogue;
use plumb_host::tune::plan::plan_host;
use plumb_host::tune::snapshot::Snapshot;
use plumb_measure::budget::Budget;
use plumb_measure::conductor::{Conducted, Conductor, Went};
use plumb_measure::far_end::FarEnd;
use plumb_measure::phase::Group;
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_measure::tuning::decision::MOST_RUNS;
use plumb_measure::tuning::{Bench, Part, PartTrial, RUNS, parts};
use plumb_measure::with_far_end::{self, Besides, Plan};
use plumb_model::finding::{Action, Actor};
use plumb_model::results::tune::TuneResult;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::{Measurement, Run};
use plumb_model::tune::{HostPlan, PlannedChange, SCHEMA, TunePlan};
use plumb_model::units::{ByteCount, human_seconds, si};
use plumb_net::netlink::link::links;
use plumb_net::sysctl;
use plumb_report::text::render_tune_plan;
use plumb_wire::native::control::flow::{Flow, TcpFlow};

use super::change::{End, Made, free, make};
use super::except::Except;
use super::path::{Path, PathOptions};
use crate::agreed::agreed;
use crate::exit::{Ends, stop_flag};
use crate::load_options::enough_budget;
use crate::output::{Output, prompt_page, say, style};
use crate::progress::Line;
use crate::quantity::time_above_zero;
use crate::target::{ResponderOptions, Target, command_line};

/// What all runs together may transfer by default: 200 runs of ten seconds at 1 Gbit/s, and some.
const BUDGET: &str = "300GB";

/// Settings that are tried are undone by themselves with this process, and after this at the latest.
const LONGEST_TRY: Duration = Duration::from_secs(600);

#[derive(Args)]
pub(super) struct Arguments {
    /// Name or address of the far end, where plumb serve runs
    host: String,
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    except: Except,
    #[command(flatten)]
    responder: ResponderOptions,
    /// How long each run lasts
    ///
    /// From 4s on, the first two seconds do not count.
    #[arg(short = 't', long, alias = "time", value_name = "TIME", default_value = "10s", value_parser = time_above_zero)]
    duration: Duration,
    /// The most runs of each part of the plan
    ///
    /// 24 see a gain of 10 % under a noise of 3 %, of 20 % under 5 %, of 30 % under 10 %; 100 see 10 % under 8 %, 30 % under
    /// 20 %; 2200 see 5 % under 20 %.
    #[arg(long, value_name = "N", default_value_t = RUNS as u64, value_parser = clap::value_parser!(u64).range(4..=MOST_RUNS as u64))]
    runs: u64,
    /// The most that all runs together may transfer
    ///
    /// What is not proved by then is undone.
    #[arg(long, value_name = "SIZE", default_value = BUDGET, value_parser = enough_budget)]
    budget: ByteCount,
    /// Change the running system only, until the next boot
    #[arg(long)]
    runtime: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    let output = arguments.output.begin()?;
    let cancel = stop_flag(Ends::ByItself)?;
    free()?;
    let mut trial = Trial {
        arguments,
        target,
        cancel,
        in_force: None,
        line: Line::new(),
        budget: Budget::new(arguments.budget),
        run_bytes: 0,
    };
    say(format_args!(
        "{} in each direction to see what limits; then up to {} runs of {} for each part of the plan, with and without",
        human_seconds(arguments.duration.as_secs_f64()),
        arguments.runs,
        human_seconds(arguments.duration.as_secs_f64())
    ));
    let mut run = trial.measure(&[Direction::Up, Direction::Down], true)?;
    let path = arguments.path.resolve_with(&run)?;
    let (parts, plan) = planned(&path, &trial.target, &arguments.except)?;
    if path.ends == [Actor::FarHost] {
        run.notes.push(
            "The far host limits, so the plan is for it: save this Run with -o FILE, and see plumb tune plan --from FILE."
                .to_owned(),
        );
    }
    if parts.is_empty() {
        run.verdict = Some(tuned::verdict(&[], &path.ends));
        output.emit(run)?;
        return Ok(ExitCode::SUCCESS);
    }
    show(&path, &plan, &parts);
    say(trial.estimate(path.planned.rate_bps, parts.len()));
    if !agreed(arguments.yes)? {
        anyhow::bail!("nothing was changed");
    }
    let cancel = Arc::clone(&trial.cancel);
    let mut conductor = Conductor::resume(run, &Nobody, &cancel);
    let mut kept = Vec::new();
    let whole = parts.iter().all(|part| {
        let mut step = PartTrial {
            bench: &mut trial,
            part,
            kept: &mut kept,
            most_runs: arguments.runs as usize,
        };
        conductor.step(&mut step, 0) == Went::Recorded
    });
    // What was tried goes; what is kept comes back for good.
    trial.have(&[])?;
    let Conducted { mut run, shortfall } = conductor.finish(Judgement::AsAudited)?;
    if !whole && !kept.is_empty() {
        run.notes
            .push("Not every part of the plan was tried, so nothing of it is kept: what helped is undone as well.".to_owned());
        kept.clear();
    }
    run.notes
        .extend(not_tried(&plan, &parts, &kept, arguments, &path));
    if !kept.is_empty() {
        let plan = HostPlan {
            changes: kept,
            ..plan
        };
        make(&plan, arguments.runtime, End::Never)?;
        run.notes
            .push("What is kept is in force; it is put back with: plumb tune undo".to_owned());
    }
    let results: Vec<_> = run
        .measurements
        .iter()
        .filter_map(of_tuning)
        .cloned()
        .collect();
    run.verdict = Some(tuned::verdict(&results, &path.ends));
    tuned::settle(&mut run.findings, &results);
    drop(trial);
    output.emit(run)?;
    shortfall.map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()))
}

fn of_tuning(measurement: &Measurement) -> Option<&TuneResult> {
    match &measurement.outcome {
        Outcome::Tune(result) => Some(result),
        _ => None,
    }
}

/// The parts of the plan for this host, and the plan.
fn planned(path: &Path, target: &Target, except: &Except) -> anyhow::Result<(Vec<Part>, HostPlan)> {
    let catalogue = Catalogue::built_in()?;
    let here = Snapshot::here(&catalogue, Some(target.address.ip()));
    let mut plan = plan_host(&catalogue, &here, &path.situation, Actor::ThisHost, &[]);
    except.leave_out(&mut plan, &here, &path.situation)?;
    let (parts, _) = parts(&plan);
    Ok((parts, plan))
}

/// Shows what will be tried, and what no transfer would show.
fn show(path: &Path, plan: &HostPlan, parts: &[Part]) {
    let tried = |knob: &str| {
        parts
            .iter()
            .flat_map(|part| &part.changes)
            .any(|change| change.knob == knob)
    };
    let mut plan = HostPlan {
        left: Vec::new(),
        ..plan.clone()
    };
    for change in &plan.changes {
        if !tried(&change.knob) {
            plan.notes.push(format!(
                "No single transfer shows what {} does, so it is not tried.",
                change.knob
            ));
        }
    }
    plan.changes.retain(|change| tried(&change.knob));
    let plan = TunePlan {
        schema: SCHEMA.to_owned(),
        path: path.planned.clone(),
        hosts: vec![plan],
    };
    prompt_page(&render_tune_plan(&plan, &style()));
}

/// Which changes no transfer shows, and the command that adds them to what is kept.
fn not_tried(
    plan: &HostPlan,
    parts: &[Part],
    kept: &[PlannedChange],
    arguments: &Arguments,
    path: &Path,
) -> Option<String> {
    let tried: Vec<_> = parts.iter().flat_map(|part| &part.changes).collect();
    let untried: Vec<_> = plan
        .changes
        .iter()
        .filter(|change| !tried.contains(change))
        .map(|change| change.knob.as_str())
        .collect();
    if untried.is_empty() {
        return None;
    }
    let mut command = format!("plumb tune apply {}", arguments.path.written(path));
    let undone = tried.iter().filter(|change| !kept.contains(change));
    let undone = undone.map(|change| &change.knob);
    for knob in undone.chain(arguments.except.knobs()) {
        command += &format!(" --except '{knob}'");
    }
    if arguments.runtime {
        command += " --runtime";
    }
    Some(format!(
        "No single transfer shows what {} does, so it was not tried; to have it as well: {command}",
        untried.join(", ")
    ))
}

/// Measuring against the far end, and changing this host.
struct Trial<'a> {
    arguments: &'a Arguments,
    target: Target,
    cancel: Arc<AtomicBool>,
    /// What is tried at the moment.
    in_force: Option<(Vec<PlannedChange>, Made)>,
    line: Line,
    /// What may be transferred yet.
    budget: Budget,
    /// The most that one run transfers: what was seen, and what is planned for.
    run_bytes: u64,
}

impl Trial<'_> {
    /// How long it may take, and what it may transfer.
    fn estimate(&mut self, rate_bps: f64, parts: usize) -> String {
        let runs = parts as f64 * self.arguments.runs as f64;
        let run_s = self.arguments.duration.as_secs_f64();
        self.run_bytes = self.run_bytes.max((rate_bps * run_s / 8.0) as u64);
        format!(
            "up to {} and {}, though most is decided far sooner (--runs, --duration); it ends at {} (--budget)",
            human_seconds(runs * run_s),
            si(runs * self.run_bytes as f64, "B"),
            si(self.arguments.budget.bytes() as f64, "B")
        )
    }

    fn measure(&mut self, directions: &[Direction], judge: bool) -> anyhow::Result<Run> {
        let client = self.target.connect(&self.arguments.responder)?;
        let plan = Plan {
            name: self.target.name.clone(),
            command: command_line(),
            directions: directions.to_vec(),
            times: Times::of_phases(self.arguments.duration),
            until: None,
            asked: None,
            bytes: None,
            until_steady: false,
            from: None,
            to: None,
            // The kernel's own choice, which is one of the things that are tried.
            groups: vec![Group {
                streams: 1,
                flow: Flow::Tcp(TcpFlow {
                    cc: sysctl::read("net.ipv4.tcp_congestion_control").ok(),
                    ..TcpFlow::default()
                }),
            }],
            shape: Shape::BestEffort,
            applications: Vec::new(),
            budget: ByteCount::from_bytes(self.budget.left()),
            latency: false,
            judge,
        };
        let measured = with_far_end::run(
            FarEnd::Responder(Box::new(client)),
            &plan,
            Besides::default(),
            &self.line,
            &self.cancel,
        )
        .context("cannot measure")?;
        if self.cancel.load(Ordering::Relaxed) {
            anyhow::bail!("interrupted: what was tried is undone");
        }
        let measurements = measured.run.measurements.iter();
        for carried in measurements.filter_map(|m| m.outcome.throughput()) {
            self.budget.spend(carried.bytes);
            self.run_bytes = self.run_bytes.max(carried.bytes);
        }
        match measured.shortfall {
            None => Ok(measured.run),
            Some(why) => Err(why.into()),
        }
    }
}

impl Bench for Trial<'_> {
    type Error = anyhow::Error;

    fn have(&mut self, changes: &[PlannedChange]) -> anyhow::Result<()> {
        if self
            .in_force
            .as_ref()
            .is_some_and(|(present, _)| present == changes)
        {
            return Ok(());
        }
        if let Some((present, made)) = self.in_force.take() {
            made.undo()?;
            settle(&present)?;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let plan = HostPlan {
            on: Actor::ThisHost,
            os: plumb_model::tune::Os::Linux,
            role: plumb_model::tune::Role::Client,
            facts_from: String::new(),
            changes: changes.to_vec(),
            refused: Vec::new(),
            left: Vec::new(),
            judged: Vec::new(),
            memory_bytes: None,
            notes: Vec::new(),
        };
        let made = make(
            &plan,
            true,
            End::WithThis(LONGEST_TRY.max(4 * self.arguments.duration)),
        )?;
        self.in_force = Some((changes.to_vec(), made));
        settle(changes)
    }

    fn rate(&mut self, direction: Direction) -> anyhow::Result<f64> {
        let run = self.measure(&[direction], false)?;
        run.measurements
            .iter()
            .find_map(|m| m.outcome.throughput())
            .map(|carried| carried.steady_bps.unwrap_or(carried.bps))
            .context("the far end reported no rate")
    }

    /// A run that the budget cut short would be compared with a whole one.
    fn affords_a_pair(&self) -> bool {
        self.budget.left() >= 2 * self.run_bytes
    }
}

/// Longest time in which a link comes up again: negotiation at 10GBASE-T takes some seconds.
const LINK_UP: Duration = Duration::from_secs(15);

/// Waits until the interfaces of changes carry packets: a new ring takes many links down for a moment.
fn settle(changes: &[PlannedChange]) -> anyhow::Result<()> {
    let touched: Vec<_> = changes
        .iter()
        .filter_map(|change| match &change.action {
            Some(Action::Interface(action)) => Some(action.interface.as_str()),
            _ => None,
        })
        .collect();
    if touched.is_empty() {
        return Ok(());
    }
    let until = Instant::now() + LINK_UP;
    loop {
        let links = links()?;
        let down = touched.iter().find(|name| {
            let link = links.iter().find(|link| link.name == **name);
            link.is_none_or(|link| link.up && !link.carrier)
        });
        match down {
            None => return Ok(()),
            Some(name) if Instant::now() > until => {
                anyhow::bail!("{name} did not come up again within 15 s of a change; it is undone")
            }
            Some(_) => sleep(Duration::from_millis(100)),
        }
    }
}

impl Drop for Trial<'_> {
    /// Whatever went wrong, nothing that was tried stays.
    fn drop(&mut self) {
        if let Some((_, made)) = self.in_force.take()
            && let Err(e) = made.undo()
        {
            say(format_args!(
                "what was tried could not be undone ({e:#}): plumb tune undo"
            ));
        }
    }
}
