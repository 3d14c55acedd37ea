//! The file that says what is watched.

pub mod alarms;
pub mod deliveries;
mod watched;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_model::addresses::is_near;
use plumb_model::units::parse_duration;
use serde::Deserialize;
use toml::Spanned;

use crate::access::Access;
use crate::alarm::maintenance::Window;
use crate::flows::settings::FlowSource;
use crate::mesh::{self, Mesh};
use crate::remote_write::settings::RemoteWrite;
use crate::target::kind::EVERY;
use crate::target::kinds;
use crate::target::settings::{Entries, Settings, Wrong};

pub use watched::Target;
use watched::series;

/// Where the page is served unless the file says otherwise: this machine alone sees it.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7590);

/// The same for all targets of one host, with room for what adding up rounds.
const MOST_PER_SECOND: f64 = 0.1 + 1e-9;

/// The shortest interval: what is faster is load.
const LEAST_EVERY: Duration = Duration::from_millis(100);

/// The longest interval: a day.
const MOST_EVERY: Duration = Duration::from_secs(86_400);

/// More targets than this are a slip.
const MOST_TARGETS: usize = 20_000;

/// The longest name of a target, in characters.
const MOST_NAME: usize = 100;

/// What is watched, and where its history is kept and shown.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the database is.
    pub store: PathBuf,
    /// Where the page is served.
    pub listen: SocketAddr,
    /// Who sees the page; everyone who reaches it, where nothing is said.
    pub access: Option<Access>,
    pub targets: Vec<Target>,
    /// Targets that have series, which are few.
    sources: Vec<Target>,
    /// What measures each other by this file; the own row of it is among the targets.
    pub mesh: Option<Mesh>,
    /// Where exporters of flows send to.
    pub flows: Vec<FlowSource>,
    pub alarms: Vec<alarms::Rule>,
    /// By what they are sent.
    pub deliveries: Vec<deliveries::Delivery>,
    /// When no alarm is raised, of the targets of these names; without names of all.
    pub maintenance: Vec<(Vec<String>, Window)>,
    /// Where the metrics are sent.
    pub remote_write: Option<RemoteWrite>,
    /// What the user should know of the file, though it is in order.
    pub warnings: Vec<String>,
}

/// What is wrong with a file, with the line and its words where there is one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{0}")]
    Wrong(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    store: Store,
    page: Option<Spanned<Page>>,
    #[serde(default)]
    target: Vec<Spanned<Entries>>,
    #[serde(default)]
    device: Vec<Spanned<Entries>>,
    mesh: Option<Spanned<mesh::settings::Section>>,
    #[serde(default)]
    flows: Vec<Spanned<Entries>>,
    #[serde(default)]
    alarm: Vec<alarms::Entry>,
    #[serde(default)]
    deliver: Vec<deliveries::Entry>,
    #[serde(default)]
    maintenance: Vec<alarms::Maintenance>,
    remote_write: Option<Spanned<Entries>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    path: Spanned<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    listen: Option<SocketAddr>,
    keys_file: Option<PathBuf>,
    proxy_header: Option<String>,
    proxies: Option<Vec<String>>,
}

