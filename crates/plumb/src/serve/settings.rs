//! What a responder is started with: options, and what the file has where no option says otherwise.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use plumb_load::tls::Identity;
use plumb_serve::{
    Config, Entry, Policy, PolicyCell, Settings, StampSettings, StrangersLimits, Wanted,
    WebSettings, protocols,
};
use plumb_wire::native::key::Key;
use plumb_wire::native::spec::PORT;
use plumb_wire::stamp::Counting;

use super::arguments::{Access, Arguments};
use super::file::{File, PortOrNot, refuse_special};
use super::visits;
use crate::usage::wrong;

/// What clients on the Internet need.
#[derive(Debug, Clone)]
pub(super) enum AccessKey {
    Public,
    Given(Key),
    /// Made for this run of the responder.
    New(Key),
}

impl Access {
    /// The key that is asked for.
    pub(super) fn key(&self, file: &File) -> anyhow::Result<AccessKey> {
        if self.public || file.access.public {
            return Ok(AccessKey::Public);
        }
        if let Some(text) = self.key.as_deref().or(file.access.key.as_deref()) {
            if let Some(file) = text.strip_prefix('@') {
                refuse_special(Path::new(file))?;
            }
            return Ok(AccessKey::Given(crate::key::of_responder(text)?));
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).context("cannot get random numbers")?;
        Ok(AccessKey::New(Key::random(bytes)))
    }

    /// Whom to serve. A key that was made when the responder started stays the same.
    pub(super) fn policy(&self, file: &File, at_start: &AccessKey) -> anyhow::Result<Policy> {
        let key = match (self.key(file)?, at_start) {
            (AccessKey::New(_), AccessKey::New(made)) => Some(made.clone()),
            (AccessKey::New(key) | AccessKey::Given(key), _) => Some(key),
            (AccessKey::Public, _) => None,
        };
        let default = StrangersLimits::default();
        Ok(Policy {
            is_public: self.public || file.access.public,
            allow: [self.allow.as_slice(), &file.access.allow].concat(),
            deny: [self.deny.as_slice(), &file.access.deny].concat(),
            key,
            limits: StrangersLimits {
                bytes_a_day: file
                    .limits
                    .bytes_a_day
                    .map_or(default.bytes_a_day, |most| most.bytes()),
                rate_bps: file.limits.rate.unwrap_or(default.rate_bps),
            },
        })
    }
}

impl Arguments {
    /// What the file has; nothing where there is none.
    pub(super) fn file(&self) -> anyhow::Result<File> {
        match &self.config {
            Some(path) => File::read(path),
            None => Ok(File::default()),
        }
    }

    fn stamp(&self, file: &File) -> anyhow::Result<StampSettings> {
        let key_file = self
            .stamp
            .stamp_key_file
            .as_ref()
            .or(file.stamp.key_file.as_ref());
        key_file.map_or(Ok(()), |file| refuse_special(file))?;
        let key = key_file.map(|file| crate::key::read(file)).transpose()?;
        let rate = self.stamp.stamp_rate.or(file.stamp.rate);
        let stateless = self.stamp.stamp_stateless || file.stamp.stateless;
        Ok(StampSettings {
            key,
            counting: match stateless {
                true => Counting::Stateless,
                false => Counting::Stateful,
            },
            max_rate_pps: rate.unwrap_or(StampSettings::default().max_rate_pps),
        })
    }

    fn irtt_key(&self, file: &File) -> anyhow::Result<Option<plumb_wire::irtt::Key>> {
        let key_file = self.irtt.irtt_key_file.as_ref();
        let key_file = key_file.or(file.irtt.key_file.as_ref());
        key_file.map_or(Ok(()), |file| refuse_special(file))?;
        key_file.map(|file| crate::key::of_irtt(file)).transpose()
    }

