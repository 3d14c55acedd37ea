//! Checks towards several hosts, for people: what is near, what is in an operator's network, what is far, and what is
//! open.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plumb_diagnose::places::{
    Hop, Host, Network, Placed, Seen, Uniting, Whereabouts, Why, first_router, hosts, last_shared,
    place, split_after,
};
use plumb_model::finding::{Actor, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::run::Run;

use crate::number;
use crate::table::Table;

/// What is made further apart than this, in seconds, may differ by when it was made: an hour is the step in which a baseline
/// sees what comes and goes.
const APART_S: f64 = 3600.0;

/// What checks towards several hosts come to.
#[derive(Debug)]
pub struct Places {
    /// What it comes to, in a sentence.
    pub(crate) headline: String,
    /// What must be known of the checks first.
    pub(crate) warnings: Vec<String>,
    pub(crate) near: Vec<String>,
    pub(crate) theirs: Vec<String>,
    pub(crate) far: Vec<String>,
    pub(crate) open: Vec<String>,
    /// The hosts with their numbers.
    pub(crate) hosts: Table,
    /// The worst of all that was found.
    pub worst: Option<Severity>,
}

/// What checks come to that were made from one place towards several hosts.
pub fn places(runs: &[Run]) -> Places {
    let hosts = hosts(runs);
    let placed = place(&hosts);
    let of = |is_it: fn(&Whereabouts) -> bool| -> Vec<String> {
        let all = placed.iter().filter(|placed| is_it(&placed.whereabouts));
        all.map(|placed| sentence(placed, &hosts)).collect()
    };
    Places {
        headline: headline(&placed, &hosts),
        warnings: warnings(runs, &hosts),
        near: of(|at| matches!(at, Whereabouts::Near)),
        theirs: of(|at| matches!(at, Whereabouts::Theirs(_))),
        far: of(|at| matches!(at, Whereabouts::Far)),
        open: of(|at| matches!(at, Whereabouts::Open(_))),
        hosts: table(&hosts),
        worst: placed.iter().map(|placed| placed.severity).max(),
    }
}

impl Places {
    /// Names a host that was to be checked, and why nothing was measured towards it.
    pub fn leave_out(&mut self, host: &str, why: &str) {
        self.warnings
            .push(format!("Nothing was measured towards {host}: {why}."));
    }
}

fn counted(hosts: usize) -> String {
    match hosts {
        1 => "1 host".to_owned(),
        hosts => format!("{hosts} hosts"),
    }
}

/// The worst of it that can be placed; where nothing can, what is open.
fn headline(placed: &[Placed<'_>], hosts: &[Host<'_>]) -> String {
    let is_open = |placed: &&Placed<'_>| matches!(placed.whereabouts, Whereabouts::Open(_));
    let worst = placed
        .iter()
        .find(|placed| !is_open(placed))
        .or(placed.first());
    let Some(worst) = worst else {
        return match hosts.iter().any(Host::answers) {
            true => format!(
                "Nothing worth fixing was found towards {}.",
                match hosts.len() {
                    1 => "the host".to_owned(),
                    _ => format!("any of {}", counted(hosts.len())),
                }
            ),
            false => "No host answers.".to_owned(),
        };
    };
    let (cause, place) = (worst.finding.cause, worst.finding.place);
    let found = named(&worst.found(), hosts);
    match &worst.whereabouts {
        Whereabouts::Near => format!(
            "The worst is near: {cause} ({place}), towards {}.",
            all_or_named(&worst.found(), hosts)
        ),
        Whereabouts::Theirs(network) => format!(
            "The worst is theirs: {cause} ({place}) towards {found}, {}.",
            united(network)
        ),
        Whereabouts::Far => format!("The worst is far: {cause} ({place}) towards {found}."),
        Whereabouts::Open(_) => {
            format!("Inconclusive: where {cause} ({place}) is, these checks do not show.")
        }
    }
}

/// Names of hosts, unless it is all of them.
fn all_or_named(those: &BTreeSet<usize>, hosts: &[Host<'_>]) -> String {
    match those.len() {
        all if all == hosts.len() && all > 2 => format!("all {}", counted(all)),
        _ => named(those, hosts),
    }
}

fn named(those: &BTreeSet<usize>, hosts: &[Host<'_>]) -> String {
    let names = those.iter().filter_map(|index| hosts.get(*index));
    let names: Vec<&str> = names.map(Host::name).collect();
    match names.as_slice() {
        [] => "no host".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// In which network hosts are, in words.
fn united(network: &Network) -> String {
    match &network.by {
        Uniting::Prefix { address, bits } => format!("in the network {address}/{bits}"),
        Uniting::System { asn, name: None } => format!("in AS{asn}"),
        Uniting::System {
            asn,
            name: Some(name),
        } => format!("in AS{asn} ({name})"),
        Uniting::Router(hop) => format!("behind {}", router(hop)),
    }
}

fn router(hop: &Hop) -> String {
    format!("hop {} ({})", hop.ttl, hop.address)
}

/// What was found, towards which hosts, and where that puts it.
fn sentence(placed: &Placed<'_>, hosts: &[Host<'_>]) -> String {
    let finding = placed.finding;
    let (found, absent) = (placed.found(), placed.absent());
    let towards = all_or_named(&found, hosts);
    let without = match absent.is_empty() {
        true => String::new(),
        false => format!(", and not towards {}", named(&absent, hosts)),
    };
    let parted = split_after(hosts, &found, &absent);
    let beyond = parted.map_or_else(String::new, |hop| format!(", beyond {}", router(&hop)));
    let at = match &placed.whereabouts {
        Whereabouts::Near => match (finding.place, last_shared(hosts, &found)) {
            (Place::ThisHost | Place::Client, _) => "It is in this machine.".to_owned(),
            (Place::LocalSegment, _) => "It is between this machine and its gateway.".to_owned(),
            (_, Some(hop)) => format!(
                "It is in what they share: this machine, its line, and the path as far as {}.",
                router(&hop)
            ),
            (_, None) => {
                "It is in what they share: this machine, its line, or the beginning of the path."
                    .to_owned()
            }
        },
        Whereabouts::Theirs(network) => format!(
            "They are {}: it is there, or on the part of the path that only they use{beyond}.",
            united(network)
        ),
        Whereabouts::Far if matches!(finding.place, Place::FarHost | Place::Server) => {
            "It is in the machine at the other end.".to_owned()
        }
        Whereabouts::Far => format!(
            "It is in that host or its network, or on the part of the path that only it uses{beyond}."
        ),
        Whereabouts::Open(why) => open(why),
    };
    format!(
        "{} ({}, {}): towards {towards}{without}. {at}{}{}",
        finding.cause,
        placed.severity,
        finding.place,
        unknown(placed, hosts),
        to_do(placed)
    )
}

/// The first fix that helps where it is; starts with a space. What is far away those fix who run it, whatever could be tried
/// on this side if it were near.
fn to_do(placed: &Placed<'_>) -> String {
    let is_near = match placed.whereabouts {
        Whereabouts::Near => true,
        Whereabouts::Theirs(_) | Whereabouts::Far => false,
        Whereabouts::Open(_) => return String::new(),
    };
    let mut fixes = placed.finding.fixes.iter();
    match fixes.find(|fix| is_near || matches!(fix.on, Actor::FarHost | Actor::Provider)) {
        Some(fix) => format!(" To do: {}", fix.summary),
        None if is_near => String::new(),
        None => " To do: give these Runs to its operator.".to_owned(),
    }
}

/// Why it cannot be decided, and what would.
fn open(why: &Why) -> String {
    match why {
        Why::OneHost => "No other host was asked for it, so that it may be anywhere: check others the same way.".to_owned(),
        Why::OneNetwork(network) => format!(
            "They are {}, so that it is near, or there: check a host elsewhere.",
            united(network)
        ),
        Why::NotAll => "It is near, or in what these hosts alone share: check again, without --quick, so that it is looked for everywhere \
             and the paths are seen."
            .to_owned(),
        Why::RestOfNetwork(network) => format!(
            "It is in that host, or in all that is {}: check another host there.",
            united(network)
        ),
        Why::NothingShared => "What has it shares no network that the others lack: each may have its own, or it comes and goes; repeat \
             the checks (--repeat)."
            .to_owned(),
        Why::ComesAndGoes => "It comes and goes: repeat the checks (--repeat).".to_owned(),
    }
}

/// The hosts of which it is unknown whether they have it, and why; starts with a space.
fn unknown(placed: &Placed<'_>, hosts: &[Host<'_>]) -> String {
    let mut text = String::new();
    let mut say = |those: BTreeSet<usize>, what: &str| {
        if !those.is_empty() {
            text.push_str(&format!(" Towards {} {what}.", named(&those, hosts)));
        }
    };
    say(
        placed.those(|seen| seen == Seen::NotLookedFor),
        "it was not looked for",
    );
    say(
        placed.those(|seen| seen == Seen::NotReached),
        "less was carried, so that it may not show",
    );
    say(
        placed.those(|seen| seen == Seen::ComesAndGoes),
        "one check found it, and another did not",
    );
    let alike: BTreeSet<&str> = placed
        .seen
        .iter()
        .filter_map(|seen| match seen {
            Seen::LooksAlike(cause) => Some(cause.name()),
            _ => None,
        })
        .collect();
    let alike: Vec<&str> = alike.into_iter().collect();
    say(
        placed.those(|seen| matches!(seen, Seen::LooksAlike(_))),
        &format!("{} was found, which looks like it", alike.join(", ")),
    );
    text
}

/// In what the checks are not of several hosts, from one place, at one time, by one version.
pub(crate) fn warnings(runs: &[Run], hosts: &[Host<'_>]) -> Vec<String> {
    let mut warnings = Vec::new();
    for host in hosts.iter().filter(|host| host.names.len() > 1) {
        let address = host.address.map_or_else(String::new, |a| a.to_string());
        warnings.push(format!(
            "{} are one host, of the address {address}.",
            host.names.join(" and ")
        ));
    }
    let mut addresses: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for target in runs.iter().filter_map(|run| run.target.as_ref()) {
        let of_name = addresses.entry(&target.name).or_default();
        of_name.extend(target.address.clone());
    }
    for (name, addresses) in addresses.iter().filter(|(_, all)| all.len() > 1) {
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        warnings.push(format!(
            "{name} had several addresses ({}), which are taken for several hosts.",
            addresses.join(", ")
        ));
    }
    if runs.iter().any(|run| run.target.is_none()) {
        warnings.push("A Run without a far end is left out.".to_owned());
    }
    let silent: BTreeSet<usize> = (0..hosts.len())
        .filter(|index| hosts.get(*index).is_some_and(|host| !host.answers()))
        .collect();
    if !silent.is_empty() {
        warnings.push(format!("No answer came from {}.", named(&silent, hosts)));
    }
    for ipv6 in [false, true] {
        let of_version = hosts.iter().filter(|host| host.is_ipv6() == Some(ipv6));
        let first: BTreeSet<String> = of_version.filter_map(first_router).collect();
        if first.len() > 1 {
            let first: Vec<String> = first.into_iter().collect();
            warnings.push(format!(
                "The first routers are not the same ({}): the checks may be from several places, and what differs then is near.",
                first.join(", ")
            ));
        }
    }
    let versions: BTreeSet<&str> = runs.iter().map(|run| run.plumb.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        warnings.push(format!(
            "The checks are of several versions of plumb ({}), which do not find alike.",
            versions.join(", ")
        ));
    }
    let times: Option<Vec<Timestamp>> = runs.iter().map(|run| run.started.parse().ok()).collect();
    let span_s = times.map(|times| {
        let ends = times.iter().min().zip(times.iter().max());
        ends.map_or(0.0, |(first, last)| {
            last.duration_since(*first).as_secs_f64()
        })
    });
    match span_s {
        None => warnings.push("When one of the checks was made is unknown.".to_owned()),
        Some(span_s) if span_s > APART_S => warnings.push(format!(
            "The checks were made within {}: what comes and goes looks like what one host has.",
            number::length(span_s)
        )),
        Some(_) => {}
    }
    warnings
}

fn table(hosts: &[Host<'_>]) -> Table {
    let rate = |host: &Host<'_>, direction| host.bps(direction).map(number::rate);
    Table::of("Hosts", hosts)
        .text("", |host| host.names.join(", "))
        .text("address", |host| host.address.map(|a| a.to_string()))
        .num("idle RTT", |host| host.idle_s().map(number::seconds))
        .num("down", |host| rate(host, Direction::Down))
        .num("up", |host| rate(host, Direction::Up))
        .num("findings", |host| {
            let worth = host.findings().filter(|f| f.severity > Severity::Info);
            let causes: BTreeSet<&str> = worth.map(|finding| finding.cause.name()).collect();
            causes.len()
        })
        .done()
}
