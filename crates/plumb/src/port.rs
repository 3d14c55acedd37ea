//! `plumb port`: whether TCP ports answer, and what each part of it takes.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use plumb_measure::port::{self, PortPlan};
use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_net::names::{canonical_name, tcp_port};

use crate::exit::{Ends, stop_flag};
use crate::output::Output;
use crate::progress::Line;
use crate::quantity::{time_above_zero, time_from};
use crate::target::{PathOptions, command_line};
use crate::usage::wrong;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb port server 22 443            name, connect, TLS, first byte; banner
  plumb port server 22 --idle 10m     how long a NAT keeps a silent connection

A port is open, refused (the host answers with a reset), filtered (nothing comes back) or unreachable (a router reports \
it). The exit status is 0 when a connection was made.

Limits: connecting is timed by the kernel, what follows by plumb's own clock. Certificates are not verified. Edges of \
content networks are known by what they report of themselves, and by the canonical name, which is looked up after the \
look-up that is timed. See `plumb explain port`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the host
    host: String,
    /// TCP ports, ranges of them such as 20-30, or their names in /etc/services
    #[arg(required = true, value_parser = ports)]
    ports: Vec<RangeInclusive<u16>>,
    /// Connections to each port
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// How long each connection may take
    #[arg(short = 'W', long, value_name = "TIME", default_value = "5s", value_parser = time_above_zero)]
    timeout: Duration,
    /// Use TLS on every port
    #[arg(long, conflicts_with = "no_tls")]
    tls: bool,
    /// Use no TLS
    #[arg(long)]
    no_tls: bool,
    /// Ask for the head of a page on every port
    #[arg(long, conflicts_with = "no_http")]
    http: bool,
    /// Ask for nothing, and wait for what the service sends first
    #[arg(long)]
    no_http: bool,
    /// The page to ask for
    #[arg(long, default_value = "/")]
    path: String,
    /// Find how long a silent connection is kept, up to this
    ///
    /// Takes about twice as long at most.
    #[arg(long, value_name = "TIME", value_parser = time_from(LEAST_IDLE, "at least 1s is needed"))]
    idle: Option<Duration>,
    #[command(flatten)]
    path_options: PathOptions,
    #[command(flatten)]
    output: Output,
}

/// A port by its number, or by the name of its service as telnet(1) takes it.
fn port(text: &str) -> Result<u16, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse().ok().filter(|port| *port > 0);
        return number.ok_or_else(|| format!("{text} is no port: they are 1 to 65535"));
    }
    match tcp_port(text) {
        Ok(Some(port)) => Ok(port),
        Ok(None) => Err(format!(
            "/etc/services has no service of TCP that is called {text}: give its number"
        )),
        Err(why) => Err(format!(
            "{text} is no number, and /etc/services cannot be read for its name: {why}"
        )),
    }
}

/// A range of ports as nmap(1) and nc(1) take it, or one port. A hyphen is also part of names, such as ftp-data.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let range = text.split_once('-');
    let Some((first, last)) = range.filter(|(first, last)| is_number(first) && is_number(last))
    else {
        return port(text).map(|port| port..=port);
    };
    let (first, last) = (port(first)?, port(last)?);
    match first <= last {
        true => Ok(first..=last),
        false => Err(format!("{text} runs backwards: write {last}-{first}")),
    }
}

/// The most ports of one run: each takes several connections, and thousands of them are a scan, which others are made for.
const MOST_PORTS: usize = 256;

/// The shortest silence to look for, of which the shortest tried is a part.
const LEAST_IDLE: Duration = Duration::from_secs(1);

fn choice(yes: bool, no: bool) -> Option<bool> {
    match (yes, no) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let (target, outlet) = arguments.path_options.towards(&arguments.host)?;
    let looked_up = begun.elapsed().as_secs_f64();
    if target.address.port() != 0 {
        return Err(wrong(format!(
            "'{}' names a port itself: write it behind the host, as in plumb port {} {}",
            target.name,
            target.host(),
            target.address.port()
        )));
    }
    let ports: Vec<u16> = arguments.ports.iter().cloned().flatten().collect();
    if ports.len() > MOST_PORTS {
        return Err(wrong(format!(
            "{} ports are too many: at most {MOST_PORTS} are tried in one run",
            ports.len()
        )));
    }
    let output = arguments.output.begin()?;
    let stop = stop_flag(Ends::ByItself)?;
    let named = target.host().parse::<IpAddr>().is_err();
    let plan = PortPlan {
        name: target.name.clone(),
        address: target.address,
        name_s: named.then_some(looked_up),
        canonical_name: named.then(|| canonical_name(target.host())).flatten(),
        ports,
        tries: arguments.count,
        timeout: arguments.timeout,
        tls: choice(arguments.tls, arguments.no_tls),
        http: choice(arguments.http, arguments.no_http),
        path: arguments.path.clone(),
        idle: arguments.idle,
        outlet,
    };
    let line = Line::new();
    let run = port::run(command_line(), &plan, &line, &stop)?.run;
    drop(line);
    let failed = failed(&run);
    output.emit(run)?;
    anyhow::ensure!(!failed, "no connection to {}", target.name);
    Ok(ExitCode::SUCCESS)
}

/// Whether there was no connection to any of the ports. Why, the result says.
fn failed(run: &Run) -> bool {
    let mut ports = run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Port(port) => Some(port),
        _ => None,
    });
    ports.all(|port| port.connected == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_is_two_numbers_in_order() {
        assert_eq!(ports("20-30"), Ok(20..=30));
        assert_eq!(ports("443"), Ok(443..=443));
        for wrong in ["30-20", "0-5", "5-", "-5", "1-70000", "a-b"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }
}