impl Config {
    /// Reads a file. A relative path in it counts from its folder.
    ///
    /// # Errors
    /// When it cannot be read, or something in it is wrong.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut config = Self::parse(&text)
            .map_err(|why| ConfigError::Wrong(format!("{}: {why}", path.display())))?;
        if let Some(folder) = path.parent() {
            config.store = folder.join(&config.store);
            config.access = config.access.map(|access| access.in_folder(folder));
        }
        if let Some(access) = &config.access {
            access.keys().map_err(ConfigError::Wrong)?;
        }
        Ok(config)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When something in it is wrong.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |span: Range<usize>, why: String| ConfigError::Wrong(at(text, &span, &why));
        let file: File = toml::from_str(text).map_err(|error| {
            ConfigError::Wrong(match error.span() {
                Some(span) => at(text, &span, error.message()),
                None => error.message().to_owned(),
            })
        })?;
        if file.store.path.get_ref().as_os_str().is_empty() {
            return Err(wrong(file.store.path.span(), "the path is empty".into()));
        }
        let mesh = file.mesh.as_ref().map(mesh::settings::read).transpose();
        let (mesh, row) = mesh.map_err(|(span, why)| wrong(span, why))?.unzip();
        let row = row.unwrap_or_default();
        let targets = targets(text, [&file.target, &row], &file.device)?;
        let flows = flows(text, &file.flows)?;
        if targets.is_empty() && flows.is_empty() {
            let why = "it watches nothing: write a [[target]], [[device]], [mesh] or [[flows]]";
            return Err(ConfigError::Wrong(why.to_owned()));
        }
        let mut rules: Vec<alarms::Rule> = Vec::with_capacity(file.alarm.len());
        for entry in &file.alarm {
            let rule = entry
                .rule(&targets)
                .map_err(|(span, why)| wrong(span, why))?;
            if rules.iter().any(|other| other.name == rule.name) {
                let why = format!("another alarm is called '{}'", rule.name);
                return Err(wrong(entry.span(), why));
            }
            rules.push(rule);
        }
        let mut sent_by: Vec<deliveries::Delivery> = Vec::with_capacity(file.deliver.len());
        for entry in &file.deliver {
            let delivery = entry.delivery(&sent_by);
            sent_by.push(delivery.map_err(|(span, why)| wrong(span, why))?);
        }
        let maintenance = file.maintenance.iter().map(|entry| {
            entry
                .window(&targets)
                .map_err(|(span, why)| wrong(span, why))
        });
        let page = file.page.as_ref().map(Spanned::get_ref);
        let access = page.map(|page| {
            let proxies = page.proxies.as_deref();
            Access::read(page.keys_file.clone(), page.proxy_header.clone(), proxies)
        });
        let span = || file.page.as_ref().map(Spanned::span).unwrap_or_default();
        let access = access.transpose().map_err(|why| wrong(span(), why))?;
        let remote_write = file.remote_write.as_ref().map(RemoteWrite::read);
        let remote_write = remote_write
            .transpose()
            .map_err(|(span, why)| wrong(span, why))?;
        let warnings = targets.iter().filter_map(|target| {
            let why = target.kind.warning()?;
            Some(format!("{}: {why}", target.name))
        });
        let of_remote_write = remote_write.iter().filter_map(RemoteWrite::warning);
        Ok(Self {
            warnings: warnings.chain(of_remote_write).collect(),
            remote_write,
            sources: sources(&targets),
            maintenance: maintenance.collect::<Result<_, _>>()?,
            mesh,
            flows,
            alarms: rules,
            deliveries: sent_by,
            store: file.store.path.into_inner(),
            listen: page.and_then(|page| page.listen).unwrap_or(LISTEN),
            access: access.flatten(),
            targets,
        })
    }

    /// The series of a target that has this name, as a target of its own; `None` where none has one of that name.
    pub fn series(&self, name: &str) -> Option<Target> {
        series(&self.sources, name)
    }

    /// What of it those see who see these groups alone.
    pub(crate) fn of_groups(&self, groups: &[String]) -> Self {
        let mut part = self.clone();
        part.targets.retain(|target| {
            let group = target.group.as_ref();
            group.is_some_and(|group| groups.contains(group))
        });
        part.sources = sources(&part.targets);
        part.mesh = part.mesh.filter(|mesh| groups.contains(&mesh.group()));
        part.flows.clear();
        part.remote_write = None;
        part
    }

    /// Whether that is the name of a target, or of a series of one.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.targets.iter().any(|target| target.name == name) || self.series(name).is_some()
    }

    /// The routers that a target is behind, the nearest first.
    pub fn routers(&self, target: &Target) -> Vec<&Target> {
        let mut found: Vec<&Target> = Vec::new();
        let mut behind = target.behind.as_ref();
        // The check of the file leaves no circle, which would be longer than all targets.
        while let Some(router) = behind
            .and_then(|name| self.targets.iter().find(|t| t.name == *name))
            .filter(|_| found.len() < self.targets.len())
        {
            found.push(router);
            behind = router.behind.as_ref();
        }
        found
    }

    /// How much is watched, in words.
    pub fn summary(&self) -> String {
        let per_second = self
            .targets
            .iter()
            .map(|target| target.every.as_secs_f64().recip());
        let per_second = per_second.sum::<f64>();
        let probed = match self.targets.len() {
            1 => format!("1 target, {per_second:.2} probes a second"),
            count => format!("{count} targets, {per_second:.2} probes a second"),
        };
        let at = self.flows.iter().map(|source| source.listen.to_string());
        let at = at.collect::<Vec<_>>().join(", ");
        match (self.targets.is_empty(), self.flows.is_empty()) {
            (_, true) => probed,
            (true, false) => format!("flows that are sent to {at}"),
            (false, false) => format!("{probed}; flows that are sent to {at}"),
        }
    }
}

/// What all targets may say, and what is left for the kind.
struct Common {
    name: Spanned<String>,
    behind: Option<Spanned<String>>,
    /// Whether the user says that the host may be probed as often as the file says.
    agreed: bool,
    host_span: Range<usize>,
}

