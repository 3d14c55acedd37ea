//! `[mesh]` of the file, and the targets that it adds.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use data_encoding::HEXLOWER;
use plumb_model::units::parse_duration;
use plumb_net::egress::{Outlet, source_towards};
use plumb_wire::url::Url;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use toml::{Spanned, Value};

use super::slots::Table;
use super::{Member, Mesh, Probe, group};
use crate::deliver::trust::absolute;
use crate::target::kind::Kind;
use crate::target::kinds;
use crate::target::settings::{Entries, Settings, Wrong};

/// More members than this are a slip: a matrix of them has 9,900 cells.
const MOST_MEMBERS: usize = 100;

/// What is measured from each member to each other: each is a matrix of its own.
const MOST_PROBES: usize = 12;

/// The longest name of a member or a probe, in characters, so that targets have short ones too.
const MOST_NAME: usize = 30;

/// DSCP has six bits (RFC 2474).
const MOST_DSCP: i64 = 63;

/// How often paths are loaded unless the file says otherwise.
const HEAVY_EVERY: &str = "24h";

/// How long a load waits for its turn unless the file says otherwise: it has to end with its slot.
const WAITS: &str = "5s";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    name: Spanned<String>,
    #[serde(rename = "self")]
    own: Option<Spanned<String>>,
    #[serde(default)]
    member: Vec<Spanned<Entry>>,
    #[serde(default)]
    probe: Vec<Spanned<Entries>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    host: String,
    page: Option<String>,
    page_key_file: Option<PathBuf>,
}

/// A probe, before it is known whom it measures.
struct Read {
    probe: Probe,
    entries: Spanned<Entries>,
    every: Duration,
    longest: Duration,
}

/// Reads the section: the mesh, and what its own row would be in the file as `[[target]]`.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn read(section: &Spanned<Section>) -> Result<(Mesh, Vec<Spanned<Entries>>), Wrong> {
    let span = section.span();
    let section = section.get_ref();
    let name = checked_name(section.name.get_ref()).map_err(|why| (section.name.span(), why))?;
    let members = members(&span, &section.member)?;
    let own = own(section, &members)?;
    let probes = probes(&span, &section.probe)?;
    let heavy: Vec<&Read> = probes
        .iter()
        .filter(|read| read.probe.heavy.is_some())
        .collect();
    let frame = heavy.first().map_or(Duration::ZERO, |read| read.every);
    if let Some(other) = heavy.iter().find(|read| read.every != frame) {
        let why = "what loads paths takes turns, so that all of it has one interval";
        return Err((other.entries.span(), why.to_owned()));
    }
    let longest = heavy.iter().map(|read| read.longest).max();
    let table = Table::new(
        members.len(),
        heavy.len(),
        frame,
        longest.unwrap_or_default(),
    );
    let at = heavy.first().map_or(span, |read| read.entries.span());
    let mesh = Mesh {
        digest: digest_of(&name, &members, &probes),
        name,
        own,
        table: table.map_err(|why| (at, why))?,
        probes: probes.iter().map(|read| read.probe.clone()).collect(),
        members,
    };
    let row = targets(&mesh, &probes, &section.member);
    Ok((mesh, row))
}

/// A name that others can be built of.
fn checked_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    let is_odd = |c: char| c.is_control() || c == '→';
    match name.is_empty() || name.chars().count() > MOST_NAME || name.contains(is_odd) {
        true => Err(format!(
            "a name in a mesh has 1 to {MOST_NAME} characters, without control characters and →"
        )),
        false => Ok(name.to_owned()),
    }
}

fn members(span: &Range<usize>, entries: &[Spanned<Entry>]) -> Result<Vec<Member>, Wrong> {
    if !(2..=MOST_MEMBERS).contains(&entries.len()) {
        let why = format!(
            "a mesh has 2 to {MOST_MEMBERS} [[mesh.member]], and this one {}",
            entries.len()
        );
        return Err((span.clone(), why));
    }
    let mut members: Vec<Member> = Vec::with_capacity(entries.len());
    for entry in entries {
        let member = member(entry.get_ref()).map_err(|why| (entry.span(), why))?;
        let is_same = |other: &&Member| {
            other.name == member.name
                || other.host.eq_ignore_ascii_case(&member.host)
                || (other.page.is_some() && other.page == member.page)
        };
        if let Some(other) = members.iter().find(is_same) {
            let why = format!(
                "the members '{}' and '{}' are one: names, hosts and pages of members differ",
                other.name, member.name
            );
            return Err((entry.span(), why));
        }
        members.push(member);
    }
    Ok(members)
}

