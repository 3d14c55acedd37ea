//! `plumb shape plan`: what would be done.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use plumb_host::render::shaper_lines;
use plumb_host::shape::apply::possible;
use plumb_host::shape::plan::{Lacking, Plan, PlanError};
use plumb_host::shape::render::{commands, undo};
use plumb_host::shape::request::Request;
use plumb_host::shape::write;
use plumb_model::finding::Action;
use plumb_model::router::Router;
use plumb_model::shape::{PLAN_SCHEMA, ShapePlan};
use plumb_model::units::si;
use plumb_net::missing;

use super::options::{Planned, ShapeOptions};
use crate::output::{print, print_json};
use crate::usage::wrong;
use crate::words;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    shape: ShapeOptions,
    /// Write it as files of another system
    #[arg(long, value_enum, value_name = "SYSTEM", conflicts_with = "json")]
    write: Option<System>,
    /// Write it for a router elsewhere, as its owner types it
    ///
    /// Rates and framing alone: other systems have their own words for classes.
    #[arg(long, value_name = "SYSTEM", conflicts_with_all = ["json", "write"], value_parser = words::any::<Router>())]
    router: Option<Router>,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

/// Whose files are written.
#[derive(Clone, Copy, ValueEnum)]
enum System {
    /// /etc/config/sqm of OpenWrt's sqm-scripts
    OpenwrtSqm,
    /// Files of systemd-networkd
    Networkd,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(router) = arguments.router {
        print(&elsewhere(&arguments.shape.request()?, router)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let planned = arguments.shape.plan()?;
    let Planned {
        request,
        reading,
        plan,
    } = &planned;
    match arguments.write {
        Some(System::OpenwrtSqm) => print(&write::openwrt_sqm(request, plan))?,
        Some(System::Networkd) => print(&write::networkd(request, plan, reading)?)?,
        None if arguments.json => print_json(&document(&planned))?,
        None => print(&text(&planned))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The shapers for a router of another system: nothing of this machine is read.
fn elsewhere(request: &Request, router: Router) -> anyhow::Result<String> {
    if request.shapers.is_empty() {
        return Err(wrong(PlanError::Nothing.to_string()));
    }
    let lines = shaper_lines(&request.shapers, router).join("\n");
    Ok(match router {
        Router::Generic => format!(
            "In the router's menus, switch on SQM (smart queue management, QoS) with\n{lines}\n"
        ),
        _ => lines + "\n",
    })
}

/// `plumb.shape-plan/1`.
fn document(planned: &Planned) -> ShapePlan {
    let Planned {
        request,
        reading,
        plan,
    } = planned;
    let shapers = request.shapers.iter().cloned().map(Action::Shaper);
    ShapePlan {
        schema: PLAN_SCHEMA.to_owned(),
        device: request.device.clone(),
        ifb: plan.ifb.clone(),
        scheme: plan.scheme,
        classes: request.classes,
        actions: shapers.collect(),
        commands: commands(plan, &request.device, reading),
        undo: undo(plan, &request.device),
        notes: plan.notes.iter().cloned().chain(lacking(plan)).collect(),
    }
}

/// What the kernel lacks for each scheme, what brings it, and what follows.
fn lacking(plan: &Plan) -> Vec<String> {
    let of = |lacking: &Lacking| {
        let missing = missing::of(&lacking.modules.join(", "), &lacking.modules);
        format!("For {}: {missing}.", lacking.scheme)
    };
    let mut notes: Vec<String> = plan.lacking.iter().map(of).collect();
    if possible(plan).is_err() {
        notes.push("Until then this plan cannot be applied here.".to_owned());
    } else if !plan.lacking.is_empty() {
        notes.push(format!("So the plan is for {}.", plan.scheme));
    }
    notes
}

/// The plan for people.
pub(super) fn text(planned: &Planned) -> String {
    let document = document(planned);
    let rates = planned.request.shapers.iter().map(|shaper| {
        format!(
            "{} {} ({})",
            shaper.direction.name(),
            si(shaper.rate_bps as f64, "bit/s"),
            shaper.framing()
        )
    });
    let mut text = format!(
        "{}: {}, {}, {}\n\n",
        document.device,
        document.scheme,
        document.classes,
        rates.collect::<Vec<_>>().join(", ")
    );
    for line in &document.commands {
        text += &format!("  {line}\n");
    }
    text += "\nUndone by:\n";
    for line in &document.undo {
        text += &format!("  {line}\n");
    }
    for note in &document.notes {
        text += &format!("\n{note}\n");
    }
    text
}