/// The targets that have series.
fn sources(targets: &[Target]) -> Vec<Target> {
    let sources = targets.iter().filter(|target| target.kind.has_series());
    sources.cloned().collect()
}

/// All places that exporters send to.
fn flows(text: &str, entries: &[Spanned<Entries>]) -> Result<Vec<FlowSource>, ConfigError> {
    let wrong = |span: Range<usize>, why: String| ConfigError::Wrong(at(text, &span, &why));
    let mut flows: Vec<FlowSource> = Vec::with_capacity(entries.len());
    for entry in entries {
        let source = FlowSource::read(entry).map_err(|(span, why)| wrong(span, why))?;
        if flows.iter().any(|other| other.name == source.name) {
            let why = format!("other [[flows]] are called '{}'", source.name);
            return Err(wrong(entry.span(), why));
        }
        if let Some(other) = flows.iter().find(|other| other.listen == source.listen) {
            let why = format!("'{}' listens at {} already", other.name, other.listen);
            return Err(wrong(entry.span(), why));
        }
        flows.push(source);
    }
    Ok(flows)
}

/// All targets of the file, in its order, then the row of a mesh, then the devices.
fn targets(
    text: &str,
    [targets, row]: [&[Spanned<Entries>]; 2],
    devices: &[Spanned<Entries>],
) -> Result<Vec<Target>, ConfigError> {
    let wrong = |span: Range<usize>, why: String| ConfigError::Wrong(at(text, &span, &why));
    // Each entry with the kind that its section is of; a target says its own.
    let sections = [(None, targets), (None, row), (Some("device"), devices)];
    let entries = sections
        .into_iter()
        .flat_map(|(source, all)| all.iter().map(move |entry| (source, entry)));
    let count = targets.len() + row.len() + devices.len();
    if count > MOST_TARGETS {
        return Err(ConfigError::Wrong(format!(
            "it has {count} targets: {MOST_TARGETS} are the most"
        )));
    }
    let mut targets: Vec<Target> = Vec::with_capacity(count);
    let mut names = BTreeMap::new();
    let mut strangers = BTreeMap::new();
    let mut probed = BTreeMap::new();
    let mut behind = Vec::new();
    for (source, entry) in entries {
        let (target, common) = target(source, entry).map_err(|(span, why)| wrong(span, why))?;
        let line = line_of(text, common.name.span().start);
        if let Some(first) = names.insert(target.name.clone(), line) {
            let why = format!("line {first} has a target of that name");
            return Err(wrong(common.name.span(), why));
        }
        let same = (target.host.clone(), format!("{:?}", target.kind));
        if let Some(other) = probed.insert(same, target.name.clone()) {
            let why = format!("the target '{other}' probes the same");
            return Err(wrong(common.host_span, why));
        }
        if !common.agreed {
            let per_second = strangers.entry(target.host.clone()).or_insert(0.0);
            *per_second += f64::from(target.kind.probes()) / target.every.as_secs_f64();
            if *per_second > MOST_PER_SECOND {
                let why = format!(
                    "with this target {} is probed more often than once in 10s, which is for your own hosts: give its \
                     targets longer intervals (every = \"5m\"), or add more_often_than_10s = true to this one",
                    target.host
                );
                return Err(wrong(common.host_span, why));
            }
        }
        behind.extend(common.behind.map(|behind| (targets.len(), behind)));
        targets.push(target);
    }
    for (own, behind) in behind {
        if let Some(own) = targets.get(own) {
            check_behind(&own.name, behind.get_ref(), &targets)
                .map_err(|why| wrong(behind.span(), why))?;
        }
    }
    let sources = sources(&targets);
    for target in &targets {
        if let Some(series) = series(&sources, &target.name) {
            return Err(ConfigError::Wrong(format!(
                "the target '{}' has the name of a series of '{}': give it another one",
                target.name,
                series.behind.unwrap_or_default()
            )));
        }
    }
    Ok(targets)
}

