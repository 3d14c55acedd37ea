//! `plumb watch init`: a file to begin with.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use plumb_measure::resolver;
use plumb_model::addresses::is_private;
use plumb_net::route::default_routes;
use plumb_probe::hop::answerer;
use plumb_watch::config::Config;

use crate::output::{print, say};
use crate::save;
use crate::usage::wrong;

/// Where the service keeps its history (systemd.exec(5), StateDirectory), as its file is in /etc.
const SERVICE_STORE: &str = "/var/lib/plumb-watch/watch.db";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Hosts to watch: names or addresses
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// Write it into this file, which must not be there yet [default: print it]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What a target of the file says.
struct Target {
    name: String,
    host: String,
    probe: &'static str,
    every: &'static str,
    group: &'static str,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut targets: Vec<Target> = gateway().into_iter().chain(resolver()).collect();
    targets.extend(arguments.hosts.iter().map(|host| Target {
        name: host.clone(),
        host: host.clone(),
        probe: "icmp",
        every: "10s",
        group: "Internet",
    }));
    if targets.is_empty() {
        return Err(wrong(
            "this machine has neither a gateway nor a resolver: name hosts to watch, as in plumb watch init server.example",
        ));
    }
    let text = text(&targets, store(arguments.output.as_deref()));
    let config = Config::parse(&text).map_err(|error| wrong(error.to_string()))?;
    match &arguments.output {
        None => print(&text)?,
        Some(file) => {
            if file.exists() {
                return Err(wrong(format!(
                    "{} is there already: name another file, or remove it",
                    file.display()
                )));
            }
            save::save(file, &text)?;
            say(format_args!(
                "{}: {}; begin with: plumb watch {0}",
                file.display(),
                config.summary()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the history of such a file is kept.
fn store(file: Option<&Path>) -> &'static str {
    match file.is_some_and(|file| file.starts_with("/etc")) {
        true => SERVICE_STORE,
        false => "watch.db",
    }
}

/// The router that this machine sends to first, if it answers: one that never does would be an outage without end.
fn gateway() -> Option<Target> {
    let hops = default_routes().unwrap_or_default().into_iter().flatten();
    let (gateway, silent) = choose(hops.filter_map(|hop| hop.gateway), |at| {
        // Where this user may not ask, it is not known.
        answerer(at, u8::MAX).map_or(true, |by| by.is_some())
    });
    for at in silent {
        say(format_args!(
            "the gateway {at} does not answer echo requests, and was left out"
        ));
    }
    let gateway = gateway?;
    Some(Target {
        name: "gateway".to_owned(),
        host: gateway.to_string(),
        probe: "icmp",
        every: match is_private(gateway) {
            true => "5s",
            false => "10s",
        },
        group: "Home",
    })
}

/// The first gateway that answers, and those before it that do not. An address of one link alone is of no use without the name
/// of that link.
fn choose(
    gateways: impl Iterator<Item = IpAddr>,
    answers: impl Fn(IpAddr) -> bool,
) -> (Option<IpAddr>, Vec<IpAddr>) {
    let mut silent = Vec::new();
    for at in gateways.filter(|at| !is_of_a_link(*at)) {
        match answers(at) {
            true => return (Some(at), silent),
            false => silent.push(at),
        }
    }
    (None, silent)
}

fn is_of_a_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// The resolver that this machine asks first.
fn resolver() -> Option<Target> {
    let first = resolver::of_this_host().ok()?.into_iter().next()?;
    Some(Target {
        name: "resolver".to_owned(),
        host: first.to_string(),
        probe: "dns",
        every: "10s",
        group: "Home",
    })
}

fn text(targets: &[Target], store: &str) -> String {
    let mut text = format!(
        "# What plumb watches. All that a target may have: plumb explain watch\n\n\
         [store]\n# Where the history is kept; a relative path counts from the folder of this file.\npath = \"{store}\"\n\n\
         [page]\n# Every client that reaches this address sees the page, unless keys_file = \"FILE\" says who has a key.\nlisten = \"127.0.0.1:7590\"\n"
    );
    for target in targets {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        text += &format!(
            "\n[[target]]\nname = {}\nhost = {}\nprobe = \"{}\"\nevery = \"{}\"\ngroup = \"{}\"\n",
            quoted(&target.name),
            quoted(&target.host),
            target.probe,
            target.every,
            target.group
        );
    }
    text + "\n# More probes: tcp (with port = 443), dns (ask = \"example.net\"), http and https (ask = \"/\"), path (its route), certificate\n\
            # (days left), smtp, radius; with plumb serve at the host: udp, stamp, one-way and rate (direction = \"down\"), load; and command.\n\
            # Switches and routers, by SNMP: [[device]] with name, host and community_file, or user.\n\
            # To a Prometheus: [remote_write] with url = \"https://prometheus.example.net/api/v1/write\".\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_gateway_that_does_not_answer_is_left_out() {
        let [v4, link, v6]: [IpAddr; 3] =
            ["192.168.1.1", "fe80::1", "2001:db8::1"].map(|text| text.parse().unwrap());
        let of = |silent: IpAddr| choose([v4, link, v6].into_iter(), |at| at != silent);
        assert_eq!(of(link), (Some(v4), vec![]));
        assert_eq!(of(v4), (Some(v6), vec![v4]));
        assert_eq!(choose([v6].into_iter(), |_| false), (None, vec![v6]));
    }

    #[test]
    fn the_file_is_one_that_is_read() {
        let target = |name: &str, probe, every| Target {
            name: name.to_owned(),
            host: "192.168.1.1".to_owned(),
            probe,
            every,
            group: "Home",
        };
        let targets = [
            target("gate\"way\\", "icmp", "5s"),
            target("resolver", "dns", "10s"),
        ];
        let config = Config::parse(&text(&targets, store(None))).unwrap();
        let read: Vec<_> = config
            .targets
            .iter()
            .map(|t| (t.name.as_str(), t.every))
            .collect();
        let seconds = Duration::from_secs;
        assert_eq!(
            read,
            [("gate\"way\\", seconds(5)), ("resolver", seconds(10))]
        );
        assert_eq!(config.store, Path::new("watch.db"));
        assert_eq!(
            store(Some(Path::new("/etc/plumb/watch.toml"))),
            SERVICE_STORE
        );
    }
}