    fn web(&self, file: &File) -> anyhow::Result<WebSettings> {
        let (typed, listed) = (&self.web, &file.web);
        let certificate = typed.certificate.as_ref().or(listed.certificate.as_ref());
        let key = typed
            .certificate_key
            .as_ref()
            .or(listed.certificate_key.as_ref());
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                let read = |file: &PathBuf| {
                    refuse_special(file)?;
                    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
                };
                let identity = Identity::given(&read(certificate)?, &read(key)?);
                Some(identity.with_context(|| {
                    let (certificate, key) = (certificate.display(), key.display());
                    format!("cannot serve HTTPS with {certificate} and {key}")
                })?)
            }
            _ => {
                let why = "a certificate needs its key: name both, or none";
                return Err(wrong(why.to_owned()));
            }
        };
        let runs = typed.runs.clone().or_else(|| listed.runs.clone());
        if let Some(folder) = runs.as_ref().filter(|folder| !folder.is_dir()) {
            anyhow::bail!(
                "cannot keep Runs in {}: it is no directory",
                folder.display()
            );
        }
        Ok(WebSettings {
            identity,
            judge: Some(visits::judge(runs)),
            host_names: host_names(&typed.host_names, &listed.host_names)?,
        })
    }

    /// The protocols of others' clients that are to be served.
    fn protocols(&self, file: &File, has_stamp_key: bool) -> anyhow::Result<Vec<Wanted>> {
        if let Some(unknown) = file
            .protocols
            .keys()
            .find(|name| protocols::named(name).is_none())
        {
            let names: Vec<_> = protocols::ALL.iter().map(|entry| entry.name).collect();
            return Err(wrong(format!(
                "the configuration names the protocol '{unknown}': write one of {}",
                names.join(", ")
            )));
        }
        let is_left_out = |entry: &Entry| self.without.iter().any(|out| out.name == entry.name);
        if let Some((both, _)) = self.port_of.iter().find(|(entry, _)| is_left_out(entry)) {
            let name = both.name;
            return Err(wrong(format!(
                "--without {name} leaves out what --port-of {name}=… asks for: leave one of them out"
            )));
        }
        let all = protocols::ALL.iter().copied();
        let wanted = all.filter(|entry| !is_left_out(entry)).filter_map(|entry| {
            let typed = self
                .port_of
                .iter()
                .rev()
                .find(|(of, _)| of.name == entry.name);
            let asked = match (typed, file.protocols.get(entry.name)) {
                (Some((_, port)), _) | (None, Some(PortOrNot::Port(port))) => Some(*port),
                (None, Some(PortOrNot::Served(false))) => return None,
                (None, Some(PortOrNot::Served(true)) | None) => None,
            };
            Some(Wanted {
                entry,
                port: asked.unwrap_or(entry.port),
                // What was asked for must be had.
                is_required: asked.is_some() || has_stamp_key && entry.name == "stamp",
            })
        });
        Ok(wanted.collect())
    }
}

/// The names by which browsers reach the responder: those that were typed, or else the file's.
fn host_names(typed: &[String], listed: &[String]) -> anyhow::Result<Vec<String>> {
    let names = if typed.is_empty() { listed } else { typed };
    let is_name = |name: &String| {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !name.is_empty() && name.chars().all(letter)
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(wrong(format!(
            "'{name}' is no name of a host: write it without scheme, port and path, like speed.example.org"
        ))),
        None => Ok(names.to_vec()),
    }
}

/// What the responder is started with.
pub(super) fn config(
    arguments: &Arguments,
    file: &File,
    key: &AccessKey,
) -> anyhow::Result<Config> {
    let everywhere = [IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let addresses = match (arguments.listen.as_slice(), file.listen.as_slice()) {
        ([], []) => &everywhere,
        ([], listed) => listed,
        (typed, _) => typed,
    };
    let port = arguments.port.or(file.port).unwrap_or(PORT);
    let stamp = arguments.stamp(file)?;
    let default = Config::default();
    let limits = &file.limits;
    let policy = arguments.access.policy(file, key)?;
    Ok(Config {
        listen: addresses
            .iter()
            .map(|address| SocketAddr::new(*address, port))
            .collect(),
        max_duration: arguments
            .max_duration
            .or(limits.duration)
            .unwrap_or(default.max_duration),
        max_streams: arguments
            .max_streams
            .or(limits.streams)
            .unwrap_or(default.max_streams),
        max_clients: arguments
            .max_clients
            .or(limits.clients)
            .unwrap_or(default.max_clients),
        max_loads: limits.loads.unwrap_or(default.max_loads),
        disk: arguments.disk.clone().or_else(|| file.disk.clone()),
        protocols: arguments.protocols(file, stamp.key.is_some())?,
        settings: Settings {
            stamp,
            irtt_key: arguments.irtt_key(file)?,
            web: arguments.web(file)?,
        },
        traces: !arguments.no_trace && file.trace.unwrap_or(true),
        policy: Arc::new(PolicyCell::new(policy)),
    })
}