/// One target, as the file has it; its kind is its section, or what it says.
fn target(source: Option<&str>, entry: &Spanned<Entries>) -> Result<(Target, Common), Wrong> {
    let spans: BTreeMap<&str, Range<usize>> = entry
        .get_ref()
        .iter()
        .map(|(key, value)| (key.as_str(), value.span()))
        .collect();
    let span_of = |key: &str| spans.get(key).cloned().unwrap_or_else(|| entry.span());
    let mut settings = Settings::new(entry.span(), entry.get_ref().clone());
    let name: String = settings.need("name", "name = \"what the page calls it\"")?;
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MOST_NAME {
        let why = format!("a name has 1 to {MOST_NAME} characters");
        return Err(settings.wrong("name", why));
    }
    if name.contains(char::is_control) {
        return Err(settings.wrong("name", "a name has no control characters"));
    }
    let probe: String = match source {
        Some(source) => source.to_owned(),
        None => settings.need("probe", "probe = \"icmp\"")?,
    };
    let host: Option<String> = settings.take("host")?;
    let every = interval(&mut settings)?;
    let agreed: Option<bool> = settings.take("more_often_than_10s")?;
    let agreed = agreed.unwrap_or_default();
    let group = settings.take("group")?;
    let behind: Option<String> = settings.take("behind")?;
    let kind = match source {
        Some(source) => kinds::source(source, &mut settings)?,
        None => kinds::kind(&probe, &mut settings)?,
    };
    let Some((probe, kind)) = kind else {
        let why = format!("no probe is called '{probe}'; there are {}", kinds::names());
        return Err(settings.wrong("probe", why));
    };
    let host = match (host, kind.is_remote()) {
        (Some(_), false) => {
            let why = format!("{probe} measures no host: leave it out");
            return Err(settings.wrong("host", why));
        }
        (None, false) => String::new(),
        (host, true) => {
            let host = host.unwrap_or_default().trim().to_owned();
            if host.is_empty() || host.contains(char::is_whitespace) || host.contains('/') {
                return Err(settings.wrong("host", "write the name or the address of one host"));
            }
            host
        }
    };
    let every = every.unwrap_or_else(|| kind.usual_every());
    kind.check(every)
        .map_err(|why| settings.wrong("every", why))?;
    let is_strangers = kind.is_remote() && !kind.is_load() && !agreed && !is_near_host(&host);
    if every < EVERY && is_strangers {
        let why = "others' hosts are probed once in 10s at most; where yours it is, or they agreed, add \
                   more_often_than_10s = true";
        return Err(settings.wrong("every", why));
    }
    settings.end(probe)?;
    let target = Target {
        name: name.to_owned(),
        host,
        probe,
        kind: kind.into(),
        every,
        group,
        behind: behind.clone(),
    };
    let common = Common {
        name: Spanned::new(span_of("name"), name.to_owned()),
        behind: behind.map(|name| Spanned::new(span_of("behind"), name)),
        agreed: !is_strangers,
        host_span: span_of("host"),
    };
    Ok((target, common))
}

/// How often the file says that a target is probed.
fn interval(settings: &mut Settings) -> Result<Option<Duration>, Wrong> {
    let Some(text) = settings.take::<String>("every")? else {
        return Ok(None);
    };
    let why = match parse_duration(&text) {
        Ok(every) if (LEAST_EVERY..=MOST_EVERY).contains(&every) => return Ok(Some(every)),
        Ok(_) => "an interval is between 100ms and 24h",
        Err(_) => "write an interval with its unit, such as \"10s\" or \"2m\"",
    };
    Err(settings.wrong("every", why))
}

/// Whether a target may be behind another one.
fn check_behind(name: &str, behind: &str, targets: &[Target]) -> Result<(), String> {
    let find = |name: &str| targets.iter().find(|target| target.name == name);
    let (Some(own), Some(router)) = (find(name), find(behind)) else {
        return Err(format!("no target is called '{behind}'"));
    };
    if router.every > own.every {
        return Err(format!(
            "'{behind}' is probed more seldom than '{name}', which is behind it: its silence would be seen too late"
        ));
    }
    let mut at = Some(router);
    for _ in targets {
        match at {
            Some(target) if target.name == name => {
                return Err(format!("'{name}' would be behind itself"));
            }
            Some(target) => at = target.behind.as_deref().and_then(find),
            None => break,
        }
    }
    Ok(())
}

/// Whether it is an address that is no stranger's.
fn is_near_host(host: &str) -> bool {
    host.parse().is_ok_and(is_near)
}

/// The number of the line at which that byte stands.
fn line_of(text: &str, byte: usize) -> usize {
    1 + text
        .bytes()
        .take(byte)
        .filter(|byte| *byte == b'\n')
        .count()
}

/// What is wrong, with the line and its words.
fn at(text: &str, span: &Range<usize>, why: &str) -> String {
    let line = line_of(text, span.start);
    let words = text.lines().nth(line - 1).unwrap_or_default().trim();
    let why = why.trim_end().replace('\n', "; ");
    format!("line {line}, `{words}`: {why}")
}

#[cfg(test)]
mod tests;