fn member(entry: &Entry) -> Result<Member, String> {
    let host = entry.host.trim();
    if host.is_empty() || host.contains(char::is_whitespace) || host.contains('/') {
        return Err("write the name or the address of one host".to_owned());
    }
    let page = entry.page.as_deref().map(str::parse::<Url>).transpose();
    let page = page.map_err(|error| format!("page: {error}"))?;
    if page.as_ref().is_some_and(|page| page.target != "/") {
        return Err("page is where plumb watch is, such as \"http://host:7590\"".to_owned());
    }
    if entry.page_key_file.is_some() && page.is_none() {
        return Err("page_key_file is for a page: name that too".to_owned());
    }
    let key_file = entry.page_key_file.clone();
    Ok(Member {
        name: checked_name(&entry.name)?,
        host: host.to_owned(),
        page,
        page_key_file: key_file
            .map(|file| absolute("page_key_file", file))
            .transpose()?,
    })
}

/// Which member this is: the one that `self` names, else the one whose address is this machine's.
fn own(section: &Section, members: &[Member]) -> Result<usize, Wrong> {
    if let Some(own) = &section.own {
        let found = members
            .iter()
            .position(|member| member.name == *own.get_ref());
        let why = || format!("no member of the mesh is called '{}'", own.get_ref());
        return found.ok_or_else(|| (own.span(), why()));
    }
    let is_own = |(_, member): &(usize, &Member)| addresses(&member.host).into_iter().any(is_own);
    let found: Vec<(usize, &Member)> = members.iter().enumerate().filter(is_own).collect();
    let span = || section.name.span();
    match found.as_slice() {
        [(own, _)] => Ok(*own),
        [] => Err((
            span(),
            "this machine is no member of the mesh: no member's host is an address of it; where it has another \
             one, as behind NAT, write self = \"NAME\""
                .to_owned(),
        )),
        [(_, one), (_, other), ..] => Err((
            span(),
            format!(
                "the members '{}' and '{}' are both this machine: correct their hosts, or write self = \"NAME\"",
                one.name, other.name
            ),
        )),
    }
}

fn addresses(host: &str) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    // A name that is not found is no error: it may be another member's.
    let found = (host, 0).to_socket_addrs();
    found.map_or_else(|_| Vec::new(), |found| found.map(|at| at.ip()).collect())
}

/// What is sent to an address of this machine comes from the same.
fn is_own(address: IpAddr) -> bool {
    let source = source_towards(SocketAddr::new(address, 0), &Outlet::default());
    source.is_ok_and(|source| source == address)
}

fn probes(span: &Range<usize>, entries: &[Spanned<Entries>]) -> Result<Vec<Read>, Wrong> {
    let mut probes: Vec<Read> = Vec::new();
    for entry in entries {
        for entries in by_class(entry)? {
            let heavy = probes.iter().filter(|read| read.probe.heavy.is_some());
            let read = probe(entries, heavy.count())?;
            if probes
                .iter()
                .any(|other| other.probe.label == read.probe.label)
            {
                let why = format!(
                    "another probe of the mesh is called '{}': give one of them a name",
                    read.probe.label
                );
                return Err((entry.span(), why));
            }
            probes.push(read);
        }
    }
    if !(1..=MOST_PROBES).contains(&probes.len()) {
        let why = format!(
            "a mesh measures 1 to {MOST_PROBES} things, each a [[mesh.probe]] (or a DSCP of one), and this one {}",
            probes.len()
        );
        return Err((span.clone(), why));
    }
    Ok(probes)
}

/// One probe for each DSCP where `dscp` is a list.
fn by_class(entry: &Spanned<Entries>) -> Result<Vec<Spanned<Entries>>, Wrong> {
    let listed = entry.get_ref().get("dscp");
    let Some((span, Value::Array(all))) = listed.map(|value| (value.span(), value.get_ref()))
    else {
        return Ok(vec![entry.clone()]);
    };
    let different: BTreeSet<i64> = all.iter().filter_map(Value::as_integer).collect();
    let fits = |dscp: &i64| (0..=MOST_DSCP).contains(dscp);
    if all.is_empty() || different.len() != all.len() || !different.iter().all(fits) {
        let why = format!("dscp is a list of different numbers from 0 to {MOST_DSCP}");
        return Err((span, why));
    }
    let of = |dscp: &Value| {
        let mut entries = entry.get_ref().clone();
        entries.insert("dscp".to_owned(), Spanned::new(span.clone(), dscp.clone()));
        Spanned::new(entry.span(), entries)
    };
    Ok(all.iter().map(of).collect())
}

/// Reads a probe; so many before it load the path.
fn probe(entries: Spanned<Entries>, heavy: usize) -> Result<Read, Wrong> {
    let span = entries.span();
    let mut entries = entries.into_inner();
    for (key, why) in [
        ("host", "the members are the hosts: leave it out"),
        (
            "group",
            "its targets are the group of the mesh: leave it out",
        ),
        ("behind", "its targets are behind no other: leave it out"),
        (
            "direction",
            "a row is measured from its member to the others: leave it out",
        ),
    ] {
        if let Some(found) = entries.get(key) {
            return Err((found.span(), why.to_owned()));
        }
    }
    let text = |entries: &Entries, key: &str| {
        let found = entries.get(key).map(Spanned::get_ref);
        found.and_then(Value::as_str).map(str::to_owned)
    };
    let Some(kind_name) = text(&entries, "probe") else {
        return Err((span, "it lacks probe = \"icmp\"".to_owned()));
    };
    let mut put = |key: &str, value: &str| {
        let value = Spanned::new(span.clone(), Value::String(value.to_owned()));
        entries.entry(key.to_owned()).or_insert(value);
    };
    if ["one-way", "rate"].contains(&kind_name.as_str()) {
        put("direction", "up");
    }
    if ["load", "rate"].contains(&kind_name.as_str()) {
        put("every", HEAVY_EVERY);
        put("waits", WAITS);
    }
    let kind = kind(&kind_name, &span, &entries)?;
    let every = text(&entries, "every").and_then(|text| parse_duration(&text).ok());
    let own_name = entries.remove("name");
    let label = match own_name {
        None => {
            let dscp = entries
                .get("dscp")
                .and_then(|dscp| dscp.get_ref().as_integer());
            dscp.map_or(kind_name.clone(), |dscp| format!("{kind_name} dscp {dscp}"))
        }
        Some(name) => {
            let text = name.get_ref().as_str().unwrap_or_default();
            checked_name(text).map_err(|why| (name.span(), why))?
        }
    };
    Ok(Read {
        probe: Probe {
            label,
            unit: kind.unit(),
            heavy: kind.is_load().then_some(heavy),
        },
        every: every.unwrap_or_else(|| kind.usual_every()),
        longest: kind.longest(),
        entries: Spanned::new(span, entries),
    })
}

/// The kind of a probe, with its settings.
fn kind(name: &str, span: &Range<usize>, entries: &Entries) -> Result<Box<dyn Kind>, Wrong> {
    let mut settings = Settings::new(span.clone(), entries.clone());
    let wrong = |why: String| {
        let at = entries.get("probe").map_or(span.clone(), Spanned::span);
        (at, why)
    };
    match kinds::kind(name, &mut settings)? {
        Some((_, kind)) if kind.is_remote() => Ok(kind),
        Some(_) => Err(wrong(format!("{name} measures no host"))),
        None => Err(wrong(format!(
            "no probe is called '{name}'; there are {}",
            kinds::names()
        ))),
    }
}

/// The own row, as the file would have it.
fn targets(mesh: &Mesh, probes: &[Read], entries: &[Spanned<Entry>]) -> Vec<Spanned<Entries>> {
    let Some(from) = mesh.own_member() else {
        return Vec::new();
    };
    let others = mesh.members.iter().zip(entries).enumerate();
    let others = others.filter(|(place, _)| *place != mesh.own);
    let mut row = Vec::new();
    for (_, (to, entry)) in others {
        for read in probes {
            let mut target = read.entries.get_ref().clone();
            for (key, value) in [
                (
                    "name",
                    Mesh::target_name(&from.name, &to.name, &read.probe.label),
                ),
                ("host", to.host.clone()),
                ("group", group(&mesh.name)),
            ] {
                let value = Spanned::new(entry.span(), Value::String(value));
                target.insert(key.to_owned(), value);
            }
            row.push(Spanned::new(read.entries.span(), target));
        }
    }
    row
}

/// The same where two members have the same mesh, whatever else their files have.
fn digest_of(name: &str, members: &[Member], probes: &[Read]) -> String {
    let members: Vec<_> = members.iter().map(|one| (&one.name, &one.host)).collect();
    let settings = |read: &Read| {
        let entries = read.entries.get_ref().iter();
        let entries = entries.map(|(key, value)| (key.clone(), value.get_ref().to_string()));
        (read.probe.label.clone(), entries.collect::<Vec<_>>())
    };
    let probes: Vec<_> = probes.iter().map(settings).collect();
    // JSON keeps what is one text apart from what is another.
    let all = serde_json::to_vec(&(name, members, probes)).unwrap_or_default();
    let hash = digest(&SHA256, &all);
    HEXLOWER.encode(hash.as_ref().get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests;
